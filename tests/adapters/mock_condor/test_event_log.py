"""The pool's event log is HTCondor's: its own reader and ours read the same in it."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from outrider.api import NamedEvent, ReaderOptions, Reading, events
from outrider.model.events import KIND_NAMES
from outrider_adapters.htcondor.pool_calls import htcondor2
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    JOB,
    Faults,
    JobAction,
    Machine,
    MockPool,
    made_pool,
)

SCHEDD = "schedd@mock.local"
KINDS = {
    0: events.SUBMITTED,
    1: events.STARTED,
    4: events.EVICTED,
    5: events.COMPLETED,
    9: events.REMOVED,
    10: events.SUSPENDED,
    11: events.RESUMED,
    12: events.HELD,
    13: events.RELEASED,
}


def eventful_pool(path: Path, faults: Faults | None = None) -> MockPool:
    """Return a pool with every event that the log can contain."""
    with path.open("w", encoding="utf-8") as log:
        pool = made_pool(2, log=log, faults=faults)
        alice = pool.schedd("alice")
        pool.submit("alice", {**JOB, "accounting_group": "physics"}, 300, 4)
        pool.submit("alice", {**JOB, "hold": "true"}, 300)
        pool.advance(BEGIN_S + 60.25)
        pool.owner_came("m0")
        pool.advance(BEGIN_S + 61.5)
        pool.owner_went("m0")
        pool.advance(BEGIN_S + 130)
        alice.act(JobAction.Suspend, "JobStatus == 2")
        pool.advance(BEGIN_S + 140)
        alice.act(JobAction.Continue, "JobStatus == 7")
        alice.act(JobAction.Hold, "1.3")
        alice.act(JobAction.Hold, "JobStatus == 2", ("enough", 1))
        pool.advance(BEGIN_S + 200)
        alice.act(JobAction.Release, "JobStatus == 5")
        pool.advance(BEGIN_S + 300)
        alice.act(JobAction.Remove, "JobStatus == 2")
        alice.act(JobAction.Remove, "2.0")
        pool.advance(BEGIN_S + 2000)
    return pool


def theirs(path: Path) -> list[Any]:
    with htcondor2.JobEventLog(str(path)) as log:
        return list(log.events(stop_after=0))


def ours(path: Path) -> Reading:
    return HTCondorLogReader(ReaderOptions()).read(path.read_bytes(), final=True)


def reported(reading: Reading) -> list[NamedEvent]:
    return [event for event in reading.events if event is not None]


def test_both_readers_find_the_same_events_of_the_same_jobs_at_the_same_seconds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "EventLog"
    eventful_pool(path)
    reading = ours(path)
    assert reading.rejected == {}
    assert set(reading.ignored) == {"job_ad_information"}
    mine = [(event[1], event[2], int(event[0])) for event in reported(reading)]
    real = [
        (KINDS[int(event.type)], f"{SCHEDD}#{event.cluster}.{event.proc}", int(event.timestamp))
        for event in theirs(path)
        if int(event.type) != 28
    ]
    assert sorted(mine, key=str) == sorted(real, key=str)
    assert {kind for kind, _, _ in mine} == set(KINDS.values()), "everything was tried"


def test_the_log_tells_the_machine_the_user_and_the_group(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    eventful_pool(path)
    events_told = reported(ours(path))
    starts = [event[3] for event in events_told if event[1] == events.STARTED]
    assert {machine for machine, *_ in starts} == {"m0", "m1"}
    (spec,) = {
        event[3] for event in events_told if event[1:3] == (events.SUBMITTED, f"{SCHEDD}#1.0")
    }
    assert (spec.user, spec.vo) == ("alice", "physics")


def test_the_log_says_why_a_run_ended_where_the_real_one_does(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    eventful_pool(path)
    reasons = Counter(event[3] for event in reported(ours(path)) if event[1] == events.EVICTED)
    assert set(reasons) == {"unknown", "held", "removed"}, "an owner's return is unknown there"


def test_the_log_and_the_queue_tell_the_same_story(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    pool = eventful_pool(path)
    starts = Counter(event[2] for event in reported(ours(path)) if event[1] == events.STARTED)
    ads = pool.schedd("alice").query() + pool.schedd("alice").history()
    assert starts == Counter(
        {ad["GlobalJobId"].rpartition("#")[0]: ad.get("JobRunCount", 0) for ad in ads}
    )


def test_records_look_like_those_of_a_real_pool(shared: Path, tmp_path: Path) -> None:
    sample = shared / "peers/htcondor/samples/EventLog.text"
    if not sample.is_file():
        pytest.skip("EventLog.text is not in the shared folder")
    path = tmp_path / "EventLog"
    eventful_pool(path)
    real: dict[tuple[int, str], type] = {}
    for event in theirs(sample):
        real |= {(int(event.type), name): type(value) for name, value in event.items()}
    known = {number for number, _ in real}
    mine = {
        (int(event.type), name): type(value)
        for event in theirs(path)
        for name, value in event.items()
        if int(event.type) in known
    }
    assert {number for number, _ in mine} >= {0, 1, 4, 5, 9, 12, 13, 28}
    wrong = {key: (kind, real[key]) for key, kind in mine.items() if real.get(key, kind) != kind}
    assert wrong == {}
    assert {name for _, name in mine if (28, name) not in real and _ == 28} <= {
        "AcctGroup",
        "AccountingGroup",
        "GlobalJobId",
        "RequestCpus",
    }


def test_a_log_in_which_records_stand_twice_tells_nothing_new(tmp_path: Path) -> None:
    clean, doubled = tmp_path / "clean", tmp_path / "doubled"
    eventful_pool(clean)
    eventful_pool(doubled, Faults(duplicate_record_ratio=0.5))
    assert len(reported(ours(doubled))) > len(reported(ours(clean)))
    events_read = [{event[:3] for event in reported(ours(path))} for path in (clean, doubled)]
    assert events_read[0] == events_read[1]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_a_job_and_a_slot_agree(seed: int, tmp_path: Path) -> None:
    """Test random acts of users and owners: slots are exclusive, and the log is plausible."""
    rng = random.Random(seed)
    machines = [Machine(name=f"m{n}", slots=1 + n % 2) for n in range(6)]
    path = tmp_path / "EventLog"
    here: set[str] = set()
    submitted = 0
    with path.open("w", encoding="utf-8") as log:
        pool = made_pool(machines, log=log, seed=seed)
        for _ in range(400):
            deed = rng.random()
            machine = f"m{rng.randrange(6)}"
            if deed < 0.25:
                count = rng.randrange(1, 4)
                pool.submit(rng.choice(("alice", "bob")), JOB, rng.uniform(1, 900), count)
                submitted += count
            elif deed < 0.45:
                (pool.owner_went if machine in here else pool.owner_came)(machine)
                here ^= {machine}
            elif deed < 0.6 and pool.queue.jobs:
                job = rng.choice(list(pool.queue.jobs.values()))
                pool.schedd("condor").act(rng.choice(list(JobAction)), [job.name])
            else:
                pool.advance(pool.now_s + rng.uniform(0, 120))
            running = [job for job in pool.queue.jobs.values() if job.slot is not None]
            assert all(job.slot is not None and job.slot.job is job for job in running)
            assert len(running) == sum(slot.job is not None for slot in pool.slots())
            assert {job.status for job in running} <= {2, 7}
            assert len(pool.queue.jobs) + len(pool.queue.history) == submitted
            used = pool.negotiator("condor").getPriorities()
            assert sum(ad["ResourcesUsed"] for ad in used) == len(running)
            assert not any(slot.job for slot in pool.slots() if slot.name.partition("@")[2] in here)
    assert _impossible(reported(ours(path))) == []


_MAY_FOLLOW: dict[int, set[int | None]] = {
    events.SUBMITTED: {None},
    events.STARTED: {events.SUBMITTED, events.EVICTED, events.RELEASED},
    events.EVICTED: {events.STARTED, events.SUSPENDED, events.RESUMED},
    events.COMPLETED: {events.STARTED, events.RESUMED},
    events.SUSPENDED: {events.STARTED, events.RESUMED},
    events.RESUMED: {events.SUSPENDED},
    events.HELD: {events.SUBMITTED, events.EVICTED, events.RELEASED},
    events.RELEASED: {events.HELD},
    events.REMOVED: {events.SUBMITTED, events.EVICTED, events.HELD, events.RELEASED},
}


def _impossible(story: list[NamedEvent]) -> list[tuple[str, str]]:
    last: dict[str, int] = {}
    wrong = []
    for _, kind, job, _ in story:
        if last.get(job) not in _MAY_FOLLOW[kind]:
            wrong.append((job, KIND_NAMES[kind]))
        last[job] = kind
    return wrong
