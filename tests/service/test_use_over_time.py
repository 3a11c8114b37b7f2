"""CPUs in use over time: by completed, wasted and running runs."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import web

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.journal import Entry, Journal, run_sums
from outrider.journal.records import RunRecord
from outrider.model.errors import LedgerError
from outrider.model.events import JOINED, STARTED, SUBMITTED
from outrider.service.core.core import Core
from outrider.service.views.over_time import BINS, KeptUseOverTime, OpenJob, read_use
from outrider.service.web.endpoints import over_time
from tests.fixtures.cores import core_of
from tests.fixtures.plain import plain

T = 1_700_000_000.0


def used_by(told: dict[str, Any]) -> dict[str, float]:
    """Return CPU-seconds by outcome."""
    part_s = (told["end_s"] - told["begin_s"]) / BINS
    return {fate: sum(told["cpus"][fate]) * part_s for fate in told["cpus"]}


def test_what_is_used_in_all_parts_together_is_what_the_runs_used(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    end_s = T + 3_600.0
    runs, jobs = [], []
    for _ in range(500):
        start_s = T + float(rng.uniform(-5_000.0, 3_600.0))
        stop_s = start_s + float(rng.exponential(3_000.0))
        cpus = int(rng.integers(1, 9))
        if stop_s <= end_s:
            runs.append(ended(start_s, stop_s, str(rng.choice(["", "owner"])), cpus))
        else:
            jobs.append(OpenJob("", start_s, cpus))
    path = tmp_path / "journal.sqlite"
    with Journal(path) as writing:
        writing.append(Entry(runs=runs))
    told = plain(read_use("1h", end_s, [*jobs, OpenJob("1.0", T, 0)], path, {}, "shadow"))
    expected = dict.fromkeys(("completed", "thrown_away", "open"), 0.0)
    for run in runs:
        fate = "thrown_away" if run.reason else "completed"
        expected[fate] += run.cpus * max(0.0, run.end_s - max(run.start_s, T))
    for job in jobs:
        assert job.since_s is not None
        expected["open"] += job.cpus * (end_s - max(job.since_s, T))
    assert used_by(told) == pytest.approx(expected)
    begun = [run.start_s for run in runs] + [job.since_s for job in jobs if job.since_s]
    assert sum(told["starts"]) == sum(start_s >= T for start_s in begun)
    assert np.diff(told["time_s"]) == pytest.approx([3_600.0 / BINS] * (BINS - 1))


def test_a_run_fills_the_parts_in_which_it_ran(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as writing:
        writing.append(Entry(runs=[ended(T + 900.0, T + 1_800.0, cpus=4)]))
    told = plain(read_use("1h", T + 3_600.0, [], path, {}, "shadow"))
    assert told["cpus"]["completed"] == pytest.approx([0.0] * 30 + [4.0] * 30 + [0.0] * 60)
    assert told["cpus"]["thrown_away"] == [0.0] * BINS
    assert told["starts"] == [0] * 30 + [1] + [0] * 89


def test_watts_are_those_of_the_table_for_the_seconds_at_work(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    half = msgspec.structs.replace(ended(T, T + 1_800.0, "owner"), run_s=900.0)
    elsewhere = msgspec.structs.replace(ended(T, T + 1_800.0), machine="m2", cpus=8)
    with Journal(path) as writing:
        writing.append(Entry(runs=[half, ended(T + 900.0, T + 1_800.0, cpus=4), elsewhere]))
    jobs = [
        OpenJob("", T + 1_800.0, 2, 0, works=True),
        OpenJob("", T + 1_800.0, 2, 0, works=False),
        OpenJob("", T + 1_800.0, 2, 1, works=True),
    ]
    told = plain(read_use("1h", T + 3_600.0, jobs, path, {0: ("m1", 25.0)}, "shadow"))
    watts = told["table_w"]
    assert watts["thrown_away"] == pytest.approx([25.0] * 60 + [0.0] * 60), "half of it suspended"
    assert watts["completed"] == pytest.approx([0.0] * 30 + [100.0] * 30 + [0.0] * 60)
    assert watts["open"] == pytest.approx([0.0] * 60 + [50.0] * 60)
    known, all_s = 2 * 900 + 4 * 900 + 2 * 1_800, 8 * 1_800 + 2 * 1_800
    assert told["watts_known_ratio"] == pytest.approx(known / (known + all_s))


def test_a_journal_without_runs_tells_of_the_jobs_that_are_here(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    Journal(path).close()
    told = plain(read_use("all", T, [OpenJob("", T - 30.0, 2)], path, {}, "shadow"))
    assert (told["begin_s"], told["is_cut"]) == (T - 60.0, False)
    assert told["cpus"]["open"] == [0.0] * 60 + [2.0] * 60


@pytest.fixture
def core() -> Core:
    """An hour after T; one job has run for ten minutes."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", MachineSpec("lab", cpus=4, active_w=120.0)),
        (T, SUBMITTED, "9.0", JobSpec(user="ada", cpus=4)),
        (T + 3_000.0, STARTED, "9.0", ("m1", 4)),
    ]
    feed = core.take(
        "log", Batch(events=events, cursor=None, seen_until_s=T + 3_600.0), T + 3_600.0
    )
    while core.step(feed, 100):
        pass
    return core


