"""VOs: shares, waits and waste, as they were counted, under the names that a client is shown."""

from types import SimpleNamespace
from typing import Any

import pytest

from outrider.api import JobSpec, MachineSpec
from outrider.model.events import COMPLETED, EVICTED, JOINED, STARTED, SUBMITTED, NamedEvent
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer, is_pseudonym
from outrider.service.shapes.site import Vos
from outrider.service.views.users_and_vos import quantile
from outrider.service.web.endpoints import users_and_vos
from outrider.service.web.endpoints.users_and_vos import VosQuery
from tests.fixtures.cores import core_of, tell
from tests.fixtures.plain import plain, shaped

T = 1_700_000_000.0
PSEUDONYMS = Pseudonyms(b"key")


@pytest.fixture
def core() -> Core:
    """Return a core with two jobs of physics, three runs, and a waiting job of zoe's VO."""
    core = core_of("log")
    events: list[NamedEvent] = [
        (T, JOINED, "m1", MachineSpec("lab", cpus=4)),
        (T, SUBMITTED, "1", JobSpec(vo="physics", cpus=2)),
        (T, SUBMITTED, "2", JobSpec(vo="physics", job_class="interactive")),
        (T, SUBMITTED, "3", JobSpec(user="zoe", vo="zoe")),
        (T + 10, STARTED, "1", ("m1", 2)),
        (T + 30, EVICTED, "1", "owner"),
        (T + 40, STARTED, "1", ("m1", 2)),
        (T + 130, STARTED, "2", ("m1", 1)),
        (T + 140, COMPLETED, "1", None),
    ]
    tell(core, "log", events, T + 200)
    return core


async def asked(core: Core, names_shown: bool = True, **query: Any) -> Any:
    personal = KnownUsers()
    personal.recall({"zoe": "zoe"})
    names = Viewer(PSEUDONYMS, personal, names_shown)
    call: Any = SimpleNamespace(
        query=VosQuery(**query), view=SimpleNamespace(core=core), names=names
    )
    answer = plain(await users_and_vos.VOS.handle(call), names)
    shaped(answer, Vos)
    return answer


async def test_waits_are_of_first_starts_of_all_classes_and_waste_of_runs_that_ended(
    core: Core,
) -> None:
    answer = await asked(core)
    physics, zoe = answer["vos"]
    assert (physics["vo"], physics["started"], physics["wait_mean_s"]) == ("physics", 2, 70.0)
    assert physics["wait_p50_s"] == {"low": 5.0, "about": 15.0, "high": 15.0}
    assert physics["wait_p95_s"] == {"low": 60.0, "about": pytest.approx(276.0), "high": 300.0}
    assert (physics["kept_cpu_s"], physics["thrown_away_cpu_s"]) == (200.0, 40.0)
    assert (physics["share"], physics["target"]) == (1.0, 0.5)
    assert (zoe["started"], zoe["wait_mean_s"], zoe["wait_p50_s"]) == (0, None, None)
    assert answer["since_s"] == core.accounting.begin_s


async def test_a_vo_named_for_a_user_is_hidden_and_so_is_its_place(core: Core) -> None:
    shown = [row["vo"] for row in (await asked(core, names_shown=False))["vos"]]
    [hidden] = set(shown) - {"physics"}
    assert shown == sorted(["physics", hidden])
    assert is_pseudonym(hidden)
    assert hidden != PSEUDONYMS.of("zoe"), "who chooses the VO does not learn the user's pseudonym"


async def test_vos_come_in_pages(core: Core) -> None:
    first = await asked(core, limit=1)
    rest = await asked(core, limit=1, after=first["next"])
    assert (first["total"], rest["next"]) == (2, None)
    assert first["vos"] + rest["vos"] == (await asked(core))["vos"]


@pytest.mark.parametrize(
    ("q", "buckets", "told"),
    [
        (0.5, [0, 0, 0], None),
        (0.5, [4, 0, 0], {"low": 0.0, "about": 0.5, "high": 1.0}),
        (0.5, [2, 0, 2], {"low": 0.0, "about": 1.0, "high": 1.0}),
        (0.75, [0, 4, 0], {"low": 1.0, "about": 7.75, "high": 10.0}),
        (0.95, [1, 0, 1], {"low": 10.0, "about": None, "high": None}),
    ],
)
def test_a_quantile_lies_in_a_bucket(q: float, buckets: list[int], told: Any) -> None:
    assert plain(quantile(q, buckets, (1.0, 10.0))) == told
