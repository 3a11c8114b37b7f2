"""All worlds, all treatments; then each learner against its frozen self and the rules."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import exp, log
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from outrider.formats.workload import INTERACTIVE, Floats
from outrider.model.errors import ConfigurationError
from outrider.model.events import COMPLETED, STARTED, Event
from outrider.model.utility import TimeUtility, utility_of
from outrider.plugins.finding import POLICIES, find, load_policy
from outrider.replay.grid_run import GridRun
from outrider.replay.run import keep_nothing
from outrider.simulation.estimates import EXACT, oracle_used
from outrider.simulation.generators.grids.workloads import PROXY
from outrider_lab.comparison.difference import compared
from outrider_lab.drift.worlds import ORDERS, PLANS, WORLDS, Changing, Size
from outrider_lab.reporting.claims import interval_of
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload

# -- world run -------------------------------------------------------------------------------------
# One run of a world under one treatment, and how its jobs fared before and after the change.

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
"""Windows by submission: before and after the change; soon is the first third after it."""
SHORTEST_S: Final = 10.0
"""Run time below which a slowdown counts as if a job took so long."""


class Treatment(NamedTuple):
    """A policy, and when it learns."""

    policy: str
    mode: str

    def __str__(self) -> str:
        return self.policy if self.mode == STATIC else f"{self.policy}, {self.mode}"


def spec_of(world: str, treatment: Treatment, size: Size, seed: int) -> RunSpec:
    """Return the run of a treatment in a world; the seed draws the jobs and the choices."""
    settings = ((LEARN, False),) if treatment.mode == FROZEN else ()
    drawn = DrawnWorkload("world", seed, (("world", world), *size._asdict().items()))
    policy = PolicySpec(treatment.policy, settings)
    return RunSpec(_WORK, drawn, policy, seed, (("mode", treatment.mode),))


def treatments_of(kind: str, learners: Iterable[str] = ()) -> list[Treatment]:
    """Return the treatments in worlds of a kind: learners in three modes, then installed rules.

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
                f'--policy "{treatment.policy}": has no setting "{LEARN}" to freeze it by; '
                "expected a policy that learns and has one"
            )


class WatchedRun(GridRun):
    """A run that remembers when each job first started and when it was done (else nan)."""

    stop_learning_s: float = np.inf

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run like `GridRun.run`, and set `start_s` and `end_of_s` by job."""
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
    """Return figures of the jobs by window; None where a window has no such jobs.

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
    """Ignore the progress of a run."""


# -- suite -----------------------------------------------------------------------------------------

FIGURES: Final = ("slowdown", "interactive_wait_s", "batch_wait_s", "utility")
_MORE_IS_BETTER: Final = frozenset({"utility"})
PRIMARY: Final = {ORDERS: "slowdown", PLANS: "utility"}
"""Figure of the verdict over all worlds of a kind, fixed before any run."""
FEWEST_SEEDS: Final = 5

Row = tuple[str, Treatment]
"""A world and who acts there."""
Treatments = Mapping[str, Sequence[Treatment]]
"""Treatments by world, in the order of the rows."""
Runs = Mapping[Row, Mapping[int, Mapping[str, Mapping[str, float | None]]]]
"""Figures by row, then by seed, window and name."""


class DriftSuite:
    """A study, see `outrider_lab.running.run_all.Study`; a row is a treatment in a world.

    Args:
        worlds: names out of `WORLDS`.
        seeds: all treatments of a world meet the same arrivals with a seed.
        size: of the worlds.
        learners: policies to compare with their frozen selves; none: those installed.
    """

    def __init__(
        self, worlds: Sequence[str], seeds: Sequence[int], size: Size, learners: Sequence[str] = ()
    ) -> None:
        self.worlds = worlds
        self.seeds = seeds
        self.size = size
        self.treatments = {name: treatments_of(WORLDS[name].kind, learners) for name in worlds}

    def points(self) -> list[tuple[Row, int]]:
        """Return every treatment, world by world and seed by seed."""
        return [
            ((world, treatment), seed)
            for world, here in self.treatments.items()
            for seed in self.seeds
            for treatment in here
        ]

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """Return the run of a treatment in a world with a seed."""
        return spec_of(*row, self.size, seed)

    def sum_up(self, results: Runs) -> dict[str, Any]:
        """Summarise the results of all runs.

        Returns:
            settings; rows: world, policy, mode, and by window and figure the mean over seeds and
            its worst; comparisons: each learner against another in a world; verdicts: each learner
            against its frozen selves over all worlds that drift.
        """
        return {
            "settings": {
                "worlds": list(self.worlds),
                "seeds": list(self.seeds),
                "size": self.size._asdict(),
                "class_source": {ORDERS: PROXY.source, PLANS: "none"},
                "truth": oracle_used(PROXY.source, EXACT),
                "rivals": {
                    name: [str(treatment) for treatment in here]
                    for name, here in self.treatments.items()
                },
            },
            "rows": [_row(*key, results[key]) for key in _in_order(self.treatments, results)],
            "comparisons": list(_comparisons(self.treatments, results)),
            "verdicts": list(_verdicts(self.treatments, results)),
        }


