"""No decision depends on future run times: the property, over all policies and estimators.

At a moment the true run times of all jobs that have not started are permuted among them. Until the
first of these ends, nobody can know, so every decision is the same, with its reason and its scores.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from outrider.formats.job_classes import class_rule
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.model.decisions import DEFER, SHRINK, START, Decision
from outrider.model.events import COMPLETED
from outrider.model.modes import DISCIPLINES, STRICT, Discipline
from outrider.plugins.finding import (
    ESTIMATORS,
    POLICIES,
    find,
    load_policy,
    make_estimator,
    make_policy,
)
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import LEARNED, REQUESTED, default_rule, estimate_rule, estimated
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row

JOBS = 110
MOMENT_S = 6000.0
SHORTEST_S, LONGEST_S = 500.0, 3000.0
"""Run times on both sides of the papers' 900 s; the shortest leaves time for decisions."""
MOST_CPUS = {"serial": 1, "parallel": 5}
CPUS_N = {"serial": 10, "parallel": 24}


class Asked(NamedTuple):
    """Configuration of a run: the policy, and the information that it gets."""

    policy: str
    estimates: str | None
    class_by: str | None = None
    kind: str = "serial"
    discipline: Discipline = STRICT
    estimator: str = LEARNED


class Seen(NamedTuple):
    """Result: decisions with time and action, and the first end of some jobs."""

    decisions: list[tuple[float, str, str]]
    started: set[int]
    first_end_s: float


def lines_of(kind: str, run_s: np.ndarray) -> list[str]:
    """Return lines of jobs of a busy site; all but their run times depend on the number alone."""
    rng = np.random.default_rng(7)
    gaps = rng.exponential(80.0 if kind == "serial" else 110.0, JOBS)
    submit_s = np.cumsum(gaps).round()
    cpus = rng.integers(1, MOST_CPUS[kind] + 1, JOBS)
    requests = rng.choice([-1, 600, 899, 900, 3600, 7200], JOBS)
    return [
        row(
            n, submit_s[n], run_s[n], cpus[n], time_asked=requests[n], user=n % 7, group=n % 3,
            queue=1 + n % 2, partition=n % 2,
        )
        for n in range(JOBS)
    ]  # fmt: skip


def truth() -> np.ndarray:
    return np.random.default_rng(8).uniform(SHORTEST_S, LONGEST_S, JOBS).round()


def made(folder: Path, kind: str, class_by: str | None, run_s: np.ndarray) -> Workload:
    folder.mkdir(exist_ok=True)
    path = file_of(folder, *lines_of(kind, run_s), header=f"; MaxProcs: {CPUS_N[kind]}\n")
    return read_swf(path, class_by=None if class_by is None else class_rule(class_by))


def watched(asked: Asked, workload: Workload, ends_of: set[int]) -> Seen:
    """Run until the first of these jobs ends; without any, until the given moment."""
    rule = default_rule(workload) if asked.estimates is None else estimate_rule(asked.estimates)
    decisions: list[tuple[float, str, str]] = []
    started: set[int] = set()

    def keep(decision: Decision) -> None:
        decisions.append((decision.time_s, decision.action, repr(decision)))
        if decision.action in (START, SHRINK):  # a planner may start a job on fewer CPUs
            started.add(decision.job)

    run = GridRun(
        estimated(workload, rule, 0),
        [make_policy(asked.policy, {}, 3, "test")],
        keep,
        until_s=None if ends_of else MOMENT_S,
        discipline=asked.discipline,
        estimator=(make_estimator(asked.estimator, 3, "test") if rule.kind == LEARNED else None),
    )
    for time_s, kind, subject, _ in run.stream():
        if kind == COMPLETED and subject in ends_of:
            return Seen(decisions, started, time_s)
    return Seen(decisions, started, np.inf)


class Compared(NamedTuple):
    """Return the decisions until the first of the permuted jobs ends, in both worlds."""

    one: list[str]
    other: list[str]
    acts: int
    """Starts, shrinks, preemptions and resumptions after the moment, in the first world."""
    end_s: float
    """Time at which the first of the permuted jobs ends, in either world."""


def compared(folder: Path, asked: Asked) -> Compared:
    run_s = truth()
    first = made(folder / "one", asked.kind, asked.class_by, run_s)
    started = watched(asked, first, set()).started
    waiting = [n for n in range(JOBS) if n not in started]
    queued = sum(first.submit_s[n] <= MOMENT_S for n in waiting)
    assert queued >= 8, "a queue to choose from"
    permuted = run_s.copy()
    in_order = np.array(waiting)[np.argsort(run_s[waiting])]
    permuted[in_order] = run_s[in_order[::-1]]  # the shortest gets the longest
    second = made(folder / "other", asked.kind, asked.class_by, permuted)
    one, other = (watched(asked, world, set(waiting)) for world in (first, second))
    end_s = min(one.first_end_s, other.first_end_s)
    parts = [
        [text for time_s, _, text in seen.decisions if time_s < end_s] for seen in (one, other)
    ]
    acts = sum(MOMENT_S < time_s < end_s and act != DEFER for time_s, act, _ in one.decisions)
    return Compared(parts[0], parts[1], acts, end_s)


