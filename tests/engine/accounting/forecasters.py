"""Policies that predict, and policies that hold, as a test needs them."""

from collections.abc import Callable
from typing import Any

from outrider.api import (
    NOWHERE,
    Choice,
    Job,
    Policy,
    PolicySettings,
    Prediction,
    Predicts,
    SiteView,
)
from outrider.model import events as ev
from outrider.testing.fixtures import HandSite, chance

Says = Callable[[Job, int, SiteView], Prediction | None]
REASONS_OF_EVICTIONS = ("owner", "reboot", "preempted", "drained", "failed_start", "unknown")


class Drawing(Policy):
    """Starts every job on any free machine, and predicts nothing."""

    name = "drawing"
    description = "for tests: any free machine"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(view.draw(self.rng), "any")


class Forecaster(Predicts, Drawing):
    """Starts every job on any free machine, and predicts what `says` answers.

    `asked` holds (job, machine) of every question, in order.
    """

    name = "forecaster"
    description = "for tests: predicts what it was told to"

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self.says: Says = by_place
        self.asked: list[tuple[int, int]] = []

    def predict(self, job: Job, machine: int, view: SiteView) -> Prediction | None:
        self.asked.append((job.number, machine))
        return self.says(job, machine, view)


class Deferring(Forecaster):
    """Defers each job until the moment that `until_s` says of it."""

    name = "deferring"

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self.until_s: Callable[[Job], float] = lambda job: 0.0

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        if may_defer and view.now < self.until_s(job):
            return Choice(NOWHERE, "hold")
        return super().choose(job, evaluation, view, may_defer)


def deferring(**patience_h: float) -> Deferring:
    """Defers the jobs of these VOs for so many hours after their submission."""
    made = Deferring(PolicySettings(), chance("deferring"))
    made.until_s = lambda job: (job.submit_s or 0.0) + 3600.0 * patience_h.get(job.spec.vo, 0.0)
    return made


def forecaster() -> Forecaster:
    """One that predicts by the place."""
    return Forecaster(PolicySettings(), chance("forecaster"))


def by_place(job: Job, machine: int, view: SiteView) -> Prediction:
    """A guess that depends on nothing but what every feeder of the engine sees alike."""
    cluster = sorted(view.cluster_names).index(view.cluster_names[view.cluster_of(machine)])
    chance = (1 + 3 * cluster + view.hour_of_day() % 4) / 12
    return Prediction(min(1.0, chance), 1800.0 * (1 + cluster))


class Forecast:
    """A site with one machine whose runs are predicted and ended one after the other."""

    def __init__(self) -> None:
        self.hand = HandSite(Forecaster)
        self.hand.machines(1)
        self.policy = self.hand.policy
        assert isinstance(self.policy, Forecaster)
        self.scored = self.hand.runner.predictions
        self._jobs = 0

    def run(
        self, predicted: Prediction | None, ending: int, reason: str | None = None,
        run_s: float = 60.0,
    ) -> None:  # fmt: skip
        """One job runs for so long and ends like this."""
        hand, job = self.hand, self._jobs
        self._jobs += 1
        assert isinstance(self.policy, Forecaster)
        self.policy.says = lambda *_: predicted
        hand.submit(job)
        assert hand.tick() == [job]
        hand.now += run_s
        hand.tell(ending, job, reason)
        if ending == ev.EVICTED:
            hand.tell(ev.REMOVED, job, "removed")  # or it would run again

    def chance(self, probability: float, evicted: bool) -> None:
        """One run of which only this was predicted."""
        end = (ev.EVICTED, "owner") if evicted else (ev.COMPLETED, None)
        self.run(Prediction(probability), *end)

    def report(self) -> dict[str, Any]:
        """The calibration until now."""
        report = self.hand.runner.calibration(self.hand.now)
        assert report is not None
        return report
