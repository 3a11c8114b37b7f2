"""Classes of machines come in by name, before or after the machines themselves."""

from typing import Any

from outrider.engine.ingest.normaliser import Normaliser
from outrider.journal.records import decode_extra, encode_extra
from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources


def a_tracker() -> Normaliser:
    """One that knows nothing of machines."""
    return Normaliser(lambda name: MachineSpec(inferred=True))


def told(normaliser: Normaliser, kind: int, subject: str, extra: Any) -> list[tuple[int, int, Any]]:
    """The steps of an event, without their time."""
    return [step[1:] for step in normaliser.translate((1.0, kind, subject, extra)) or []]


def test_a_machine_that_joins_later_gets_into_the_classes_that_name_it() -> None:
    normaliser = a_tracker()
    told(normaliser, ev.JOINED, "a", MachineSpec())
    assert told(normaliser, ev.ELIGIBLE, "fast", ("a", "b")) == [
        (ev.ELIGIBLE, 0, ("fast", (0,), True))
    ]
    kinds = [step[0] for step in told(normaliser, ev.JOINED, "c", MachineSpec())]
    assert kinds == [ev.JOINED]
    steps = told(normaliser, ev.JOINED, "b", MachineSpec())
    assert steps[1:] == [(ev.ELIGIBLE, 0, ("fast", (2,), False))]


def test_a_machine_that_is_first_seen_in_use_gets_into_its_classes_once() -> None:
    normaliser = a_tracker()
    told(normaliser, ev.ELIGIBLE, "fast", ("a",))
    for job in ("1", "2"):
        told(normaliser, ev.SUBMITTED, job, JobSpec())
    first = told(normaliser, ev.STARTED, "1", ("a", 1))
    assert (ev.ELIGIBLE, 0, ("fast", (0,), False)) in first
    told(normaliser, ev.LEFT, "a", None)
    again = told(normaliser, ev.STARTED, "2", ("a", 1))
    assert ev.JOINED in [step[0] for step in again]
    assert ev.ELIGIBLE not in [step[0] for step in again], "it is in them"


def test_a_class_that_is_told_again_as_it_was_changes_nothing() -> None:
    normaliser = a_tracker()
    assert told(normaliser, ev.ELIGIBLE, "fast", ("a", "b")) != []
    assert normaliser.translate((2.0, ev.ELIGIBLE, "fast", ("b", "a"))) is None
    assert told(normaliser, ev.ELIGIBLE, "fast", ()) == [(ev.ELIGIBLE, 0, ("fast", (), True))]


def test_classes_outlast_a_restart() -> None:
    normaliser = a_tracker()
    told(normaliser, ev.ELIGIBLE, "fast", ("a",))
    fresh = a_tracker()
    fresh.restore(normaliser.save())
    assert told(fresh, ev.JOINED, "a", MachineSpec())[1:] == [
        (ev.ELIGIBLE, 0, ("fast", (0,), False))
    ]


def test_the_journal_gives_back_what_jobs_ask_for() -> None:
    asked = Resources(memory_mib=512, gpus=1, named=(("licence", 1.0),))
    spec = JobSpec(resources=asked, eligible="fast")
    assert decode_extra(ev.SUBMITTED, encode_extra(ev.SUBMITTED, spec)) == spec
    assert decode_extra(ev.ELIGIBLE, encode_extra(ev.ELIGIBLE, ("a", "b"))) == ("a", "b")


def test_a_change_of_what_a_job_asks_for_is_understood_from_the_journal_too() -> None:
    normaliser, asked = a_tracker(), Resources(memory_mib=512)
    told(normaliser, ev.SUBMITTED, "1", JobSpec())
    changed = decode_extra(ev.CHANGED, encode_extra(ev.CHANGED, {"resources": asked}))
    assert told(normaliser, ev.CHANGED, "1", changed) == [(ev.CHANGED, 0, JobSpec(resources=asked))]
