"""Policy ``window_net``: the job of the highest score among the oldest that wait comes next."""

import random
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    Choice,
    ConfigurationError,
    Job,
    Observation,
    PolicySettings,
    SiteView,
    WindowPolicy,
)
from outrider_policies.window_net.explanations import best_few, why
from outrider_policies.window_net.net import Net
from outrider_policies.window_net.weights_file import net_of_text

SHIPPED: Final = "shipped"
_SHIPPED_FILE: Final = "shipped_net.json"


class WindowNetSettings(PolicySettings, frozen=True):
    """Which net decides."""

    weights: Annotated[
        str,
        Meta(
            description="The net: `shipped` (trained on small generated grids of one-CPU jobs), or "
            "a file that a training of one's own wrote."
        ),
    ] = SHIPPED


class Selection(NamedTuple):
    """What was last selected from: the jobs, what the net saw of them, and its scores."""

    jobs: list[Job]
    rows: NDArray[np.float32]
    scores: NDArray[np.float64]


class WindowNet(WindowPolicy[WindowNetSettings]):
    """A net that was trained in an environment for reinforcement learning runs as a policy.

    It learns nothing here: a learner that explores is no matter for a site. It needs numpy alone,
    whatever it was trained with (docs/gymnasium.md).
    """

    name = "window_net"
    description = "a trained net selects the next job among the oldest that wait"
    api_version = 1

    def __init__(self, settings: WindowNetSettings, rng: random.Random) -> None:
        self._net = _net_of(settings.weights)
        super().__init__(settings, rng, self._net.window)
        self._last: Selection | None = None

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """The row of the highest score, of equals the oldest."""
        rows = observation[: len(jobs)]
        scores = self._net.scores(rows)
        self._last = Selection(jobs, rows, scores)
        return int(scores.argmax())

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """As `WindowPolicy.choose`, with the scores of the best few."""
        choice = super().choose(job, evaluation, view, may_defer)
        if not self.wants_scores or self._last is None or job not in self._last.jobs:
            return choice
        scores = best_few(job, self._last.jobs, self._last.scores)
        return Choice(choice.machine, choice.reason, choice.propensity, scores)

    def explain(self, job: Job, view: SiteView) -> str:
        """Its score and place, which job is first, and what of it speaks for and against it."""
        last = self._last
        if last is None or job not in last.jobs:
            return (
                f"the net selects among the {self.window} oldest jobs that wait, whenever a CPU is "
                "free and two or more wait; it has not selected with this one among them yet"
            )
        return why(last.jobs.index(job), last.jobs, last.rows, last.scores, self._net)


def _net_of(weights: str) -> Net:
    """The net that a setting names. Raises `ConfigurationError`."""
    where = f'weights = "{weights}"'
    if weights == SHIPPED:
        text = resources.files(__package__).joinpath(_SHIPPED_FILE).read_bytes()
    else:
        try:
            text = Path(weights).read_bytes()
        except (OSError, ValueError) as error:
            why_not = error.strerror if isinstance(error, OSError) else error
            raise ConfigurationError(
                f'{where} cannot be read: {why_not}; right would be "{SHIPPED}", or a file that '
                "outrider_policies.window_net.write_net wrote"
            ) from error
    return net_of_text(text, where)
