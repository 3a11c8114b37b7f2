"""Lists of the API are filtered by what a client is shown: a hidden name finds nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.model.events import EVICTED, HELD, JOINED, STARTED, SUBMITTED
from outrider.service.core import Core
from outrider.service.personal_vos import PersonalVos
from outrider.service.pseudonyms import Pseudonyms
from outrider.service.user_names import UserNames
from outrider.service.views.users import user_rows
from outrider.service.web.endpoints import jobs, machines, users
from outrider.service.web.endpoints.jobs import JobsQuery
from outrider.service.web.endpoints.machines import MachinesQuery
from outrider.service.web.endpoints.users import UsersQuery
from tests.fixtures.cores import core_of

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
    """The answer of an endpoint to a client that is shown names, or pseudonyms."""
    names = UserNames(PSEUDONYMS, PersonalVos(), names_shown)
    view = SimpleNamespace(
        core=core, expected_starts=lambda: None, user_rows=lambda: user_rows(core.site)
    )
    return await endpoint.handle(SimpleNamespace(query=query, view=view, names=names))


async def named(core: Core, names_shown: bool = True, **filters: Any) -> list[str]:
    """The jobs that a client is given."""
    answer = await asked(jobs, core, JobsQuery(**filters), names_shown)
    assert answer["total"] == len(answer["jobs"])
    return [row["job"] for row in answer["jobs"]]


async def test_jobs_are_filtered_by_user_and_vo(site: Core) -> None:
    assert await named(site) == ["1.0", "2.0", "3.0", "4.0"]
    assert await named(site, user="alice") == ["1.0", "2.0", "3.0"]
    assert await named(site, user="alice", vo="physics", state="queued") == ["2.0"]
    assert await named(site, user="nobody") == []


async def test_a_name_that_is_hidden_finds_nothing_and_a_pseudonym_its_jobs(site: Core) -> None:
    """Or a client could learn whose pseudonym it is by asking for names."""
    assert await named(site, names_shown=False, user="alice") == []
    assert await named(site, names_shown=False, user=PSEUDONYMS.of("alice")) == [
        "1.0",
        "2.0",
        "3.0",
    ]


async def test_machines_are_filtered_by_state_and_group(site: Core) -> None:
    async def found(**filters: Any) -> list[str]:
        answer = await asked(machines, site, MachinesQuery(**filters))
        assert answer["total"] == len(answer["machines"])
        return [row["machine"] for row in answer["machines"]]

    assert await found() == ["m1", "m2"]
    assert await found(state="busy") == ["m1"]
    assert await found(cluster="hall") == ["m2"]
    assert await found(cluster="hall", state="busy") == []


async def test_users_have_a_row_for_each_vo(site: Core) -> None:
    answer = await asked(users, site, UsersQuery())
    first, *others = answer["users"]
    assert answer["total"] == 3
    assert first == {
        "user": "alice", "vo": "physics", "queued": 1, "running": 1, "suspended": 0, "held": 0,
        "busy_cpus": 1, "longest_wait_s": site.site.now - (T + 1), "lost_s": 0.0,
    }  # fmt: skip
    assert [(row["user"], row["vo"]) for row in others] == [
        ("alice", "biology"),
        ("bob", "physics"),
    ]
    of_one = await asked(users, site, UsersQuery(limit=1, vo="physics"))
    assert (len(of_one["users"]), of_one["total"]) == (1, 2)
    hidden = await asked(users, site, UsersQuery(), names_shown=False)
    assert {row["user"] for row in hidden["users"]} == {
        PSEUDONYMS.of("alice"), PSEUDONYMS.of("bob"),
    }  # fmt: skip


async def test_users_come_in_pages_and_their_order_tells_no_hidden_name(site: Core) -> None:
    first = await asked(users, site, UsersQuery(limit=2), names_shown=False)
    rest = await asked(users, site, UsersQuery(limit=2, after=first["next"]), names_shown=False)
    assert (len(first["users"]), len(rest["users"]), rest["next"]) == (2, 1, None)
    whole = await asked(users, site, UsersQuery(), names_shown=False)
    assert first["users"] + rest["users"] == whole["users"]


def test_jobs_are_added_up_by_user_and_who_is_alike_stands_as_they_came() -> None:
    """By name they would tell whose pseudonym is whose."""
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
    bob, zoe, ann = user_rows(core.site)
    assert (zoe["user"], ann["user"]) == ("zoe", "ann")
    assert zoe["longest_wait_s"] == core.site.now - T
    assert bob == {
        "user": "bob", "vo": "all", "queued": 0, "running": 1, "suspended": 0, "held": 1,
        "busy_cpus": 2, "longest_wait_s": None, "lost_s": 10.0,
    }  # fmt: skip
