"""The list of jobs in every order: sorted, and whole in pages while jobs come and go."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from outrider.api import JobSpec, MachineSpec
from outrider.model.events import EVICTED, JOINED, REMOVED, RESUMED, STARTED, SUBMITTED, SUSPENDED
from outrider.service.core.core import Core
from outrider.service.core.source_state import StateWords
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.views.job_list import JOB_SORTS
from outrider.service.web.endpoint import BadQueryError
from outrider.service.web.endpoints import jobs
from outrider.service.web.endpoints.jobs import JobsQuery
from tests.fixtures.cores import core_of, tell
from tests.fixtures.plain import plain

T = 1_700_000_000.0


@pytest.fixture
def core() -> Core:
    """Three jobs run, of which one is suspended; one was evicted; four have never run."""
    core = core_of("log")
    cpus = {"a": 1, "b": 4, "c": 2, "d": 1, "e": 4, "f": 1, "g": 3, "h": 1}
    events: list[Any] = [(T, JOINED, name, MachineSpec("lab", cpus=4)) for name in "xyz"]
    events += [
        (
            T + n,
            SUBMITTED,
            name,
            JobSpec(cpus=cpus[name], eligible_s=T + 50 if name == "d" else None),
        )
        for n, name in enumerate("abcdefgh")
    ]
    events += [
        (T + 20, STARTED, "c", ("x", 2)),
        (T + 30, STARTED, "a", ("y", 1)),
        (T + 31, STARTED, "e", ("z", 4)),
        (T + 35, SUSPENDED, "c", None),
        (T + 41, EVICTED, "e", "owner"),
        (T + 45, STARTED, "b", ("z", 4)),
    ]
    tell(core, "log", events, T + 100)
    return core


async def page(core: Core, **query: Any) -> Any:
    names = Viewer(Pseudonyms(b"key"), KnownUsers(), True)
    view = SimpleNamespace(core=core, expected_starts=lambda: None, state_words=StateWords(dict))
    call: Any = SimpleNamespace(query=JobsQuery(**query), view=view, names=names)
    return plain(await jobs.JOBS.handle(call))


async def listed(core: Core, **query: Any) -> str:
    return "".join(row["job"] for row in (await page(core, **query))["jobs"])


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("known", "abcdefgh"),
        ("-known", "hgfedcba"),
        ("-waiting_s", "efghdabc"),
        ("waiting_s", "dhgfeabc"),
        ("-run_s", "abcdefgh"),
        ("run_s", "cbadefgh"),
        ("-lost_s", "eabcdfgh"),
        ("lost_s", "abcdfghe"),
        ("-cpus", "begcadfh"),
        ("cpus", "adfhcgbe"),
    ],
)
async def test_jobs_come_in_the_order_that_is_asked_for_and_what_is_unknown_last(
    core: Core, sort: str, order: str
) -> None:
    assert await listed(core, sort=sort) == order


def nothing(core: Core) -> None:
    """The list stays the same."""


def time_passes(core: Core) -> None:
    tell(core, "log", [(T + 5_000, SUBMITTED, "late", JobSpec())], T + 6_000)


def jobs_come_and_go(core: Core) -> None:
    """Remove jobs before and behind the cursor; new jobs come first in some orders."""
    events = [
        (T + 200, SUBMITTED, "new", JobSpec(cpus=2)),
        (T + 200, REMOVED, "a", "killed"),
        (T + 200, REMOVED, "h", "killed"),
        (T + 200, REMOVED, "e", "killed"),
    ]
    tell(core, "log", events, T + 300)


@pytest.mark.parametrize("meanwhile", [nothing, time_passes, jobs_come_and_go])
@pytest.mark.parametrize("sort", JOB_SORTS)
async def test_who_stays_stands_on_exactly_one_page_whatever_happens_between_two(
    core: Core, sort: str, meanwhile: Callable[[Core], None]
) -> None:
    whole = await listed(core, sort=sort)
    first = await page(core, sort=sort, limit=3)
    seen = [row["job"] for row in first["jobs"]]
    assert "".join(seen) == whole[:3]
    meanwhile(core)
    after = first["next"]
    while after is not None:
        answer = await page(core, sort=sort, limit=3, after=after)
        seen += [row["job"] for row in answer["jobs"]]
        after = answer["next"]
    stayed = {row["job"] for row in (await page(core))["jobs"]} & set(whole)
    assert len(seen) == len(set(seen))
    assert [job for job in seen if job in stayed] == [job for job in whole if job in stayed]


async def test_a_suspended_run_keeps_its_place_while_others_run_on(core: Core) -> None:
    """ "c" ran for 15 s and is suspended; of "a" and "b" the seconds grow."""
    first = await page(core, sort="run_s", limit=1)
    assert first["jobs"][0]["job"] == "c"
    tell(core, "log", [(T + 200, RESUMED, "c", None)], T + 900)
    rest = await page(core, sort="run_s", limit=2, after=first["next"])
    assert [row["job"] for row in rest["jobs"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("sort", "after"),
    [
        ("known", "first"),
        ("known", "-waiting_s:1.0:2.0:3"),
        ("-waiting_s", "3"),
        ("-waiting_s", "waiting_s:1.0:2.0:3"),
        ("-waiting_s", "-waiting_s:1.0:nan:3"),
        ("-waiting_s", "-waiting_s:inf:1.0:3"),
        ("-waiting_s", "-waiting_s:1.0:2.0"),
        ("-waiting_s", "-waiting_s:1.0:2.0:3:4"),
    ],
)
async def test_a_cursor_of_another_order_is_refused_with_what_is_right(
    core: Core, sort: str, after: str
) -> None:
    with pytest.raises(BadQueryError, match=f'"after" = .*which was sorted by "{sort}", too'):
        await page(core, sort=sort, after=after)
