"""Lists of the API are filtered by what a client is shown: a hidden name finds nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.model.events import (
    ELIGIBLE,
    EVICTED,
    HELD,
    JOINED,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from outrider.service.core.core import Core
from outrider.service.core.source_state import StateWords
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.views.users_and_vos import user_rows
from outrider.service.web.endpoints import jobs, machines, users_and_vos
from outrider.service.web.endpoints.jobs import JobsQuery
from outrider.service.web.endpoints.machines import MachinesQuery
from outrider.service.web.endpoints.users_and_vos import UsersQuery
from tests.fixtures.cores import core_of, tell
from tests.fixtures.plain import plain

T = 1_700_000_000.0
PSEUDONYMS = Pseudonyms(b"key")


@pytest.fixture
def site() -> Core:
    """Alice has three jobs, of which one runs and one is of another VO; bob has one."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", MachineSpec("lab")),
        (T, JOINED, "m2", MachineSpec("hall")),
        (T, SUBMITTED, "1.0", JobSpec(user="alice", vo="physics", cpus=1)),
        (T + 1, SUBMITTED, "2.0", JobSpec(user="alice", vo="physics")),
        (T + 2, SUBMITTED, "3.0", JobSpec(user="alice", vo="biology")),
        (T + 3, SUBMITTED, "4.0", JobSpec(user="bob", vo="physics")),
        (T + 5, STARTED, "1.0", ("m1", 1)),
    ]
    feed = core.take("log", Batch(events=events, cursor=None), T + 60)
    while core.step(feed, 100):
        pass
    return core


async def asked(endpoint: Any, core: Core, query: Any, names_shown: bool = True) -> Any:
    """Return the answer of an endpoint to a client that is shown names, or pseudonyms."""
    names = Viewer(PSEUDONYMS, KnownUsers(), names_shown)
    view = SimpleNamespace(
        core=core, expected_starts=lambda: None, state_words=StateWords(dict),
        user_rows=lambda apart: user_rows(core.site, apart),
    )  # fmt: skip
    call = SimpleNamespace(query=query, view=view, names=names)
    return plain(await endpoint.handle(call), names)


async def named(core: Core, names_shown: bool = True, **filters: Any) -> list[str]:
    """Return the jobs that a client is given."""
    answer = await asked(jobs.JOBS, core, JobsQuery(**filters), names_shown)
    assert answer["total"] == len(answer["jobs"])
    return [row["job"] for row in answer["jobs"]]


async def test_jobs_are_filtered_by_user_and_vo(site: Core) -> None:
    assert await named(site) == ["1.0", "2.0", "3.0", "4.0"]
    assert await named(site, user="alice") == ["1.0", "2.0", "3.0"]
    assert await named(site, user="alice", vo="physics", state="queued") == ["2.0"]
    assert await named(site, user="nobody") == []


async def test_a_name_that_is_hidden_finds_nothing_and_a_pseudonym_its_jobs(site: Core) -> None:
    """Filtering by real names would let a client resolve pseudonyms."""
    assert await named(site, names_shown=False, user="alice") == []
    assert await named(site, names_shown=False, user=PSEUDONYMS.of("alice")) == [
        "1.0",
        "2.0",
        "3.0",
    ]


async def test_jobs_are_filtered_by_the_group_they_are_on_or_may_use() -> None:
    core = core_of("log")
    events: list[NamedEvent] = [
        (T, JOINED, "m1", MachineSpec("lab")),
        (T, JOINED, "m2", MachineSpec("hall")),
        (T, ELIGIBLE, "small", ("m2",)),
        (T, SUBMITTED, "runs in the lab", JobSpec()),
        (T, SUBMITTED, "may run anywhere", JobSpec()),
        (T, SUBMITTED, "may run in the hall", JobSpec(eligible="small")),
        (T, SUBMITTED, "may run nowhere", JobSpec(eligible="none such")),
        (T + 5, STARTED, "runs in the lab", ("m1", 1)),
    ]
    tell(core, "log", events, T + 60)
    assert await named(core, group="lab") == ["runs in the lab", "may run anywhere"]
    assert await named(core, group="hall") == ["may run anywhere", "may run in the hall"]
    assert await named(core, group="no such group") == []
    rows = (await asked(jobs.JOBS, core, JobsQuery(limit=2)))["jobs"]
    assert [row["group"] for row in rows] == ["lab", None]


async def test_jobs_are_filtered_by_how_long_they_have_waited(site: Core) -> None:
    """Job 2.0 waits for a second longer than 3.0; what runs does not wait."""
    wait_s = site.site.now - (T + 2)
    assert await named(site, waiting_over_s=wait_s) == ["2.0"]
    assert await named(site, waiting_over_s=wait_s - 1e-3) == ["2.0", "3.0"]
    assert await named(site, waiting_over_s=0.0) == ["2.0", "3.0", "4.0"]


async def test_jobs_are_filtered_by_the_first_policy_s_reason_as_their_rows_have_it() -> None:
    core = core_of("log", policies={"fifo": {}, "sjf": {}})
    events: list[NamedEvent] = [
        (T, JOINED, "m1", MachineSpec("lab")),
        (T, SUBMITTED, "1.0", JobSpec()),
        (T, SUBMITTED, "2.0", JobSpec(cpus=9)),
    ]
    tell(core, "log", events, T + 60)
    rows = {row["job"]: row for row in (await asked(jobs.JOBS, core, JobsQuery()))["jobs"]}
    for row in rows.values():
        assert row["reason"] == row["pending"]["fifo"]["reason"]
    reason = rows["2.0"]["reason"]
    assert reason != rows["1.0"]["reason"]
    assert await named(core, reason=reason[1:].upper()) == ["2.0"]
    assert await named(core, reason="no such reason") == []


