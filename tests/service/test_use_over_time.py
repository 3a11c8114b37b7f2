"""CPUs in use over time: of runs that were kept, thrown away, or go on."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.ledger import Entry, Journal
from outrider.ledger.records import RunRecord
from outrider.model.errors import LedgerError
from outrider.model.events import JOINED, STARTED, SUBMITTED
from outrider.service import run_history
from outrider.service.core import Core
from outrider.service.run_history import RunHistory
from outrider.service.views.use_over_time import BINS, FATES, Run, use_over_time
from outrider.service.web.endpoints import use
from tests.fixtures.cores import core_of

T = 1_700_000_000.0


def test_what_is_used_in_all_parts_together_is_what_the_runs_used() -> None:
    rng = np.random.default_rng(7)
    runs = []
    for _ in range(500):
        start_s = T + float(rng.uniform(-5_000.0, 9_000.0))
        length_s = float(rng.exponential(3_000.0))
        fate = str(rng.choice(FATES))
        runs.append(Run(start_s, start_s + length_s, int(rng.integers(1, 9)), fate))
    told = use_over_time(runs, T, T + 9_000.0)
    for fate in FATES:
        used_s = sum(
            run.cpus * max(0.0, min(run.end_s, T + 9_000.0) - max(run.start_s, T))
            for run in runs if run.fate == fate
        )  # fmt: skip
        assert sum(told["cpus"][fate]) * 9_000.0 / BINS == pytest.approx(used_s)
        assert min(told["cpus"][fate]) > -1e-6
    assert sum(told["starts"]) == sum(T <= run.start_s <= T + 9_000.0 for run in runs)
    assert np.diff(told["time_s"]) == pytest.approx([9_000.0 / BINS] * (BINS - 1))


def test_a_run_fills_the_parts_in_which_it_ran() -> None:
    told = use_over_time([Run(30.0, 60.0, 4, "completed")], 0.0, 120.0)
    assert told["cpus"]["completed"] == pytest.approx([0.0] * 30 + [4.0] * 30 + [0.0] * 60)
    assert told["cpus"]["thrown_away"] == [0.0] * BINS


@pytest.fixture
def core() -> Core:
    """An hour after T; one job has run for ten minutes."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", MachineSpec("lab", cpus=4)),
        (T, SUBMITTED, "9.0", JobSpec(user="ada", cpus=4)),
        (T + 3_000.0, STARTED, "9.0", ("m1", 4)),
    ]
    feed = core.take(
        "log", Batch(events=events, cursor=None, seen_until_s=T + 3_600.0), T + 3_600.0
    )
    while core.step(feed, 100):
        pass
    return core


def ended(start_s: float, end_s: float, reason: str = "") -> RunRecord:
    return RunRecord(
        job="1.0", vo="all", job_class="batch", machine="m1", cpus=2, submit_s=None,
        start_s=start_s, end_s=end_s, run_s=end_s - start_s, reason=reason,
    )  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as writing:
        writing.append(
            Entry(runs=[ended(T - 9e5, T - 8e5, "owner"), ended(T + 600.0, T + 1_800.0)])
        )
        writing.append(Entry(runs=[ended(T + 1_800.0, T + 2_400.0, "owner")]))
    return path


async def test_the_journals_runs_and_those_that_go_on_are_told(core: Core, journal: Path) -> None:
    told = await RunHistory(journal).of("1h", core)
    assert (told["begin_s"], told["end_s"], told["is_cut"]) == (T, T + 3_600.0, False)
    part_s = 3_600.0 / BINS
    used = {fate: sum(told["cpus"][fate]) * part_s for fate in FATES}
    assert used == pytest.approx({"completed": 2_400.0, "thrown_away": 1_200.0, "open": 2_400.0})
    assert (await RunHistory(journal).of("all", core))["begin_s"] == T - 9e5


async def test_what_is_too_much_to_read_is_told_as_the_last_part(
    core: Core, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_history, "MOST_RUNS", 2)
    told = await RunHistory(journal).of("all", core)
    assert (told["is_cut"], told["begin_s"]) == (True, T + 1_800.0)
    used = {fate: sum(told["cpus"][fate]) * 1_800.0 / BINS for fate in FATES}
    assert used == pytest.approx({"completed": 0.0, "thrown_away": 1_200.0, "open": 2_400.0})


async def test_many_who_ask_at_once_have_it_read_once(core: Core, journal: Path) -> None:
    history = RunHistory(journal)
    told = await asyncio.gather(*(history.of("1h", core) for _ in range(50)))
    assert len({id(answer) for answer in told}) == 1
    assert await history.of("1h", core) is told[0]


@pytest.fixture
def damaged(journal: Path) -> Path:
    kept = journal.with_name("kept")
    journal.rename(kept)
    journal.write_bytes(b"no journal at all" * 100)
    return kept


def put_back(kept: Path) -> None:
    kept.replace(kept.with_name("journal.sqlite"))


async def test_a_journal_that_cannot_be_read_is_told_and_asked_again(
    core: Core, damaged: Path
) -> None:
    history = RunHistory(damaged.with_name("journal.sqlite"))
    with pytest.raises(LedgerError):
        await history.of("1h", core)
    put_back(damaged)
    assert (await history.of("1h", core))["is_cut"] is False


async def test_a_client_is_told_that_the_journal_cannot_be_read(core: Core, damaged: Path) -> None:
    history = RunHistory(damaged.with_name("journal.sqlite"))
    view = SimpleNamespace(core=core, run_history=history)
    call: Any = SimpleNamespace(query=use.UseQuery(), view=view)
    answer = await use.handle(call)
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert str(damaged.parent) not in str(answer.text), "its place is nothing for strangers"
