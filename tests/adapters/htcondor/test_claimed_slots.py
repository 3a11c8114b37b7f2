"""Tests that a start from a queue has its slot only if that slot runs the job."""

from collections.abc import Sequence
from typing import Any

from outrider.api import JobSpec, NamedEvent, events
from outrider_adapters.htcondor import PoolCalls
from outrider_adapters.htcondor.pool_calls import AdType, ClassAd, HTCondorException
from outrider_adapters.htcondor.slots import ClaimedSlots
from outrider_adapters.polling import Asking

START: NamedEvent = (10.0, events.STARTED, "ap#7.0", ("m1@host", 2, "slot1_2"))


class Slots:
    """Answers each question with these ads, or fails; remembers the constraints."""

    def __init__(self, *ads: dict[str, Any], fails: bool = False) -> None:
        self._ads = [ClassAd(dict(ad)) for ad in ads]
        self._fails = fails
        self.asked: list[str] = []

    def query(self, *words: Any) -> Sequence[Any]:
        self.asked.append(str(words[1]))
        if self._fails:
            raise HTCondorException("silent")
        return self._ads


def confirmed(slots: Slots, *reported: NamedEvent, known: bool = True) -> list[NamedEvent]:
    calls = PoolCalls(slots, AdType.Startd, HTCondorException, ())
    claims = ClaimedSlots(calls, Asking(HTCondorException), lambda machine: known)
    return claims.confirmed(list(reported), 20.0)


def test_the_slot_is_told_where_its_ad_names_the_job() -> None:
    slots = Slots({"Name": "slot1_2@m1@host", "GlobalJobId": "ap#7.0#1700000000"})
    assert confirmed(slots, START) == [START]
    assert slots.asked == ['member(Name, {"slot1_2@m1@host"})']


def test_it_is_left_out_where_the_slot_runs_another_job_or_none_or_says_nothing() -> None:
    without = [(*START[:3], ("m1@host", 2))]
    for runs in ("ap#7.01#1", "ap#71.0#1", "other#7.0#1", "ap#9.0#1", ""):
        assert confirmed(Slots({"Name": "slot1_2@m1@host", "GlobalJobId": runs}), START) == without
    assert confirmed(Slots({"Name": "slot1_2@m1@host"}), START) == without
    assert confirmed(Slots(), START) == without
    assert confirmed(Slots(fails=True), START) == without


def test_a_machine_that_is_not_in_the_pool_is_not_known() -> None:
    unknown = [(*START[:3], ("unknown", 2))]
    assert confirmed(Slots(), START, known=False) == unknown
    there = Slots({"Name": "slot1_2@m1@host"})
    assert confirmed(there, START, known=False) == [(*START[:3], ("m1@host", 2))], "it has joined"
    silent = Slots(fails=True)
    assert confirmed(silent, START, known=False) == [(*START[:3], ("m1@host", 2))]


def test_nobody_is_asked_where_no_start_names_a_slot() -> None:
    slots = Slots()
    others: list[NamedEvent] = [
        (1.0, events.SUBMITTED, "ap#7.0", JobSpec()),
        (2.0, events.STARTED, "ap#7.0", ("m1@host", 2)),
        (3.0, events.EVICTED, "ap#7.0", "owner"),
    ]
    assert confirmed(slots, *others) == others
    assert slots.asked == []
