"""Tests of eviction reasons, by hand-made ads of the job and its slot."""

from collections.abc import Sequence
from typing import Any

import pytest

from outrider.api import Batch, NamedEvent, events
from outrider_adapters.htcondor import AccessPoint, PoolCalls
from outrider_adapters.htcondor.access_points import Look
from outrider_adapters.htcondor.job_steps import LostRun
from outrider_adapters.htcondor.machines import MachineState
from outrider_adapters.htcondor.pool_calls import AdType, ClassAd, HTCondorException
from outrider_adapters.htcondor.pool_watch import Causes
from outrider_adapters.polling import Asking

NOW_S = 1_000.0
LOST_S = 990.0
SLOT = "slot1@m1"
JOB = {"ClusterId": 1, "ProcId": 0, "User": "ann@x", "JobStatus": 1, "LastRemoteHost": SLOT,
       "LastVacateTime": 990, "VacateReasonCode": 1005, "JobCurrentStartDate": 900,
       "JobCurrentStartExecutingDate": 901}  # fmt: skip
FREE = {"Name": SLOT, "State": "Unclaimed", "EnteredCurrentState": 990, "MyCurrentTime": 992,
        "OwnerActive": False, "RecentJobRankPreemptions": 0,
        "RecentJobUserPrioPreemptions": 0}  # fmt: skip
TAKEN = FREE | {"State": "Claimed", "RemoteOwner": "bob@x"}
UNCOUNTED = {name: value for name, value in TAKEN.items() if not name.startswith("Recent")}
OWNED = MachineState("A", 1, True, False, False, False, 990.0, 992.0, 64.0, 0.0)


class Answering:
    """Answers each question with the same ads, or with a failure.

    Attributes:
        asked: the constraints of the questions.
        later: what the ads are after the first pause.
        pauses: how many there were.
    """

    def __init__(self, *ads: dict[str, Any], fails: bool = False) -> None:
        self.ads = [ClassAd(dict(ad)) for ad in ads]
        self.asked: list[str] = []
        self.later = self.ads
        self.pauses = 0
        self._fails = fails

    def passes(self, _: float) -> None:
        self.pauses += 1
        self.ads = self.later

    def query(self, *words: Any) -> Sequence[Any]:
        self.asked.append(str(words[-2]))
        if self._fails:
            raise HTCondorException("silent")
        return self.ads


def reported(
    job: Answering, slot: Answering, reason: str = "unknown", at_s: float = LOST_S,
    machine: str = "m1", queued_start_s: float | None = None,
) -> list[NamedEvent]:  # fmt: skip
    """Return the events of one eviction."""
    calls = PoolCalls(slot, AdType.Startd, HTCondorException, ())
    point = AccessPoint("ap", job, HTCondorException)  # type: ignore[arg-type]
    event: NamedEvent = (at_s, events.EVICTED, "ap#1.0", reason)
    look = Look(Batch(events=[event], cursor=None), {event: LostRun(machine, queued_start_s)})
    causes = Causes(calls, Asking(HTCondorException), slot.passes)
    return causes.add_causes(point, look, {"m1": OWNED}, NOW_S)


def cause(job: dict[str, Any], slot: dict[str, Any], reason: str = "unknown") -> str:
    """Return the reason of one eviction."""
    [(*_, found)] = reported(Answering(job), Answering(slot), reason)
    return str(found)


@pytest.mark.parametrize(
    ("slot", "reason"),
    [
        (FREE, "unknown"),
        (FREE | {"OwnerActive": True, "State": "Owner"}, "owner"),
        (FREE | {"OwnerActive": True, "State": "Owner", "EnteredCurrentState": 1_001}, "unknown"),
        (FREE | {"State": "Drained", "Draining": True}, "drained"),
        (FREE | {"Draining": True}, "drained"),
        (TAKEN, "unknown"),
        (TAKEN | {"RecentJobUserPrioPreemptions": 1}, "preempted"),
        (TAKEN | {"RecentJobRankPreemptions": 2, "RemoteOwner": "ann@x"}, "preempted"),
        (TAKEN | {"RecentJobRankPreemptions": 2, "EnteredCurrentState": 992}, "unknown"),
        (UNCOUNTED, "preempted"),
        (UNCOUNTED | {"RemoteOwner": "ann@x"}, "unknown"),
        (FREE | {"State": "Preempting", "PreemptingUser": "bob@x"}, "preempted"),
        (FREE | {"State": "Preempting"}, "unknown"),
    ],
)
def test_a_slot_tells_afterwards_who_has_it_now(slot: dict[str, Any], reason: str) -> None:
    assert cause(JOB, slot) == reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [(6, "failed_start"), (1003, "failed_start"), (1006, "failed_start"), (1026, "failed_start"),
     (1036, "failed_start"), (1014, "drained"), (1018, "preempted"), (1019, "preempted"),
     (1023, "removed"), (1004, "unknown"), (1008, "unknown"), (1022, "unknown"),
     (1005, "owner"), (1011, "owner")],
)  # fmt: skip
def test_a_code_that_says_why_counts_and_one_of_a_request_leaves_the_slot_out(
    code: int, reason: str
) -> None:
    owned = FREE | {"OwnerActive": True, "State": "Owner"}
    assert cause(JOB | {"VacateReasonCode": code}, owned) == reason


