"""One machine: what it does now, its last runs, failed starts, watts, and its owner's week."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from outrider.api import JobSpec, MachineSpec
from outrider.cli.commands.machines import COLUMNS
from outrider.engine.state.site import Site
from outrider.journal import Entry, Journal, RunRecord
from outrider.model.events import (
    DRAINED,
    EVICTED,
    JOINED,
    LEFT,
    OWNER_CAME,
    OWNER_WENT,
    POWER,
    STARTED,
    SUBMITTED,
    USABLE,
    NamedEvent,
)
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer, is_pseudonym
from outrider.service.shapes.site import OneMachine
from outrider.service.views.one_machine import MachineHistories
from outrider.service.web.endpoint import NotFoundError
from outrider.service.web.endpoints import machines as endpoint
from tests.fixtures.cores import T, core_of, tell
from tests.fixtures.plain import plain, shaped

DESK = MachineSpec("lab", cpus=4, active_w=100.0, idle_w=40.0, sleep_w=3.0)
SESSION: list[NamedEvent] = [(T + 60, OWNER_CAME, "m1", None), (T + 660, OWNER_WENT, "m1", None)]


@pytest.fixture
def core() -> Core:
    """Return a core half an hour after T: m1's owner came and went, ada's job runs."""
    core = core_of("log")
    events = [
        (T, JOINED, "m1", DESK),
        (T, JOINED, "m2", DESK),
        (T, SUBMITTED, "1.0", JobSpec(user="ada", vo="physics", cpus=2)),
        *SESSION,
        (T + 700, USABLE, "m1", None),
        (T + 1200, STARTED, "1.0", ("m1", 2)),
    ]
    tell(core, "log", events, T + 1800)
    return core


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal with the runs of a machine."""
    path = tmp_path / "journal.sqlite"
    runs = [
        RunRecord("0.0", "physics", "batch", "m1", 4, T - 3600, T - 1800, T - 60, 1740.0, "owner"),
        RunRecord("0.0", "physics", "batch", "m2", 4, T - 3600, T - 60, T, 60.0, ""),
    ]
    with Journal(path) as writing:
        writing.append(Entry(runs=runs, inputs=[("log", event) for event in SESSION]))
    return path


async def asked(
    core: Core,
    journal: Path,
    machine: str,
    sees_names: bool = True,
    personal: KnownUsers | None = None,
) -> Any:
    """Return the answer, in its declared shape, or the response."""
    view = SimpleNamespace(core=core, journal=journal, machine_histories=MachineHistories())
    names = Viewer(Pseudonyms(b"key"), personal or KnownUsers(), sees_names)
    request = SimpleNamespace(match_info={"machine": machine})
    call: Any = SimpleNamespace(view=view, request=request, names=names)
    answer = await endpoint.answer_machine(call)
    if not isinstance(answer, Struct):
        return answer
    seen = plain(answer, names)
    shaped(seen, OneMachine)
    return _Seen(seen)


class _Seen:
    """Decoded JSON, with the fields of objects as attributes."""

    def __init__(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            setattr(self, name, _seen(value))


def _seen(value: Any) -> Any:
    if isinstance(value, list):
        return [_seen(one) for one in value]
    return _Seen(value) if isinstance(value, dict) else value


async def test_a_busy_machine_tells_its_jobs_runs_and_watts(core: Core, journal: Path) -> None:
    told = await asked(core, journal, "m1")
    assert (told.state, told.since_s, told.busy_cpus, told.cpus) == ("busy", T + 1200, 2, 4)
    assert [(job.job, job.user, job.start_s) for job in told.jobs] == [("1.0", "ada", T + 1200)]
    assert [(run.job, run.end_s, run.lost_because) for run in told.runs] == [
        ("0.0", T - 60, "owner")
    ]
    assert (told.watts.now_w, told.watts.is_measured) == (70.0, False), "half busy, half idle"
    assert (told.owner_week.sessions, told.owner_week.since_s) == (1, T + 60)
    assert (told.failed_starts.tried, told.failed_starts.is_black_hole) == (0, False)


async def test_a_busy_machine_that_accepts_no_more_jobs_drains(core: Core, journal: Path) -> None:
    assert not (await asked(core, journal, "m1")).draining
    tell(core, "log", [(T + 1801, DRAINED, "m1", None), (T + 1801, DRAINED, "m2", None)], T + 1810)
    told = await asked(core, journal, "m1")
    assert (told.state, told.draining) == ("busy", True)
    rows = plain(endpoint.machines(core, 10))["machines"]
    assert [(row["state"], row["draining"]) for row in rows] == [("busy", True), ("closed", False)]
    assert [COLUMNS["state"].cell(row) for row in rows] == ["busy, draining", "closed"]


async def test_why_a_machine_is_drained_is_shown_without_the_names_of_users(
    core: Core, journal: Path
) -> None:
    tell(core, "log", [(T + 1801, DRAINED, "m1", "fan, ask ada")], T + 1810)
    assert (await asked(core, journal, "m1")).closed_because == "fan, ask ada"
    page = endpoint.machines(core, 10)
    cells = [COLUMNS["state"].cell(row) for row in plain(page)["machines"]]
    assert cells == ["busy, draining (fan, ask ada)", "free"]
    hidden = await asked(core, journal, "m1", False, core.known_users)
    assert re.fullmatch("fan, ask u-[0-9a-f]{10}", hidden.closed_because)
    again = Site(core.site.local_time, list(core.site.cluster_specs))
    again.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(core.site.save())))
    assert again.closed_because == {0: "fan, ask ada"}
    tell(core, "log", [(T + 1811, USABLE, "m1", None)], T + 1820)
    assert (await asked(core, journal, "m1")).closed_because is None


