"""Settings that bandits of any rule of selection have in common."""

from typing import Annotated

from msgspec import Meta

from outrider.api import PolicySettings
from outrider_policies.levels import LevelName

_WEEK_S = 604_800.0


class EvictionBanditSettings(PolicySettings, frozen=True):
    """The arms, the reward, and how long a job may be deferred."""

    level: Annotated[
        LevelName,
        Meta(
            description="What is chosen, beside the queue: a `computer`, a `cluster`, a cluster by "
            "the hour of the week (`cluster_week`), or only whether to run at all (`system`). "
            "Finer levels learn more and more slowly.",
        ),
    ] = "cluster"
    sigma: Annotated[
        float,
        Meta(ge=0, le=1, description="Weight of energy against not being evicted (eq. 4)."),
    ] = 0.8
    avoid_reboot: Annotated[
        bool,
        Meta(
            description="Defer a job that would still run at the nightly reboot, judged by its "
            "longest lost run (section 4.4.3, local knowledge).",
        ),
    ] = False
    reconsider_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Decision epoch: a deferred job is decided again after this. "
                "Epsilon is spent per decision, so a shorter epoch explores more per hour. "
                "Unset: the site's own.",
            ),
        ]
        | None
    ) = None
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred. The plain method "
            "defers single jobs for weeks.",
        ),
    ] = _WEEK_S
