"""Rejection of events that cannot be applied: with a reason, and without any change."""

from math import inf, nan
from typing import Any

import msgspec
import pytest

from outrider.engine.ingest.set_aside import MAX_CPUS, REASONS
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import Job, JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.ingest.streams import Live, run_of

QUEUED: list[NamedEvent] = [(1.0, ev.SUBMITTED, "1.0", JobSpec())]
RUNNING: list[NamedEvent] = [*QUEUED, (2.0, ev.STARTED, "1.0", ("a1", 1))]
DONE = run_of("1.0", "a1", 1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("before", "event", "reason"),
    [
        (DONE, (9.0, ev.EVICTED, "1.0", "owner"), "after_end"),
        (DONE, (9.0, ev.STARTED, "1.0", ("a1", 1)), "after_end"),
        (QUEUED, (9.0, ev.RESUMED, "1.0", None), "impossible_state"),
        (QUEUED, (9.0, ev.SUSPENDED, "1.0", None), "impossible_state"),
        (QUEUED, (9.0, ev.RESIZED, "1.0", 2), "impossible_state"),
        (RUNNING, (9.0, ev.RELEASED, "1.0", None), "impossible_state"),
        (RUNNING, (9.0, ev.POWER, "fridge", 80.0), "unknown_machine"),
        (QUEUED, (1e12, ev.COMPLETED, "1.0", None), "impossible_time"),
        (QUEUED, (-1e12, ev.COMPLETED, "1.0", None), "impossible_time"),
        (QUEUED, (9.0, ev.STARTED, "1.0", ("a1", 0)), "impossible_value"),
        (QUEUED, (9.0, ev.STARTED, "1.0", ("a1", -4)), "impossible_value"),
        (QUEUED, (9.0, ev.STARTED, "1.0", ("a1", MAX_CPUS + 1)), "impossible_value"),
        (RUNNING, (9.0, ev.RESIZED, "1.0", 0), "impossible_value"),
        (RUNNING, (9.0, ev.CHANGED, "1.0", {"cpus": 0}), "impossible_value"),
        (RUNNING, (9.0, ev.CHANGED, "1.0", {"estimate_s": nan}), "impossible_value"),
        ([], (9.0, ev.SUBMITTED, "2.0", JobSpec(cpus=-1)), "impossible_value"),
        ([], (9.0, ev.SUBMITTED, "2.0", JobSpec(estimate_s=-1.0)), "impossible_value"),
        ([], (9.0, ev.JOINED, "a1", MachineSpec(cpus=0)), "impossible_value"),
        ([], (9.0, ev.JOINED, "a1", MachineSpec(speed=inf)), "impossible_value"),
        ([], (9.0, ev.JOINED, "a1", MachineSpec(active_w=-5.0)), "impossible_value"),
        (RUNNING, (9.0, ev.POWER, "a1", -5.0), "impossible_value"),
    ],
)
def test_what_cannot_be_is_set_aside_with_its_reason_and_changes_nothing(
    before: list[NamedEvent], event: NamedEvent, reason: str
) -> None:
    live, spared = Live(), Live()
    for site in (live, spared):
        site.tell("log", before)
        site.seen("log", 5.0)
    live.tell("log", [event])
    for site in (live, spared):
        site.seen("log", 1e13)
    assert live.merger.set_aside == dict.fromkeys(REASONS, 0) | {reason: 1}
    assert [(put.event, put.reason) for put in live.merger.newly_set_aside] == [(event, reason)]
    jobs = [msgspec.to_builtins(job.save()) for job in live.site.jobs.values()]
    assert jobs == [msgspec.to_builtins(job.save()) for job in spared.site.jobs.values()]
    assert live.told() == spared.told()


def test_an_event_that_is_told_again_is_a_duplicate_and_not_set_aside_twice() -> None:
    live = Live()
    late: NamedEvent = (9.0, ev.EVICTED, "1.0", "owner")
    live.all_at_once("log", [*DONE, late, late])
    assert live.merger.set_aside["after_end"] == 1
    assert live.merger.duplicates["log"] == 1


def test_an_impossible_first_word_of_a_job_still_tells_that_it_is_there() -> None:
    live = Live()
    live.all_at_once("log", [(5.0, ev.RESUMED, "1.0", None)])
    assert live.told()["report"]["jobs"]["unfinished"] == 1
    assert live.merger.set_aside["impossible_state"] == 0
    assert live.merger.normaliser.repairs == {"unseen_submission": 1}


def test_the_end_of_a_job_whose_number_is_given_again_is_recorded_under_its_name() -> None:
    """The batch system restarted its numbering: of two jobs of one name the old one is over."""
    live = Live()
    named: list[str] = []
    ended = live.decision_log.ended
    names = live.merger.normaliser.job_names

    def naming(policy: str, job: Job, *rest: Any) -> None:
        named.append(names[job.number])
        ended(policy, job, *rest)

    live.decision_log.ended = naming  # type: ignore[method-assign]
    again = (50.0, ev.SUBMITTED, "1.0", JobSpec(user="ada"))
    live.all_at_once("log", [*RUNNING, again])
    assert named == ["1.0"]
    assert live.told()["repairs"] == {"submitted_twice": 1}