async def test_a_meter_stands_for_the_table(core: Core, journal: Path) -> None:
    tell(core, "log", [(T + 1801, POWER, "m1", 81.5)], T + 1810)
    told = await asked(core, journal, "m1")
    assert (told.watts.now_w, told.watts.is_measured) == (81.5, True)


async def test_a_machine_that_is_free_was_so_since_it_could_be_used(
    core: Core, journal: Path
) -> None:
    told = await asked(core, journal, "m2")
    assert (told.state, told.since_s, told.jobs, told.owner_week) == ("free", T, [], None)


async def test_since_when_an_owner_is_there_is_the_journals(core: Core, journal: Path) -> None:
    came: NamedEvent = (T + 1800, OWNER_CAME, "m2", None)
    tell(core, "log", [came, (T + 1800, OWNER_CAME, "m1", None)], T + 1900)
    assert (await asked(core, journal, "m2")).since_s is None, "the journal does not know"
    told = await asked(core, journal, "m1")
    assert (told.state, told.since_s) == ("owner", None), "nor of this one, whose owner went before"
    with Journal(journal) as writing:
        writing.append(Entry(inputs=[("log", came)]))
    told = await asked(core, journal, "m2")
    assert (told.state, told.since_s) == ("owner", T + 1800)


async def test_users_are_shown_by_pseudonyms_to_who_may_not_see_names(
    core: Core, journal: Path
) -> None:
    told = await asked(core, journal, "m1", sees_names=False)
    assert is_pseudonym(told.jobs[0].user)
    assert (told.jobs[0].vo, told.runs[0].vo) == ("physics", "physics"), "no user is in them"
    personal = KnownUsers()
    personal.recall({"physics": "physics"})
    told = await asked(core, journal, "m1", False, personal)
    assert "physics" not in (told.jobs[0].vo, told.runs[0].vo)
    told = await asked(core, journal, "m1", True, personal)
    assert (told.jobs[0].vo, told.runs[0].vo) == ("physics", "physics")


async def test_failed_starts_are_counted_of_this_machine_alone(core: Core, journal: Path) -> None:
    events: list[NamedEvent] = []
    for n, machine in enumerate(["m2"] * 2 + ["m1"]):
        job, at_s = f"{n + 5}.0", T + 1810 + 10 * n
        events += [
            (at_s, SUBMITTED, job, JobSpec(user="bob")),
            (at_s + 1, STARTED, job, (machine, 1)),
            (at_s + 2, EVICTED, job, "failed_start"),
        ]
    tell(core, "log", events, T + 1900)
    told = (await asked(core, journal, "m2")).failed_starts
    assert (told.tried, told.failed, told.is_black_hole) == (2, 2, False)


@pytest.mark.parametrize("name", ["m3", "m2"])
async def test_a_machine_that_is_not_here_is_not_found(
    core: Core, journal: Path, name: str
) -> None:
    tell(core, "log", [(T + 1801, LEFT, "m2", None)], T + 1810)
    with pytest.raises(NotFoundError, match=f"no machine '{name}' is known here"):
        await asked(core, journal, name)


async def test_a_journal_that_cannot_be_read_is_told_without_its_path(
    core: Core, tmp_path: Path
) -> None:
    answer = await asked(core, tmp_path / "gone.sqlite", "m1")
    assert answer.status == 503
    assert str(tmp_path) not in answer.text