def assert_nobody_knows(folder: Path, asked: Asked) -> None:
    found = compared(folder, asked)
    assert found.one == found.other
    assert found.acts >= 2, "decisions in which it could matter"


def shipped() -> list[str]:
    """Return policies that any daemon can run; those that need the truth declare it."""
    names = sorted(find(POLICIES))
    return [name for name in names if not load_policy(name).needs_oracle]


def test_only_bounds_for_judging_ask_for_the_truth() -> None:
    assert set(find(POLICIES)) - set(shipped()) == {"clairvoyant", "clairvoyant_jobs"}


@pytest.mark.parametrize("kind", CPUS_N)
@pytest.mark.parametrize("estimates", [REQUESTED, LEARNED])
@pytest.mark.parametrize("policy", shipped())
def test_no_decision_depends_on_how_long_waiting_jobs_will_run(
    tmp_path: Path, policy: str, estimates: str | None, kind: str
) -> None:
    assert_nobody_knows(tmp_path, Asked(policy, estimates, kind=kind))


@pytest.mark.parametrize("policy", ["sjf", "f1", "sarsa", "edf"])
@pytest.mark.parametrize("estimator", sorted(find(ESTIMATORS)))
def test_no_estimator_knows_how_long_waiting_jobs_will_run(
    tmp_path: Path, estimator: str, policy: str
) -> None:
    assert_nobody_knows(tmp_path, Asked(policy, LEARNED, estimator=estimator))


def test_the_default_tells_what_users_requested(tmp_path: Path) -> None:
    workload = made(tmp_path, "serial", None, truth())
    assert (workload.class_source, default_rule(workload).word) == ("requested:900", REQUESTED)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_no_reservation_knows_how_long_waiting_jobs_will_run(
    tmp_path: Path, discipline: Discipline
) -> None:
    asked = Asked("sjf", None, kind="parallel", discipline=discipline)
    assert_nobody_knows(tmp_path, asked)


@pytest.mark.parametrize("class_by", ["requested:900", "queue:2", "partition:1", "none"])
@pytest.mark.parametrize("policy", ["edf", "sdj", "sarsa"])
def test_no_class_that_a_user_could_have_said_tells_it(
    tmp_path: Path, policy: str, class_by: str
) -> None:
    assert_nobody_knows(tmp_path, Asked(policy, REQUESTED, class_by))


BROKEN = [
    Asked("sjf", "exact"),
    Asked("sjf", "lognormal:0.1"),
    Asked("f1", "exact", kind="parallel"),
    Asked("edf", REQUESTED, "truth:900"),
    Asked("sdj", REQUESTED, "truth:900"),
    Asked("sarsa", REQUESTED, "truth:900"),
    Asked("sarsa", LEARNED, "truth:900"),
    Asked("sjf", LEARNED, "truth:900"),
]


@pytest.mark.parametrize("asked", BROKEN, ids=lambda asked: "-".join(map(str, asked[:3])))
def test_where_the_wall_is_open_the_decisions_do_differ(tmp_path: Path, asked: Asked) -> None:
    """The tests above can fail: decisions differ where policies see the truth."""
    found = compared(tmp_path, asked)
    assert found.one != found.other


TYPED = [
    ("sarsa", (), True),
    ("sarsa", ("--estimates", "learned"), True),
    ("sjf", ("--interactive-below", 2000), True),
    ("sjf", ("--estimates", "exact"), False),
    ("edf", ("--class-by", "truth:900"), False),
]


@pytest.mark.parametrize(("policy", "words", "is_wall"), TYPED)
def test_so_it_is_for_the_command_as_people_type_it(
    tmp_path: Path, policy: str, words: tuple[object, ...], is_wall: bool
) -> None:
    rule = str(words[1]) if words[:1] == ("--estimates",) and is_wall else REQUESTED
    end_s = compared(tmp_path, Asked(policy, rule)).end_s
    hashes = set()
    for world in ("one", "other"):
        report = outrider(
            "replay", tmp_path / world / "desk.swf", "--policy", policy, "--seed", 3, *words,
            "--until", end_s - 1.0, "--json",
        ).json()["runs"][0]  # fmt: skip
        assert bool(report["truth"]) is not is_wall
        hashes.add(report["ledger_sha256"])
    assert len(hashes) == (1 if is_wall else 2)