def test_a_start_that_failed_is_one_though_the_job_is_held_for_it() -> None:
    assert cause(JOB | {"VacateReasonCode": 6}, FREE, "held") == "failed_start"
    assert cause(JOB | {"VacateReasonCode": 0}, FREE, "held") == "held"
    assert cause(JOB, FREE | {"OwnerActive": True, "State": "Owner"}, "held") == "held"


def test_where_the_jobs_last_run_is_another_one_the_machine_alone_tells() -> None:
    code = JOB | {"LastVacateTime": 950, "VacateReasonCode": 1014}
    assert cause(code, FREE) == "owner", "its machine is its owner's"
    [(*_, reason)] = reported(Answering(code), Answering(FREE), machine="another")
    assert reason == "unknown"


def test_an_ad_from_before_the_eviction_tells_nothing() -> None:
    old = FREE | {"MyCurrentTime": 989, "Draining": True}
    assert cause(JOB, old) == "owner", "by the machine as it is known"


def test_an_ad_that_is_on_its_way_is_waited_for_and_not_for_ever() -> None:
    lost_s = NOW_S - 1.0
    job = Answering(JOB | {"LastVacateTime": lost_s})
    slot = Answering(TAKEN | {"RemoteOwner": "ann@x", "MyCurrentTime": lost_s})
    taken = {"EnteredCurrentState": int(lost_s), "MyCurrentTime": int(NOW_S)}
    slot.later = [ClassAd(dict(UNCOUNTED | taken))]
    [(*_, reason)] = reported(job, slot, at_s=lost_s)
    assert (reason, slot.pauses) == ("preempted", 1)
    never = Answering(TAKEN | {"MyCurrentTime": lost_s})
    reported(job, never, at_s=lost_s)
    assert (never.pauses, len(never.asked)) == (3, 4)
    late = Answering(TAKEN | {"MyCurrentTime": LOST_S - 1.0})
    reported(Answering(JOB), late)
    assert late.pauses == 0, "an eviction of ten seconds ago: no ad will come"


def test_nobody_is_asked_where_nothing_was_lost_or_the_reason_is_told() -> None:
    job, slot = Answering(JOB), Answering(FREE)
    for reason, at_s in (("removed", LOST_S), ("failed_start", LOST_S), ("unknown", 900.0)):
        [(*_, found)] = reported(job, slot, reason, at_s)
        assert found == reason
    assert job.asked == slot.asked == []


def test_a_pool_that_does_not_answer_leaves_what_the_machine_shows() -> None:
    silent = Answering(fails=True)
    [(*_, reason)] = reported(silent, silent)
    assert reason == "owner"
    [(*_, reason)] = reported(Answering(JOB), silent, machine="another")
    assert reason == "unknown"


def test_a_run_that_never_began_is_told_from_its_attempt_to_its_failure() -> None:
    tried = JOB | {"JobCurrentStartDate": 985, "LastVacateTime": 700, "RequestCpus": 2}
    assert reported(Answering(tried), Answering(FREE), machine="") == [
        (985.0, events.STARTED, "ap#1.0", ("m1", 2, "slot1")),
        (LOST_S, events.EVICTED, "ap#1.0", "failed_start"),
    ]
    at_once = tried | {"JobCurrentStartDate": 990}
    [start, _] = reported(Answering(at_once), Answering(FREE), at_s=990.4, machine="")
    assert start[0] == 990.4, "its whole seconds are cut off"


def test_a_failed_attempt_is_told_though_the_queue_shows_the_next_one() -> None:
    again = JOB | {"JobCurrentStartDate": 995, "JobLastStartDate": 985, "LastVacateTime": 700}
    for ad in (again, again | {"JobCurrentStartExecutingDate": 996}):
        assert [event[:2] for event in reported(Answering(ad), Answering(FREE), machine="")] == [
            (985.0, events.STARTED), (LOST_S, events.EVICTED),
        ]  # fmt: skip
    ran = again | {"JobCurrentStartExecutingDate": 986}
    assert reported(Answering(ran), Answering(FREE), machine="") == []


def test_a_run_that_the_queue_alone_showed_failed_to_start_unless_its_program_left_a_mark() -> None:
    tried = JOB | {"JobCurrentStartDate": 985, "LastVacateTime": 700, "VacateReasonCode": 0}
    again = tried | {"JobCurrentStartDate": 990}  # the next attempt, in the second of the failure
    silent = Answering(fails=True)
    for ad, start_s, reason in (
        (tried, 985.0, "failed_start"),
        (again, 985.0, "failed_start"),
        (tried, None, "unknown"),  # the log has its start: the program began
        (tried | {"JobCurrentStartExecutingDate": 986}, 985.0, "unknown"),
        (tried | {"LastVacateTime": 990}, 985.0, "unknown"),
    ):
        lost = reported(Answering(ad), Answering(FREE), machine="m2", queued_start_s=start_s)
        assert [event[3] for event in lost] == [reason], ad
    [(*_, reason)] = reported(silent, silent, machine="m2", queued_start_s=985.0)
    assert reason == "unknown"


@pytest.mark.parametrize(
    "ad",
    [JOB, JOB | {"JobCurrentStartDate": 995}, {**JOB, "LastRemoteHost": ""}],
    ids=["it ran", "that is the next attempt", "nowhere"],
)
def test_an_end_without_a_run_that_the_queue_knows_is_left_out(ad: dict[str, Any]) -> None:
    assert reported(Answering(ad), Answering(FREE), machine="") == []
    assert reported(Answering(), Answering(FREE), machine="") == []
