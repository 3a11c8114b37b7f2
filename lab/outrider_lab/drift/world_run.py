"""One run of a world under one treatment, and how its jobs fared before and after the change."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from outrider.formats.workload import INTERACTIVE, Floats
from outrider.model.errors import ConfigurationError
from outrider.model.events import COMPLETED, STARTED, Event
from outrider.model.utility import TimeUtility, utility_of
from outrider.plugins.finding import POLICIES, find, load_policy
from outrider.replay.grid_run import GridRun
from outrider.replay.keeping import keep_nothing
from outrider_lab.drift.worlds import ORDERS, PLANS, WORLDS, Changing, Size
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload

_WORK: Final = f"{__name__}:run_in_world"

LEARNING: Final = "learning"
STOPPED: Final = "stopped"
"""Learned until the change, and nothing after it."""
FROZEN: Final = "frozen"
"""Never learned here: as it was shipped, or made."""
STATIC: Final = "static"

LEARN: Final = "learn"
"""The setting that a policy which learns must have, to be compared with its frozen self."""

_STATICS: Final = {
    ORDERS: ("fifo", "sjf", "edf"),
    PLANS: ("fifo", "aggressive", "replan"),
}
_LEARNERS: Final = {ORDERS: ("sarsa",), PLANS: ("fuzzy_td",)}

WINDOWS: Final = ("before", "after", "soon", "late")
"""By submission: before the change, after it, and of these the first third and the rest."""
SHORTEST_S: Final = 10.0
"""Run time below which a slowdown counts as if a job took so long."""


class Treatment(NamedTuple):
    """A policy, and when it learns."""

    policy: str
    mode: str

    def __str__(self) -> str:
        return self.policy if self.mode == STATIC else f"{self.policy}, {self.mode}"


def spec_of(world: str, treatment: Treatment, size: Size, seed: int) -> RunSpec:
    """The run of a treatment in a world; the seed draws the jobs, and is the policy's too."""
    settings = ((LEARN, False),) if treatment.mode == FROZEN else ()
    drawn = DrawnWorkload("world", seed, (("world", world), *size._asdict().items()))
    policy = PolicySpec(treatment.policy, settings)
    return RunSpec(_WORK, drawn, policy, seed, (("mode", treatment.mode),))


def treatments_of(kind: str, learners: Iterable[str] = ()) -> list[Treatment]:
    """Who meets in worlds of a kind: learners in three modes, then the rules that are installed.

    Args:
        kind: of the worlds.
        learners: by name; none: those of the kind that are installed and can be frozen.
    """
    installed = find(POLICIES)
    names = list(learners) or [
        name for name in _LEARNERS[kind] if name in installed and _can_freeze(name)
    ]
    return [Treatment(name, mode) for name in names for mode in (LEARNING, STOPPED, FROZEN)] + [
        Treatment(name, STATIC) for name in _STATICS[kind] if name in installed
    ]


def _can_freeze(policy: str) -> bool:
    return LEARN in load_policy(policy).settings_type.__struct_fields__


def check_treatments(treatments: Iterable[Treatment]) -> None:
    """Refuse what is wrong before a long run, not after it.

    Raises:
        ConfigurationError, PluginError: a policy is not installed, or cannot stop learning.
    """
    for treatment in treatments:
        if treatment.mode != STATIC and not _can_freeze(treatment.policy):
            raise ConfigurationError(
                f'--policy "{treatment.policy}": has no setting "{LEARN}" to freeze it by; right '
                "would be a policy that learns and has one"
            )


class WatchedRun(GridRun):
    """A run that remembers when each job first started and when it was done (else nan)."""

    stop_learning_s: float = np.inf

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """As `GridRun.run`; afterwards `start_s` and `end_of_s` are known, by job."""
        self.start_s = np.full(len(self.workload.submit_s), np.nan)
        self.end_of_s = self.start_s.copy()
        return super().run(progress or _unwatched)

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        for event in events:
            time_s, kind, subject, _ = event
            if time_s >= self.stop_learning_s:
                self._stop_learning()
            if kind == STARTED and np.isnan(self.start_s[subject]):
                self.start_s[subject] = time_s
            elif kind == COMPLETED:
                self.end_of_s[subject] = time_s
            yield event

    def _stop_learning(self) -> None:
        policy = self.runners[0].policy
        policy.settings = msgspec.structs.replace(policy.settings, **{LEARN: False})
        self.stop_learning_s = np.inf


def run_in_world(spec: RunSpec) -> dict[str, dict[str, float | None]]:
    """Run one spec in this process: figures by window.

    Raises:
        OutriderError: the policy cannot be made, or it failed.
    """
    world, changing = WORLDS[spec.drawn.option("world")], _changing(spec.drawn)
    run = WatchedRun(
        changing.workload, [spec.make_policy()], keep_nothing, utilities=world.utilities
    )
    if spec.option("mode") == STOPPED:
        run.stop_learning_s = changing.change_s
    run.run()
    return figures_of(changing, run.start_s, run.end_of_s, world.utilities)


@lru_cache(maxsize=1)
def _changing(drawn: DrawnWorkload) -> Changing:
    size = Size(jobs=drawn.option("jobs"), steps=drawn.option("steps"))
    return WORLDS[drawn.option("world")].make(drawn.seed, size)


def figures_of(
    changing: Changing, start_s: Floats, end_s: Floats, utilities: Mapping[str, TimeUtility]
) -> dict[str, dict[str, float | None]]:
    """How jobs fared, by window; None where a window has no such jobs.

    Returns:
        By window: ``slowdown``, mean of max(1, turnaround / max(run time, 10 s)), the run time
        being that at speed 1; ``interactive_wait_s`` and ``batch_wait_s``, means; ``utility``, unit
        utility by job, weighed with the work it asked for. Jobs that were never done count with
        no utility, and are in no other mean.
    """
    workload = changing.workload
    turnaround_s = end_s - workload.submit_s
    slowdown = np.maximum(1.0, turnaround_s / np.maximum(workload.run_s, SHORTEST_S))
    wait_s = start_s - workload.submit_s
    interactive = np.array([name == INTERACTIVE for name in workload.job_class])
    work = workload.run_s * workload.cpus
    worth = np.zeros(len(work))
    for name in set(workload.job_class):
        mine = np.array([other == name for other in workload.job_class]) & np.isfinite(end_s)
        worth[mine] = utility_of(utilities, name).unit(turnaround_s[mine], workload.run_s[mine])
    out: dict[str, dict[str, float | None]] = {}
    for window, inside in _windows(changing).items():
        out[window] = {
            "slowdown": _mean(slowdown[inside]),
            "interactive_wait_s": _mean(wait_s[inside & interactive]),
            "batch_wait_s": _mean(wait_s[inside & ~interactive]),
            "utility": float(worth[inside] @ work[inside] / work[inside].sum())
            if inside.any()
            else None,
        }
    return out


def _windows(changing: Changing) -> dict[str, Any]:
    submit_s = changing.workload.submit_s
    after = submit_s > changing.change_s
    soon = after & (submit_s <= changing.change_s + (submit_s[-1] - changing.change_s) / 3.0)
    masks = (~after, after, soon, after & ~soon)
    return dict(zip(WINDOWS, masks, strict=True))


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _unwatched(ratio: float) -> None:
    """Nobody watches the progress."""
