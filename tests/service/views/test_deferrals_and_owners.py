"""Outrider's additions to the batch system's reason: end of a deferral, owners' hours."""

import datetime as dt
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from outrider.api import JobSpec, MachineSpec, WaitingReason
from outrider.model.decisions import DecisionRow
from outrider.model.events import (
    ELIGIBLE,
    EVICTED,
    JOINED,
    OWNER_CAME,
    STARTED,
    SUBMITTED,
    USABLE,
    NamedEvent,
)
from outrider.service.core.core import Core
from outrider.service.views.expected_starts import Kept, kept_jobs
from outrider.service.views.explanation import explain
from outrider.service.views.waiting_reasons import SystemAnswer
from tests.fixtures.cores import core_of, tell

ZONE = ZoneInfo("Europe/Berlin")
LEASE = {"lever": "x", "action": "defer", "machine": None, "decided_s": 0.0,
         "refused_because": None}  # fmt: skip
SAID = SystemAnswer("pool", WaitingReason(code="Idle", sentence="2 machines may run it"))


def at(day: int, clock: str, month: int = 11) -> float:
    """Return a moment of 2023 in Berlin; the 15th of November was a Wednesday."""
    hour, minute = map(int, clock.split(":"))
    return dt.datetime(2023, month, day, hour, minute, tzinfo=ZONE).timestamp()


def explained(core: Core, job: str, **more: Any) -> dict[str, Any]:
    told = explain(core, job, [], SAID, **more)
    assert told is not None
    return told


# -- deferrals --------------------------------------------------------------------------------


def deferring(reconsider_s: float, max_defer_s: float) -> Core:
    """Return a core whose policy has deferred job 1 at ten o'clock for having lost two hours."""
    hold = {"hold_after_h": 1.0, "max_defer_s": max_defer_s}
    core = core_of(
        "log", policies={"watts_hold": hold}, reconsider_s=reconsider_s, timezone="Europe/Berlin"
    )
    events: list[NamedEvent] = [
        (at(15, "08:00"), JOINED, "m1", MachineSpec("lab", active_w=57.0)),
        (at(15, "08:00"), SUBMITTED, "1", JobSpec()),
        (at(15, "08:00"), STARTED, "1", ("m1", 1)),
        (at(15, "10:00"), EVICTED, "1", "unknown"),
    ]
    tell(core, "log", events, at(15, "10:01"))
    return core


def test_a_deferral_is_told_with_the_moment_of_the_next_decision_and_the_longest() -> None:
    core = deferring(reconsider_s=3600.0, max_defer_s=36_000.0)
    told = explained(core, "1")
    until = "until 2023-11-15 11:00 CET (2023-11-15 20:00 CET at the latest): jobs were often"
    assert told["sentence"] == (
        "1 waits: 2 machines may run it. In shadow: watts_hold would keep it queued "
        f"{until} evicted at this hour."
    )
    [policy] = told["policies"]
    assert (policy["until_s"], policy["latest_s"]) == (at(15, "11:00"), at(15, "20:00"))


def test_the_policys_bound_counts_where_it_comes_before_the_next_decision() -> None:
    told = explained(deferring(reconsider_s=3600.0, max_defer_s=1800.0), "1")
    assert told["sentence"].endswith(
        "watts_hold would keep it queued until 2023-11-15 10:30 CET: jobs were often evicted at "
        "this hour."
    )


def test_a_job_that_outrider_keeps_is_deferred_and_not_only_would_be() -> None:
    told = explained(deferring(3600.0, float("inf")), "1", lease=LEASE)
    assert told["sentence"].endswith(
        "watts_hold keeps it queued until 2023-11-15 11:00 CET: jobs were often evicted at this "
        "hour. "
        "Outrider keeps it in the queue until it decides otherwise."
    )
    assert told["policies"][0]["latest_s"] is None, "it may be deferred for ever"


