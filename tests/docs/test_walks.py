"""The walks that ARCHITECTURE.md names are short, and are what really happens, in that order."""

import asyncio
import re
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Final

import pytest

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.journal import Entry
from outrider.model.events import JOINED, SUBMITTED
from outrider.service.core.core import Core
from outrider.service.core.source_state import StateWords
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.journal.recording import Recording
from outrider.service.twin.starts_cycle import StartsCycle
from tests.acting.levers import Noting, at_a_pool, row
from tests.adapters.htcondor.watched_pool import WatchedPool
from tests.fixtures.cores import T, core_of
from tests.service.twin.test_starts_cycle import waiting_until_the_end
from tests.suite.test_grain import modules

MOST: Final = {"event": 25, "decision": 14, "expected start": 16}
"""Modules that each walk may have."""
_MODULE: Final = re.compile(r"[a-z_]+(?:/[a-z_]+)+")


@pytest.fixture(scope="module")
def walks(repository: Path) -> dict[str, list[str]]:
    """Dotted names of the modules of each walk, by what walks."""
    text = (repository / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## Three walks")[2].partition("\n## ")[0]
    found = {}
    for what in MOST:
        block = section.partition(f"**{what}**")[2].partition("**")[0]
        found[what] = [dotted(path) for path in _MODULE.findall(block)]
    return found


def dotted(path: str) -> str:
    """The only module of the product whose path ends so."""
    ending = "." + path.replace("/", ".")
    named = [name for name in modules() if name.endswith(ending)]
    assert len(named) == 1, f"{path}: {named}"
    return named[0]


def entered(call: Callable[[], object]) -> list[str]:
    """Modules of the product in which something was called, in the order of the first calls."""
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            names.setdefault(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return [name for name in names if name in modules()]


def part(walk: list[str], first: str, last: str) -> list[str]:
    return walk[walk.index(dotted(first)) : walk.index(dotted(last)) + 1]


def follow(walk: list[str], call: Callable[[], object]) -> None:
    """Call it, and compare: all modules of the walk are entered, in its order."""
    came = entered(call)
    assert [name for name in came if name in walk] == walk


@pytest.mark.parametrize("what", MOST)
def test_a_walk_is_short_and_every_module_of_it_is_there(
    what: str, walks: dict[str, list[str]]
) -> None:
    assert 8 < len(walks[what]) <= MOST[what]
    assert len(set(walks[what])) == len(walks[what])


@pytest.fixture
def core() -> Core:
    """A machine of two CPUs is free."""
    core = core_of("log", policies={"fifo": {}})
    run(core, Batch(events=[(T, JOINED, "m1", MachineSpec("lab", cpus=2))], cursor=None))
    return core


def run(core: Core, batch: Batch, until_s: float = T + 10.0) -> None:
    stream = core.take("log", batch, until_s)
    while core.step(stream, 100):
        pass


def submission() -> Batch:
    return Batch(events=[(T + 20.0, SUBMITTED, "7.0", JobSpec(user="alice", cpus=2))], cursor=None)


def test_an_event_of_a_pool_comes_so_to_its_batch(
    tmp_path: Path, walks: dict[str, list[str]]
) -> None:
    pool = WatchedPool(tmp_path)
    try:
        pool.submit(100.0)
        walk = part(walks["event"], "htcondor/pool_watch", "htcondor/record_events")
        follow(walk, lambda: pool.look(15.0))
    finally:
        pool.close()


def test_an_event_comes_so_to_the_site(core: Core, walks: dict[str, list[str]]) -> None:
    walk = part(walks["event"], "core/core", "engine/job_events")
    follow(walk, lambda: run(core, submission(), T + 30.0))


def test_a_job_comes_so_to_its_answer(core: Core, walks: dict[str, list[str]]) -> None:
    from outrider.service.web.endpoints.jobs import JOBS, JobsQuery

    run(core, submission(), T + 30.0)
    names = Viewer(Pseudonyms(b"key"), KnownUsers(), True)
    view = SimpleNamespace(core=core, expected_starts=lambda: None, state_words=StateWords(dict))
    call: Any = SimpleNamespace(query=JobsQuery(), view=view, names=names)
    follow(
        part(walks["event"], "endpoints/jobs", "views/job_list"),
        lambda: asyncio.run(waited(JOBS.handle(call))),
    )


async def waited(answer: Awaitable[Any]) -> Any:
    return await answer


def test_a_decision_is_made_so(core: Core, walks: dict[str, list[str]]) -> None:
    walk = part(walks["decision"], "engine/engine", "acting/gate")
    follow(walk, lambda: run(core, submission(), T + 30.0))


def test_a_decision_is_recorded_and_carried_out_so(
    tmp_path: Path, walks: dict[str, list[str]]
) -> None:
    lever = Noting()

    async def record_and_act() -> None:
        recording = Recording(tmp_path)
        recorded = await recording.submit(Entry(decisions=[row("7.0")]))
        await asyncio.wrap_future(recorded)
        recording.close()
        runner = at_a_pool(lever)
        runner.take_when_recorded(recorded, [row("7.0")])
        assert lever.wait_for(1) == [("apply", "7.0")]
        runner.close(5.0)

    walk = part(walks["decision"], "journal/recording", "acting/lever_thread")
    follow(walk, lambda: asyncio.run(record_and_act()))


def test_a_start_is_expected_so(tmp_path: Path, walks: dict[str, list[str]]) -> None:
    path, now_s, _ = waiting_until_the_end(tmp_path / "journal.sqlite")
    cycle = StartsCycle(tmp_path, path, lambda: 60.0, clock=lambda: now_s)
    walk = part(walks["expected start"], "twin/starts_cycle", "twin/starts_file")
    follow(walk, cycle.look)
