"""Policy on one screen: jobs go to the room that was heated the least recently."""

import random
from collections.abc import Hashable, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, Learns, Outcome, Policy, PolicySettings, SiteView

_J_PER_WH = 3600.0


class CoolestRoomSettings(PolicySettings, frozen=True):
    """Settings: how fast a room cools, and the assumed power of machines without watts."""

    half_life_s: Annotated[
        float, Meta(gt=0, description="Seconds in which a room loses half of its heat.")
    ] = 7200.0
    assumed_w: Annotated[
        float, Meta(gt=0, description="Watts of a busy machine where they are not known.")
    ] = 100.0


class CoolestRoom(Learns, Policy[CoolestRoomSettings]):
    """Policy that models heat: a run adds its watt-hours to its cluster, and heat decays."""

    name = "coolest_room"
    description = "oldest job first, to the cluster with the least recent heat"
    api_version = 1
    presets: ClassVar = {"thick_walls": {"half_life_s": 43_200.0}}

    def __init__(self, settings: CoolestRoomSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._heat: dict[str, tuple[float, float]] = {}  # cluster -> (watt-hours, at second)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the coolest cluster with a free machine, at random among equals."""
        heat = self.scores((), view)
        free = [c for c, n in enumerate(view.free_n) if n]
        least = min(heat[view.cluster_names[c]] for c in free)
        coolest = [c for c in free if heat[view.cluster_names[c]] == least]
        cluster = self.rng.choice(coolest)
        shown = heat if self.wants_scores else None
        return Choice(view.draw_in(cluster, self.rng), "coolest", 1.0 / len(coolest), shown)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Add the heat of a run to its room, whichever policy chose it. There is no reward."""
        if outcome.machine != NOWHERE:
            name = view.cluster_names[outcome.cluster]
            watts = view.active_w[outcome.cluster] or self.settings.assumed_w
            warm = self._now(name, view.now) + watts * outcome.run_s / _J_PER_WH
            self._heat[name] = (warm, view.now)
        return ()

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        """Return the present heat of every cluster, in watt-hours."""
        return {name: self._now(name, view.now) for name in view.cluster_names}

    def explain(self, job: Job, view: SiteView) -> str:
        """Explain the choice: the coolest room now."""
        heat = self.scores((), view)
        if not heat:
            return "no cluster is known yet"
        coolest = min(heat, key=lambda name: heat[name])
        return f"{coolest} is the coolest room now, with {heat[coolest]:.0f} Wh of recent heat"

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the heat by cluster name, because numbers may change."""
        return {"heat": {name: list(warm) for name, warm in self._heat.items()}}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Continue from the result of `save`."""
        self._heat = {name: (warm, at_s) for name, (warm, at_s) in saved["heat"].items()}

    def _now(self, name: str, now: float) -> float:
        warm, at_s = self._heat.get(name, (0.0, now))
        return float(warm * 0.5 ** ((now - at_s) / self.settings.half_life_s))