def test_a_job_that_outrider_keeps_is_kept_as_long_as_levers_may_at_most() -> None:
    core = deferring(reconsider_s=3600.0, max_defer_s=604_800.0)
    decision = DecisionRow(core.now_s, "1", "defer", None, 1, "evicted", "watts_hold", "active")
    levers: Any = SimpleNamespace(threads=[SimpleNamespace(kept={"1": (decision, 840.0)})])
    kept = kept_jobs(core, levers)
    latest_s = core.now_s + 840.0
    assert kept == {"1": Kept(latest_s, latest_s)}
    starts: Any = SimpleNamespace(kept_until_s=lambda job: latest_s, explained=lambda job: None)
    told = explained(core, "1", lease=LEASE, starts=starts)
    assert "watts_hold keeps it queued until 2023-11-15 10:15 CET: " in told["sentence"]
    assert told["policies"][0]["latest_s"] == latest_s


# -- owners -----------------------------------------------------------------------------------


def owned(now_s: float, *, hours: str = "mon-fri 09:00-17:00", free: str = "") -> Core:
    """Return a core with a job, and owners at both lab machines and one in the library."""
    core = core_of(
        "log", timezone="Europe/Berlin",
        clusters={"lab": {"open": hours}, "library": {"open": "mon-fri 08:00-22:00"}},
    )  # fmt: skip
    places = {"m1": "lab", "m2": "lab", "m3": "library", "m4": "hall"}
    events: list[NamedEvent] = []
    for machine, cluster in places.items():
        spec = MachineSpec(cluster, usable=False)
        events += [(now_s, JOINED, machine, spec), (now_s, OWNER_CAME, machine, None)]
    if free:
        events += [(now_s, JOINED, free, MachineSpec("lab")), (now_s, USABLE, free, None)]
    events += [
        (now_s, ELIGIBLE, "in the lab", ("m1", "m2", "m5")),
        (now_s, SUBMITTED, "any", JobSpec()),
        (now_s, SUBMITTED, "lab", JobSpec(eligible="in the lab")),
    ]
    tell(core, "log", events, now_s + 5)
    return core


def test_owners_at_all_machines_that_a_job_may_use_go_when_their_hours_end() -> None:
    core = owned(at(15, "10:00"))
    lab = (
        "wait for the owner hours of lab to end, 15 Nov 17:00: "
        "owners use 2 machines that it may use there"
    )
    library = (
        "wait for the owner hours of library to end, 15 Nov 22:00: "
        "owners use 1 machine that it may use there"
    )
    assert explained(core, "lab")["remedies"] == [lab]
    assert explained(core, "any")["remedies"] == [lab, library], "the hall's are not known"


@pytest.mark.parametrize(
    ("hours", "closes"),
    [("mon-fri 09:00-17:00, wed 16:00-19:00", "15 Nov 19:00"), ("fri 22:00-02:00", None),
     ("wed 09:00-24:00, thu 00:00-01:00", "16 Nov 01:00"), ("mon-sun 00:00-24:00", None),
     ("always", None), ("never", None), ("sat-wed 10:00-11:00", "15 Nov 11:00")],
)  # fmt: skip
def test_only_hours_that_are_on_and_end_can_be_waited_for(hours: str, closes: str | None) -> None:
    found = explained(owned(at(15, "10:00"), hours=hours), "lab")["remedies"]
    assert [one.split(": ")[0].rpartition(", ")[2] for one in found] == [closes] * bool(closes)


def test_hours_over_the_end_of_a_week_and_over_a_change_of_clocks() -> None:
    core = owned(at(19, "23:00"), hours="sun 20:00-24:00, mon 00:00-06:00")
    assert "to end, 20 Nov 06:00:" in explained(core, "lab")["remedies"][0]
    core = owned(at(28, "23:00", month=10), hours="sat 20:00-24:00, sun 00:00-06:00")
    assert "to end, 29 Oct 06:00:" in explained(core, "lab")["remedies"][0], "by the wall clock"


def test_where_a_machine_is_free_it_is_not_owners_for_whom_a_job_waits() -> None:
    assert explained(owned(at(15, "10:00"), free="m5"), "lab")["remedies"] == []
