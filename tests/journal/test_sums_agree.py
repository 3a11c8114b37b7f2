"""Sums of goodput, badput and wasted runs: equal in all places that compute them."""

import random
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from outrider.api import Batch
from outrider.journal import Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.report.past import read_past
from outrider.report.windows import Window
from outrider.service.core.core import Core
from outrider.service.views.over_time import OPEN, open_jobs, read_use
from outrider.twin.observed import observe
from tests.fixtures.cores import T, core_of
from tests.fixtures.plain import plain

HOUR_S: Final = 3_600.0
END_S: Final = T + 24 * HOUR_S
REASONS: Final = ("owner", "killed", "failed_start", "reboot")


class Sums(NamedTuple):
    """Sums over all ended runs: CPU-seconds, and the number of wasted runs."""

    goodput_s: float
    badput_s: float
    thrown_away: int


def a_day(rng: random.Random) -> list[NamedEvent]:
    """Jobs of one to four CPUs on ten machines: some complete, some do not, some are suspended."""
    told: list[NamedEvent] = [
        (T, ev.JOINED, f"m{n}", MachineSpec("lab", cpus=4)) for n in range(10)
    ]
    for n in range(10):
        time_s, machine = T, f"m{n}"
        for turn in range(rng.randint(3, 9)):
            job, cpus = f"{n}.{turn}", rng.randint(1, 4)
            time_s += rng.uniform(1.0, HOUR_S)
            told.append(
                (time_s, ev.SUBMITTED, job, JobSpec(user=f"u{n % 3}", vo=f"v{n % 2}", cpus=cpus))
            )
            for _ in range(rng.randint(1, 3)):  # all tries but the last are thrown away
                time_s += rng.uniform(1.0, 600.0)
                told.append((time_s, ev.STARTED, job, (machine, cpus)))
                time_s += rng.uniform(1.0, HOUR_S)
                if rng.random() < 0.3:
                    told.append((time_s, ev.SUSPENDED, job, None))
                    time_s += rng.uniform(1.0, 900.0)
                    told.append((time_s, ev.RESUMED, job, None))
                    time_s += rng.uniform(1.0, HOUR_S)
                told.append((time_s, ev.EVICTED, job, rng.choice(REASONS)))
            how = rng.random()
            if how < 0.6:
                told[-1] = (time_s, ev.COMPLETED, job, None)
            elif how < 0.8:
                told[-1] = (time_s, ev.REMOVED, job, "user")
            else:
                told.append((time_s + 1.0, ev.REMOVED, job, "user"))
            if time_s > END_S - 4 * HOUR_S:
                break
    return sorted((event for event in told if event[0] < END_S), key=lambda event: event[0])


class Recorded(NamedTuple):
    core: Core
    path: Path


@pytest.fixture(params=[1, 2, 3])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    """A daemon's core that received a day of events, and the journal of it."""
    core, told = core_of("log", policies={"fifo": {}}), a_day(random.Random(request.param))
    core.begin()
    with Journal(tmp_path / "journal.sqlite") as journal:
        for begin in range(0, len(told), 25):
            events = told[begin : begin + 25]
            batch = Batch(events=events, cursor=None)
            until_s = events[-1][0] if begin + 25 < len(told) else END_S
            stream = core.take("log", batch, until_s)
            while core.step(stream, 1_000):
                pass
            entry = core.entry("log", batch)
            assert entry is not None
            journal.append(entry)
    assert not any(core.merger.set_aside.values())
    return Recorded(core, tmp_path / "journal.sqlite")


def of_the_daemon(recorded: Recorded) -> Sums:
    counted = recorded.core.accounting
    return Sums(counted.goodput_s, counted.badput_s, sum(counted.evictions_by_reason().values()))


def of_the_report(recorded: Recorded) -> Sums:
    [counted] = read_past(recorded.path, [Window(T, END_S + 1.0)]).counted
    total = counted.runs.total
    assert (total.goodput_s, total.badput_s) == pytest.approx(
        (counted.report["goodput_s"], counted.report["badput_s"])
    )
    return Sums(total.goodput_s, total.badput_s, total.thrown_away)


def of_the_twin(recorded: Recorded) -> Sums:
    total = observe(recorded.path).tally.total
    return Sums(total.goodput_s, total.badput_s, total.evictions)


def of_the_runs_on_record(recorded: Recorded) -> Sums:
    with Journal(recorded.path, read_only=True) as journal:
        runs = [run for _, run in journal.runs()]
        sums = journal.run_sums(T, HOUR_S, END_S, 5.0, waits=False)
    good_s = sum(run.cpus * run.run_s for run in runs if not run.reason)
    bad_s = sum(run.cpus * run.run_s for run in runs if run.reason)
    assert sums is not None
    assert sums.cpu_s == pytest.approx(good_s + bad_s)
    return Sums(good_s, bad_s, sum(bool(run.reason) for run in runs))


SUMMED_BY: Final = {
    "the report": of_the_report,
    "the twin": of_the_twin,
    "the runs on record": of_the_runs_on_record,
}


@pytest.mark.parametrize("who", SUMMED_BY)
def test_the_sums_are_those_of_the_daemon(who: str, recorded: Recorded) -> None:
    told = of_the_daemon(recorded)
    assert min(told) > 0
    assert SUMMED_BY[who](recorded) == pytest.approx(told)


async def test_the_page_draws_as_many_cpu_seconds_suspended_ones_included(
    recorded: Recorded,
) -> None:
    jobs = await open_jobs(recorded.core)
    use = plain(read_use("all", END_S, jobs, recorded.path, {}, "shadow"))
    step_s = use["time_s"][1] - use["time_s"][0]
    drawn_s = {fate: sum(means) * step_s for fate, means in use["cpus"].items()}
    with Journal(recorded.path, read_only=True) as journal:
        runs = [run for _, run in journal.runs()]
    for fate, is_thrown_away in (("completed", False), ("thrown_away", True)):
        held_s = sum(
            run.cpus * (run.end_s - run.start_s)
            for run in runs
            if bool(run.reason) == is_thrown_away
        )
        assert drawn_s[fate] == pytest.approx(held_s, rel=1e-4)
    assert (drawn_s[OPEN] > 0) == any(job.cpus for job in jobs)
    worked_s = sum(run.cpus * run.run_s for run in runs)
    assert drawn_s["completed"] + drawn_s["thrown_away"] >= worked_s