async def test_why_a_job_is_held_may_name_users_and_is_told_and_found_by_whom_may_see_them(
    site: Core,
) -> None:
    tell(site, "log", [(T + 70, HELD, "4.0", "bob's disk is full")], T + 130)
    held = JobsQuery(state="held")
    assert (await asked(jobs.JOBS, site, held))["jobs"][0]["reason"] == "bob's disk is full"
    assert await named(site, reason="disk") == ["4.0"]
    assert (await asked(jobs.JOBS, site, held, names_shown=False))["jobs"][0]["reason"] is None
    assert await named(site, names_shown=False, reason="disk") == []


async def test_machines_are_filtered_by_state_and_group(site: Core) -> None:
    async def found(**filters: Any) -> list[str]:
        answer = await asked(machines.MACHINES, site, MachinesQuery(**filters))
        assert answer["total"] == len(answer["machines"])
        return [row["machine"] for row in answer["machines"]]

    assert await found() == ["m1", "m2"]
    assert await found(state="busy") == ["m1"]
    assert await found(cluster="hall") == ["m2"]
    assert await found(cluster="hall", state="busy") == []


async def test_users_have_a_row_for_each_vo(site: Core) -> None:
    answer = await asked(users_and_vos.USERS, site, UsersQuery())
    first, *others = answer["users"]
    assert answer["total"] == 3
    assert first == {
        "user": "alice", "vo": "physics", "queued": 1, "running": 1, "suspended": 0, "held": 0,
        "busy_cpus": 1, "lost_s": 0.0,
        **dict.fromkeys(("wait_p50_s", "wait_p95_s", "longest_wait_s"), site.site.now - (T + 1)),
    }  # fmt: skip
    assert [(row["user"], row["vo"]) for row in others] == [
        ("alice", "biology"),
        ("bob", "physics"),
    ]
    of_one = await asked(users_and_vos.USERS, site, UsersQuery(limit=1, vo="physics"))
    assert (len(of_one["users"]), of_one["total"]) == (1, 2)
    hidden = await asked(users_and_vos.USERS, site, UsersQuery(), names_shown=False)
    assert {row["user"] for row in hidden["users"]} == {
        PSEUDONYMS.of("alice"), PSEUDONYMS.of("bob"),
    }  # fmt: skip


async def test_users_come_in_pages_and_their_order_tells_no_hidden_name(site: Core) -> None:
    first = await asked(users_and_vos.USERS, site, UsersQuery(limit=2), names_shown=False)
    rest = await asked(
        users_and_vos.USERS, site, UsersQuery(limit=2, after=first["next"]), names_shown=False
    )
    assert (len(first["users"]), len(rest["users"]), rest["next"]) == (2, 1, None)
    whole = await asked(users_and_vos.USERS, site, UsersQuery(), names_shown=False)
    assert first["users"] + rest["users"] == whole["users"]


def test_jobs_are_added_up_by_user_and_who_is_alike_stands_as_they_came() -> None:
    """Sorting by real names would reveal whose pseudonym is whose."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", MachineSpec("lab", cpus=2)),
        (T, SUBMITTED, "1.0", JobSpec(user="zoe")),
        (T + 1, SUBMITTED, "2.0", JobSpec(user="ann")),
        (T + 2, SUBMITTED, "3.0", JobSpec(user="bob", cpus=2)),
        (T + 2, SUBMITTED, "4.0", JobSpec(user="bob")),
        (T + 3, STARTED, "3.0", ("m1", 2)),
        (T + 13, EVICTED, "3.0", "owner"),
        (T + 20, STARTED, "3.0", ("m1", 2)),
        (T + 30, HELD, "4.0", "disk"),
    ]
    feed = core.take("log", Batch(events=events, cursor=None), T + 60)
    while core.step(feed, 100):
        pass
    bob, zoe, ann = plain(user_rows(core.site))
    assert (zoe["user"], ann["user"]) == ("zoe", "ann")
    assert zoe["longest_wait_s"] == core.site.now - T
    assert bob == {
        "user": "bob", "vo": "all", "queued": 0, "running": 1, "suspended": 0, "held": 1,
        "busy_cpus": 2, "wait_p50_s": None, "wait_p95_s": None, "longest_wait_s": None,
        "lost_s": 10.0,
    }  # fmt: skip


def test_the_waits_of_a_user_are_those_of_the_jobs_that_wait_now() -> None:
    core = core_of("log")
    waiting = [(T + n, SUBMITTED, f"{n}.0", JobSpec(user="zoe", cpus=8)) for n in range(40)]
    began = (T + 40, JOINED, "m1", MachineSpec("lab", cpus=8)), (T + 41, STARTED, "0.0", ("m1", 8))
    feed = core.take("log", Batch(events=[*waiting, *began], cursor=None), T + 100)
    while core.step(feed, 100):
        pass
    (zoe,) = plain(user_rows(core.site))
    now_s, waits_s = core.site.now, [core.site.now - (T + n) for n in range(1, 40)]
    assert (zoe["queued"], zoe["running"]) == (39, 1)
    assert zoe["wait_p50_s"] == now_s - (T + 20)
    assert zoe["wait_p95_s"] == now_s - (T + 2)
    assert zoe["longest_wait_s"] == now_s - (T + 1)
    for q, field in ((0.5, "wait_p50_s"), (0.95, "wait_p95_s")):
        assert sum(wait_s <= zoe[field] for wait_s in waits_s) >= q * len(waits_s)
        assert sum(wait_s < zoe[field] for wait_s in waits_s) < q * len(waits_s)
