"""Numbers of waiting and running jobs, from recorded runs and current jobs."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from outrider.api import JobSpec, MachineSpec
from outrider.journal import Entry, Journal, RunRecord
from outrider.model.errors import LedgerError
from outrider.model.events import JOINED, STARTED, SUBMITTED
from outrider.service.core.core import Core
from outrider.service.shapes.jobs import JobsOverTime
from outrider.service.views import over_time as view_module
from outrider.service.views.over_time import Curve, KeptJobsOverTime
from outrider.service.web.endpoints.over_time import JobsOverTimeQuery, answer_jobs_over_time
from tests.fixtures.cores import T, core_of, tell
from tests.fixtures.plain import plain

HOUR_S = 3600.0
NOW_S = T + HOUR_S


@pytest.fixture
def core() -> Core:
    """Return a core an hour after T: job 1.0 has run for 30 minutes, 2.0 waits."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", MachineSpec("lab", cpus=2)),
        (T, SUBMITTED, "1.0", JobSpec(user="alice", cpus=2)),
        (T + 1800, STARTED, "1.0", ("m1", 2)),
        (T + 2700, SUBMITTED, "2.0", JobSpec(user="alice")),
    ]
    tell(core, "log", events, NOW_S)
    return core


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a journal with a wasted run of an hour on four CPUs, ended 30 minutes after T."""
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        lost = RunRecord(
            "0.0", "all", "batch", "m2", 4, T - 3600, T - 1800, T + 1800, 3600.0, "owner"
        )
        journal.append(Entry(runs=[lost]))
    return path


async def asked(
    core: Core, journal: Path, window: Any, held: KeptJobsOverTime | None = None
) -> Any:
    """Return the answer, or its status and error."""
    view = SimpleNamespace(core=core, journal=journal, jobs_over_time=held or KeptJobsOverTime())
    call: Any = SimpleNamespace(query=JobsOverTimeQuery(window=window), view=view)
    return await answer_jobs_over_time(call)


def test_a_curve_is_the_exact_mean_of_what_was_there() -> None:
    curve = Curve(10.0, 3)
    curve.add(-1, 2, 2 * -5.0)  # two from before the first bin
    curve.come(5.0)
    curve.add(1, -2, -2 * 15.0)  # the two go in the middle of the second
    curve.come(30.0)  # at the very end
    assert curve.means() == [2.5, 2.0, 1.0]


async def test_runs_on_record_and_jobs_that_are_here_make_one_picture(
    core: Core, journal: Path
) -> None:
    told = msgspec.convert(plain(await asked(core, journal, "1h")), JobsOverTime)
    assert (told.begin_s, told.step_s, told.now_s) == (T, 60.0, NOW_S)
    assert told.running[:30] == [1.0] * 30
    assert told.running[30:] == [1.0] * 30
    assert told.waiting[30:] == [0.0] * 15 + [1.0] * 15


async def test_before_the_record_begins_nothing_is_known(core: Core, journal: Path) -> None:
    """Others may have run then, of which no word is left."""
    told = msgspec.convert(plain(await asked(core, journal, "7d")), JobsOverTime)
    assert told.known_from_s <= T + 1800
    assert told.waiting[:166] == [None] * 166
    assert told.step_s == HOUR_S
    assert len(told.waiting) == 168


async def test_all_of_a_new_journal_are_some_hours(core: Core, tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    Journal(path).close()
    told = msgspec.convert(plain(await asked(core, path, "all")), JobsOverTime)
    assert told.step_s == 60.0
    assert told.running[-1] == 1.0


async def test_a_job_that_runs_again_waits_since_its_last_run_ended(
    tmp_path: Path, core: Core
) -> None:
    job = next(job for job in core.site.jobs.values() if job.submit_s == T + 2700)
    job.runs = 1
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        lost = RunRecord(
            "2.0", "all", "batch", "m2", 1, T + 2700, T + 2760, T + 3000, 240.0, "owner"
        )
        journal.append(Entry(runs=[lost]))
    told = msgspec.convert(plain(await asked(core, path, "1h")), JobsOverTime)
    assert told.waiting[50:] == [1.0] * 10


async def test_an_answer_is_kept_for_a_while(core: Core, journal: Path) -> None:
    clock = [100.0]
    held = KeptJobsOverTime(lambda: clock[0])
    first, at_once = await asyncio.gather(
        asked(core, journal, "1h", held), asked(core, journal, "1h", held)
    )
    assert first == at_once
    await asyncio.to_thread(journal.unlink)
    assert await asked(core, journal, "1h", held) == first
    clock[0] += view_module.FRESH_S
    assert (await asked(core, journal, "1h", held)).status == 503


async def test_a_journal_that_cannot_be_read_is_told_without_its_path(
    core: Core, tmp_path: Path
) -> None:
    answer = await asked(core, tmp_path / "gone.sqlite", "24h")
    assert answer.status == 503
    assert str(tmp_path) not in answer.text
    with pytest.raises(LedgerError):
        await KeptJobsOverTime().of("24h", core, tmp_path / "gone.sqlite")


async def test_a_disk_that_hangs_holds_up_no_client_for_long(
    core: Core, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = threading.Event()
    monkeypatch.setattr(view_module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(view_module, "read_jobs", lambda *_: ends.wait(60.0))
    held = KeptJobsOverTime()
    answers = await asyncio.gather(*(asked(core, journal, "1h", held) for _ in range(5)))
    threads = [one for one in threading.enumerate() if one.name == "jobs-over-time"]
    ends.set()
    assert [answer.status for answer in answers] == [503] * 5
    assert len(threads) == 1, "and no more than one thread waits for it"
