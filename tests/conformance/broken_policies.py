"""Policies that each break their contract in one way."""

import inspect
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import inf
from typing import Annotated, Any, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from outrider.api import (
    NOWHERE,
    START,
    Choice,
    Job,
    Learns,
    Move,
    Outcome,
    Plans,
    Policy,
    PolicySettings,
    Queue,
    SiteView,
)
from outrider.replay.grid_run import GridRun
from outrider.replay.run import CampusRun


class Sound(Policy):
    """Policy that uses any free machine, in the order of arrival: breaks nothing."""

    name: ClassVar[str] = "sound"
    description: ClassVar[str] = "any free machine"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        machine = view.draw(self.rng)
        share = view.free_n[view.cluster_of(machine)] / view.free_total
        return Choice(machine, "any", share)


class TakesTheFirstMachine(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(0, "first")


class NeverStarts(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(NOWHERE, "lazy", 1.0)


class DrawsFromTheGlobalGenerator(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(view.draw(random._inst), "any")


class SharesItsMemoryThroughTheClass(Sound):
    chosen: ClassVar[list[int]] = []

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        self.chosen.append(job.number)
        clusters = [number for number, free in enumerate(view.free_n) if free]
        return Choice(view.draw_in(clusters[len(self.chosen) % len(clusters)], self.rng), "turn")


class ChangesTheSite(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        choice = super().choose(job, evaluation, view, may_defer)
        view.free_n[view.cluster_of(choice.machine)] -= 1  # type: ignore[index]
        return choice


class TellsTheChanceOfTheMachine(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(view.draw(self.rng), "any", 1.0 / view.free_total)


class AlwaysCertain(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(view.draw(self.rng), "any", 1.0)


def callers(most: int) -> Iterator[object]:
    """Yield the objects whose methods called, nearest first; `inspect.stack` would read sources."""
    frame = inspect.currentframe()
    for _ in range(most):
        frame = frame and frame.f_back
        if frame is None:
            return
        yield frame.f_locals.get("self")


class SeesTheFuture(Sound):
    """Policy that searches its callers' frames for the replayed trace."""

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        for run in callers(12):
            if isinstance(run, CampusRun):
                last_s = run.campus.submit_s[-1]
                return Choice(view.draw(random.Random(f"{last_s} {job.number}")), "any")
        return super().choose(job, evaluation, view, may_defer)


class CannotDoWithoutWatts(Sound):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        min_watts = min(watts for watts, n in zip(view.active_w, view.free_n, strict=True) if n)  # type: ignore[type-var]
        return Choice(view.draw_in(list(view.active_w).index(min_watts), self.rng), "watts")


class KnowsOnlyTheClustersOfTheBeginning(Sound):
    def __init__(self, settings: Any, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.seen: list[int] = []

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        self.seen = self.seen or [0] * len(view.free_n)
        machine = view.draw(self.rng)
        self.seen[view.cluster_of(machine)] += 1
        return Choice(machine, "any")


class Learner(Learns, Sound):
    """Policy that counts runs by cluster: breaks nothing; the next ones get it wrong."""

    def __init__(self, settings: Any, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.runs: dict[str, float] = {}

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        if outcome.machine != NOWHERE:
            name = view.cluster_names[outcome.cluster]
            self.runs[name] = self.runs.get(name, 0.0) + 1.0
        return ()

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        return {name: self.runs.get(name, 0.0) for name in view.cluster_names}

    def save(self, view: SiteView) -> dict[str, Any]:
        return {"runs": self.runs}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        self.runs = dict(saved["runs"])


class ForgetsAtARestart(Learner):
    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        self.runs = {}


class SavesClustersByNumber(Learner):
    def save(self, view: SiteView) -> dict[str, Any]:
        return {"runs": [self.runs.get(name, 0.0) for name in view.cluster_names]}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        self.runs = dict(zip(view.cluster_names, saved["runs"], strict=False))


class SavesWhatIsNoPlainData(Learner):
    def save(self, view: SiteView) -> dict[str, Any]:
        return {"runs": self.runs, "self": self}


class LearnsFromBeingAsked(Learner):
    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        choice = super().choose(job, evaluation, view, may_defer)
        name = view.cluster_names[view.cluster_of(choice.machine)]
        self.runs[name] = self.runs.get(name, 0.0) + 1.0
        return choice


class ScoresByWhatIsNoNumber(Learner):
    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        return dict.fromkeys(view.cluster_names, float("nan"))


class KnowsOnlyTwoEndings(Learner):
    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        return [{"completed": 1.0, "evicted": -1.0}[outcome.ending]]


class SaysNothing(Sound):
    def explain(self, job: Job, view: SiteView) -> str:
        return ""


class UnclearSettings(PolicySettings, frozen=True):
    patience: Annotated[int, Meta(ge=1, description="Rounds.")] = 3
    timeout: Annotated[float, Meta(gt=0, description="How long.")] = 60.0


class LeavesAUnitOpen(Sound):
    settings_type = UnclearSettings


class ForbiddenDefault(PolicySettings, frozen=True):
    grace_s: Annotated[float, Meta(gt=0, description="Seconds of grace.")] = 0.0


class HasAForbiddenDefault(Sound):
    settings_type = ForbiddenDefault


class SilentSettings(PolicySettings, frozen=True):
    grace_s: float = 1.0


class DoesNotSayWhatASettingIsFor(Sound):
    settings_type = SilentSettings


class HasAStalePreset(Sound):
    presets: ClassVar = {"fast": {"grace_seconds": 1.0}}


class BadlyNamed(Sound):
    name: ClassVar[str] = "Badly-Named"


class FromTheFuture(Sound):
    api_version: ClassVar[int] = 99


class SoundPlanner(Plans, Policy):
    """Planner that starts every job that fits, in the order of arrival: breaks nothing."""

    name: ClassVar[str] = "sound_planner"
    description: ClassVar[str] = "starts whatever fits"
    api_version = 1

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        left = {machine: view.cpus_left(machine) for machine in self.machines(view)}
        used: dict[int, Counter[str]] = defaultdict(Counter)  # of resources, in this plan
        for job in queue.jobs:
            asked = job.spec.cpus
            amounts = {} if job.spec.resources is None else dict(job.spec.resources.amounts())
            for machine, cpus in left.items():
                there = view.resources_left(machine)
                holds = all(
                    used[machine][name] + n <= there.get(name, inf) for name, n in amounts.items()
                )
                if cpus >= asked and holds and view.may_use(job, machine):
                    left[machine] -= asked
                    used[machine].update(amounts)
                    yield Move(START, job.number, machine, asked, "fits", 1.0)
                    break

    def machines(self, view: SiteView) -> list[int]:
        return list(range(view.machines_n))


class PlansForAStranger(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [replace(move, job=1_000_000) for move in super().plan(queue, view)]


class PlansMoreThanThereIs(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [Move(START, job.number, 0, job.spec.cpus, "all", 1.0) for job in queue.jobs]


class PlansOnAMachineThatIsNotThere(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [replace(move, machine=99) for move in super().plan(queue, view)]


class PlansAJobTwice(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [move for move in super().plan(queue, view) for _ in range(2)]


class StartsOnFewerCpus(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [replace(move, cpus=1) for move in super().plan(queue, view)]


class PlansNothing(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return ()


class PlansWithoutAReason(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        return [replace(move, reason="") for move in super().plan(queue, view)]


class SpoilsTheQueue(SoundPlanner):
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        queue.submit_s[:] += 1.0
        return super().plan(queue, view)


class PlansByTheGlobalGenerator(SoundPlanner):
    def machines(self, view: SiteView) -> list[int]:
        return random.sample(super().machines(view), view.machines_n)


class PlansByTheFuture(SoundPlanner):
    """Planner that searches its callers' frames for the replayed workload."""

    def machines(self, view: SiteView) -> list[int]:
        machines = super().machines(view)
        for run in callers(20):
            if isinstance(run, GridRun):
                last_s = run.workload.submit_s[-1]
                random.Random(f"{last_s} {view.now}").shuffle(machines)
        return machines


class LearnsFromPlanning(SoundPlanner):
    """Planner that learns from the number of its calls."""

    plans_n = 0

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        self.plans_n += 1
        return super().plan(queue, view)

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        return {"plans": float(self.plans_n)}

    def save(self, view: SiteView) -> dict[str, Any]:
        return {"plans": self.plans_n}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        self.plans_n = saved["plans"]