def _in_order(treatments: Treatments, runs: Runs) -> list[Row]:
    keys = [(world, treatment) for world, here in treatments.items() for treatment in here]
    return [key for key in keys if key in runs]


def _row(world: str, treatment: Treatment, by_seed: Mapping[int, Any]) -> dict[str, Any]:
    """Return means over seeds of each seed's own mean; worst: of the seeds."""
    out: dict[str, Any] = {
        "world": world,
        "kind": WORLDS[world].kind,
        "changes": WORLDS[world].changes,
        "policy": treatment.policy,
        "mode": treatment.mode,
        "seeds": len(by_seed),
    }
    for window in WINDOWS:
        out[window] = {}
        for figure in FIGURES:
            values = [r[window][figure] for r in by_seed.values() if r[window][figure] is not None]
            worst = min if figure in _MORE_IS_BETTER else max
            out[window][figure] = (
                {"mean": fmean(values), "worst": worst(values)} if values else None
            )
    return out


# -- who is better ------------------------------------------------------------------------------


def _comparisons(treatments: Treatments, runs: Runs) -> Iterable[dict[str, Any]]:
    """Return each learner against each other treatment of the same world, after the change."""
    for world, here in treatments.items():
        for ours in here:
            if ours.mode != LEARNING:
                continue
            for theirs in here:
                if theirs == ours or not {(world, ours), (world, theirs)} <= runs.keys():
                    continue
                if theirs.policy != ours.policy and theirs.mode in (STOPPED, FROZEN):
                    continue  # another learner's frozen selves are that one's affair
                yield {
                    "world": world,
                    "policy": ours.policy,
                    "against": str(theirs),
                    "windows": {
                        window: {
                            figure: _difference(runs, world, ours, theirs, window, figure)
                            for figure in FIGURES
                        }
                        for window in WINDOWS
                    },
                }


def _pairs(
    runs: Runs, world: str, ours: Treatment, theirs: Treatment, window: str, figure: str
) -> dict[int, tuple[float, float]]:
    """Return the figure under both, by seed, where it is known of both."""
    first, second = runs.get((world, ours), {}), runs.get((world, theirs), {})
    found = {}
    for seed in first.keys() & second.keys():
        a, b = first[seed][window][figure], second[seed][window][figure]
        if a is not None and b is not None:
            found[seed] = (a, b)
    return dict(sorted(found.items()))


def _difference(
    runs: Runs, world: str, ours: Treatment, theirs: Treatment, window: str, figure: str
) -> dict[str, Any] | None:
    pairs = list(_pairs(runs, world, ours, theirs, window, figure).values())
    if not pairs:
        return None
    less = [a - b for a, b in pairs]
    whole = fmean(b for _, b in pairs)
    interval = interval_of(less)
    return {
        "difference": fmean(less),
        "interval": interval,
        "ratio": fmean(a for a, _ in pairs) / whole if whole else None,
        "seeds": len(pairs),
        "verdict": compared(interval, len(pairs), FEWEST_SEEDS, figure in _MORE_IS_BETTER),
    }


def _verdicts(treatments: Treatments, runs: Runs) -> Iterable[dict[str, Any]]:
    """Judge whether learning on line beats the frozen self over all worlds that drift.

    Once a seed: the mean over worlds of the logarithm of ours over theirs, after the change. Its
    95 % interval over seeds (Student's t) is turned back into a ratio.
    """
    learners = dict.fromkeys(
        (WORLDS[world].kind, treatment.policy)
        for world, here in treatments.items()
        for treatment in here
        if treatment.mode == LEARNING
    )
    for kind, policy in learners:
        worlds = [name for name in treatments if WORLDS[name].kind == kind and WORLDS[name].drifts]
        for mode in (STOPPED, FROZEN):
            yield {
                "kind": kind,
                "policy": policy,
                "against": mode,
                "figure": PRIMARY[kind],
                "worlds": worlds,
                **_over_worlds(
                    runs, worlds, Treatment(policy, LEARNING), Treatment(policy, mode), kind
                ),
            }


def _over_worlds(
    runs: Runs, worlds: Sequence[str], ours: Treatment, theirs: Treatment, kind: str
) -> dict[str, Any]:
    figure = PRIMARY[kind]
    by_world = [_pairs(runs, world, ours, theirs, "after", figure) for world in worlds]
    seeds = sorted(set.intersection(*(set(pairs) for pairs in by_world))) if by_world else []
    logs = [
        fmean(log(max(a, 1e-9) / max(b, 1e-9)) for a, b in (pairs[seed] for pairs in by_world))
        for seed in seeds
    ]
    interval = interval_of(logs)
    return {
        "seeds": len(seeds),
        "ratio": exp(fmean(logs)) if logs else None,
        "interval": None if interval is None else tuple(exp(end) for end in interval),
        "verdict": compared(interval, len(seeds), FEWEST_SEEDS, figure in _MORE_IS_BETTER),
    }
