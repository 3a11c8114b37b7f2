"""Metrics that alerts about the site ask for: queues of VOs, black holes, meters."""

import time
from typing import Any

from outrider.api import JobSpec, MachineSpec
from outrider.model.events import (
    COMPLETED,
    EVICTED,
    HELD,
    JOINED,
    POWER,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from outrider.model.jobs import Job
from outrider.service.core.core import Core
from outrider.service.core.failed_starts import LOOK_BACK_S, FailedStarts
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.metrics.exposition import expose
from tests.fixtures.cores import RECORDING, T, core_of, tell

WITHIN_S = 10.0


def lines_of(core: Core) -> set[str]:
    """Return the lines of an exposition, without the prefix."""
    text = expose(MetricsExporter(core).take(RECORDING, 0.0), "text/plain")[0].decode()
    return {line.removeprefix("outrider_") for line in text.splitlines()}


def test_the_queue_of_each_vo_and_its_longest_wait_are_told() -> None:
    core = core_of("log", shares={"a": 0.5, "b": 0.25, "c": 0.25})
    of_a, late = JobSpec(vo="a"), JobSpec(vo="b", eligible_s=T + 900)
    events: list[NamedEvent] = [(T + n, SUBMITTED, f"{n}", of_a) for n in range(4)]
    events += [(T + 20, SUBMITTED, "later", late), (T + 30, STARTED, "0", ("m1", 1))]
    events += [(T + 40, HELD, "3", None)]
    tell(core, "log", events, T + 1_000)
    lines = lines_of(core)
    for vo, state, n in (
        ("a", "queued", 2), ("a", "running", 1), ("a", "held", 1), ("b", "queued", 1),
        ("b", "running", 0), ("c", "queued", 0),
    ):  # fmt: skip
        assert f'vo_jobs{{state="{state}",vo="{vo}"}} {n}.0' in lines
    now = core.site.now
    for vo, wait_s in (("a", now - T - 1), ("b", now - T - 900), ("c", 0.0)):
        assert f'vo_longest_wait_seconds{{vo="{vo}"}} {wait_s}' in lines, vo


def test_a_job_that_was_evicted_waits_no_more_for_its_first_start() -> None:
    core = core_of("log")
    events: list[NamedEvent] = [
        (T, SUBMITTED, "1", JobSpec()), (T + 1, STARTED, "1", ("m1", 1)),
        (T + 900, EVICTED, "1", "owner"),
    ]  # fmt: skip
    tell(core, "log", events, T + 1_000)
    lines = lines_of(core)
    assert 'vo_jobs{state="queued",vo="all"} 1.0' in lines
    assert 'vo_longest_wait_seconds{vo="all"} 0.0' in lines


def test_what_the_table_says_of_machines_with_a_meter_stands_beside_the_meters() -> None:
    core = core_of("log")
    lab = MachineSpec("lab", 2, active_w=100.0, idle_w=40.0)
    told: list[Any] = [(T, JOINED, f"m{n}", lab) for n in range(3)]
    told += [(T + 1, STARTED, "1", ("m0", 2)), (T + 2, POWER, "m0", 0.09), (T + 2, POWER, "m1", 41)]
    tell(core, "log", told, T + 60)
    lines = lines_of(core)
    assert "metered_machines 2.0" in lines
    assert "metered_table_watts 140.0" in lines
    assert 'power_watts{source="measured"} 41.09' in lines
    tell(core, "log", [(T + 2_000, JOINED, "m9", lab)], T + 2_001)
    assert "metered_machines 0.0" in lines_of(core), "a reading holds for 15 minutes"


def tried(n: int, machine: str, job: str, user: str, *, fails: bool) -> list[NamedEvent]:
    """Return a run on a machine: it fails within seconds, or lasts and completes."""
    at_s = T + 1_000.0 * n
    spec = JobSpec(user=user)
    ends: NamedEvent = (
        (at_s + 5, EVICTED, job, "unknown") if fails else (at_s + 900, COMPLETED, job, None)
    )
    return [(at_s, SUBMITTED, job, spec), (at_s + 1, STARTED, job, (machine, 1)), ends]


def test_a_machine_that_swallows_jobs_is_counted_in_its_cluster() -> None:
    core = core_of("log", clusters={"lab": {"match": ["lab*"]}, "hall": {"match": ["hall*"]}})
    events: list[NamedEvent] = []
    for n in range(12):
        for machine in ("lab-1", "lab-2", "hall-1", "hall-2"):
            fails = machine == "lab-2"
            events += tried(n, machine, f"{machine}-{n}", f"user{n % 3}", fails=fails)
    events.sort(key=lambda event: event[0])
    tell(core, "log", events, T + 13_000)
    wait_for_line(core, 'black_hole_machines{cluster="lab"} 1.0')
    assert 'black_hole_machines{cluster="hall"} 0.0' in lines_of(core)
    tell(core, "log", [(T + 200_000, SUBMITTED, "much later", JobSpec())], T + 200_001)
    core.accounting.failed_starts._due_s = 0.0  # as if a minute had passed
    wait_for_line(core, 'black_hole_machines{cluster="lab"} 0.0')


def wait_for_line(core: Core, line: str) -> None:
    """Black holes are worked out in a thread."""
    exporter = MetricsExporter(core)
    deadline_s = time.monotonic() + 10.0
    while time.monotonic() < deadline_s:
        text = expose(exporter.take(RECORDING, 0.0), "text/plain")[0].decode()
        if f"outrider_{line}" in text.splitlines():
            return
        time.sleep(0.05)
    raise AssertionError(f"never told: {line}")


def failed(number: int, machine: int, at_s: float) -> Job:
    job = Job(number, JobSpec(user=f"user{number % 2}"), at_s)
    job.machine, job.start_s = machine, at_s
    return job


def test_users_whose_jobs_fail_everywhere_and_owners_who_return_make_no_black_hole() -> None:
    starts = FailedStarts()
    for number in range(200):
        job = failed(number, number % 5, float(number))
        starts.note(job, job.start_s + WITHIN_S, "unknown")
        job = failed(1_000 + number, 7, float(number))
        starts.note(job, job.start_s + WITHIN_S, "owner")
    assert settled(starts, 200.0) == []


def test_no_more_tries_are_kept_than_were_allowed_and_none_that_is_a_day_old() -> None:
    starts = FailedStarts(max_tries=10)
    for number in range(50):
        job = failed(number, number % 5, float(number))
        starts.note(job, job.start_s + WITHIN_S, "unknown")
        starts.note(job, job.start_s + WITHIN_S, "unknown")  # again on this machine: counts once
    assert len(starts._tries) == 10
    starts.black_holes(40.0 + WITHIN_S + LOOK_BACK_S + 5.0)
    assert len(starts._tries) == 5


def settled(starts: FailedStarts, now_s: float) -> list[Any]:
    """Return the black holes once the worker thread has found them."""
    starts.black_holes(now_s)
    if starts._work is not None:
        starts._work.result(10.0)
    return starts.black_holes(now_s)