def ended(start_s: float, end_s: float, reason: str = "", cpus: int = 2) -> RunRecord:
    return RunRecord(
        job="1.0", vo="all", job_class="batch", machine="m1", cpus=cpus, submit_s=None,
        start_s=start_s, end_s=end_s, run_s=end_s - start_s, reason=reason,
    )  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with runs."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as writing:
        writing.append(
            Entry(runs=[ended(T - 9e5, T - 8e5, "owner"), ended(T + 600.0, T + 1_800.0)])
        )
        writing.append(Entry(runs=[ended(T + 1_800.0, T + 2_400.0, "owner")]))
    return path


async def test_the_journals_runs_and_those_that_go_on_are_told(core: Core, journal: Path) -> None:
    told = plain(await KeptUseOverTime().of("1h", core, journal))
    assert (told["begin_s"], told["end_s"], told["is_cut"]) == (T, T + 3_600.0, False)
    assert told["table_w"]["open"][-1] == pytest.approx(120.0)
    assert used_by(told) == pytest.approx(
        {"completed": 2_400.0, "thrown_away": 1_200.0, "open": 2_400.0}
    )
    assert (await KeptUseOverTime().of("all", core, journal)).begin_s == T - 9e5


async def test_what_is_too_much_to_read_is_told_as_the_last_part(
    core: Core, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_sums, "MAX_RUNS", 2)
    told = plain(await KeptUseOverTime().of("all", core, journal))
    assert (told["is_cut"], told["begin_s"]) == (True, T + 1_800.0)
    assert used_by(told) == pytest.approx(
        {"completed": 0.0, "thrown_away": 1_200.0, "open": 2_400.0}
    )


async def test_many_who_ask_at_once_have_it_read_once(core: Core, journal: Path) -> None:
    history = KeptUseOverTime()
    told = await asyncio.gather(*(history.of("1h", core, journal) for _ in range(50)))
    assert len({id(answer) for answer in told}) == 1
    assert await history.of("1h", core, journal) is told[0]


@pytest.fixture
def damaged(journal: Path) -> Path:
    """A file that is no journal, in its place."""
    kept = journal.with_name("kept")
    journal.rename(kept)
    journal.write_bytes(b"no journal at all" * 100)
    return kept


def put_back(kept: Path) -> None:
    kept.replace(kept.with_name("journal.sqlite"))


async def test_a_journal_that_cannot_be_read_is_told_and_asked_again(
    core: Core, damaged: Path
) -> None:
    history, journal = KeptUseOverTime(lambda: 0.0), damaged.with_name("journal.sqlite")
    with pytest.raises(LedgerError):
        await history.of("1h", core, journal)
    put_back(damaged)
    assert (await history.of("1h", core, journal)).is_cut is False


async def test_a_journal_that_takes_long_to_fail_is_left_in_peace_for_a_while(
    core: Core, damaged: Path
) -> None:
    clock = iter([0.0, 5.0, 54.0, 56.0, 56.0, 56.0, 56.0])
    history, journal = KeptUseOverTime(lambda: next(clock)), damaged.with_name("journal.sqlite")
    with pytest.raises(LedgerError):
        await history.of("1h", core, journal)  # from 0 to 5 s
    put_back(damaged)
    with pytest.raises(LedgerError):
        await history.of("1h", core, journal)
    assert await history.of("1h", core, journal)


async def test_a_client_is_told_that_the_journal_cannot_be_read(core: Core, damaged: Path) -> None:
    journal = damaged.with_name("journal.sqlite")
    view = SimpleNamespace(core=core, journal=journal, use_over_time=KeptUseOverTime())
    call: Any = SimpleNamespace(query=over_time.UseQuery(), view=view)
    answer = await over_time.answer_use(call)
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert str(damaged.parent) not in str(answer.text), "its place is nothing for strangers"
