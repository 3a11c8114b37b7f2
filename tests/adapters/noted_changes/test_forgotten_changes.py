"""Begin times that a batch system confirmed, and forgot: it was killed before it had saved them."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from outrider.api import PeerError, UndoLog
from outrider_adapters.noted_changes import BeginTimes, apply_changes

LEASE_S = 300
T = 1_000_000_000
JOB, OTHER = "c:1", "c:2"
FORGOTTEN = "1 jobs are as Outrider changed them before: c:1: its start time is "


class Waits(NamedTuple):
    """A job in the queue."""

    eligible_s: float | None


class Queue:
    """Jobs of a batch system that accepts every change, and may lose or refuse some.

    Attributes:
        forgets: jobs whose changes are confirmed and not there afterwards.
        says: in which words it refuses what it is told of these jobs.
    """

    def __init__(self) -> None:
        self.undo_log = UndoLog()
        self.begin_s = {JOB: float(T), OTHER: float(T)}
        self.forgets: set[str] = set()
        self.says = ""
        self._times = BeginTimes(self.undo_log, float(LEASE_S))

    def defer(self, now_s: int, *jobs: str) -> dict[str, str]:
        """Keep these, or renew that; what is refused."""
        plan = self._times.deferred({job: self._waiting()[job] for job in jobs}, now_s)
        return plan.refused | apply_changes([self._times.change(plan)], self._make, self._waiting)

    def release(self, now_s: int, *jobs: str) -> dict[str, str]:
        """Let these begin; what is refused."""
        plan = self._times.released({job: self._waiting()[job] for job in jobs}, now_s)
        return plan.refused | apply_changes([self._times.change(plan)], self._make, self._waiting)

    def _make(self, values: Mapping[str, Mapping[str, int]]) -> str:
        kept = {job: v["begin_s"] for job, v in values.items() if job not in self.forgets}
        self.begin_s |= kept
        return self.says

    def _waiting(self) -> dict[str, Waits]:
        return {job: Waits(at_s) for job, at_s in self.begin_s.items()}


@pytest.fixture
def queue() -> Queue:
    """Two jobs, deferred at T; from then on the first one's changes are forgotten."""
    made = Queue()
    assert made.defer(T, JOB, OTHER) == {}
    made.forgets = {JOB}
    return made


def test_a_renewal_that_is_forgotten_fails_and_is_made_the_next_time(queue: Queue) -> None:
    noted = queue.undo_log.entries[JOB]
    with pytest.raises(PeerError, match=f"{FORGOTTEN}{T + 300} and not {T + 400}") as failed:
        queue.defer(T + 100, JOB, OTHER)
    assert failed.value.transient
    assert queue.begin_s == {JOB: T + 300, OTHER: T + 400}, "the other one is renewed"
    assert queue.undo_log.entries[JOB] == noted, "what stands is noted"
    queue.forgets = set()
    assert queue.defer(T + 105, JOB, OTHER) == {}
    assert queue.begin_s == {JOB: T + 405, OTHER: T + 405}
    assert queue.release(T + 110, JOB, OTHER) == {}
    assert queue.begin_s == {JOB: T + 110, OTHER: T + 110}


def test_a_release_that_is_forgotten_fails_and_is_made_the_next_time(queue: Queue) -> None:
    with pytest.raises(PeerError, match=f"{FORGOTTEN}{T + 300} and not {T + 100}"):
        queue.release(T + 100, JOB, OTHER)
    assert queue.begin_s == {JOB: T + 300, OTHER: T + 100}
    queue.forgets = set()
    assert queue.release(T + 105, JOB) == {}
    assert queue.begin_s[JOB] == T + 105


def test_what_is_refused_in_words_is_refused(queue: Queue) -> None:
    queue.says = "Access/permission denied for job 1"
    assert queue.defer(T + 100, JOB, OTHER) == {JOB: queue.says}
    assert queue.begin_s[JOB] == T + 300


def test_a_first_deferral_that_is_not_there_is_refused() -> None:
    queue = Queue()
    queue.forgets = {JOB}
    refused = {JOB: f"its start time is {T} and not {T + 310}"}
    assert queue.defer(T + 10, JOB) == refused
    assert not queue.undo_log.entries, "nothing of ours stands"


def test_who_forgets_for_a_whole_lease_refuses(queue: Queue) -> None:
    for now_s in (T + 100, T + 299):
        with pytest.raises(PeerError, match=FORGOTTEN):
            queue.defer(now_s, JOB)
    refused = {JOB: f"its start time is {T + 300} and not {T + 600}"}
    assert queue.defer(T + 300, JOB) == refused


def test_two_renewals_in_a_row_may_be_forgotten_and_are_no_change_of_a_user(queue: Queue) -> None:
    queue.forgets = set()
    for now_s in (T + 4, T + 8):
        assert queue.defer(now_s, JOB, OTHER) == {}
    queue.begin_s = {JOB: T + 300, OTHER: T + 301}
    changed = {OTHER: "its start time was changed since Outrider set it"}
    assert queue.defer(T + 12, JOB, OTHER) == changed
    assert queue.begin_s == {JOB: T + 312, OTHER: T + 301}
    assert queue.defer(T + 112, JOB) == {}
    queue.begin_s[JOB] = T + 300
    assert queue.defer(T + 113, JOB).keys() == {JOB}, "it was saved long ago"
