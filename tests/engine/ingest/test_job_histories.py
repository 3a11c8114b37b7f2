"""Recognition of job events that were reported before, or that happen once more."""

from outrider.engine.ingest.job_registry import JobHistory
from outrider.model import events as ev
from outrider.model.jobs import JobSpec

HELD, RELEASED = (ev.HELD, 1_000, None), (ev.RELEASED, 1_000, None)
STARTED = (ev.STARTED, 2_000, "m1")


def test_what_may_happen_again_in_the_same_millisecond_does() -> None:
    history = JobHistory(1, JobSpec())
    assert not history.is_duplicate(HELD, possible=True), "nothing was told yet"
    history.add(HELD)
    history.add(RELEASED)
    assert not history.is_duplicate(HELD, possible=True)
    assert history.is_duplicate(HELD, possible=False), "it cannot happen now: it is told again"


def test_what_is_told_again_is_so_from_where_it_began_until_all_of_it_was() -> None:
    history = JobHistory(1, JobSpec())
    for key in (HELD, RELEASED, STARTED):
        history.add(key)
    assert history.is_duplicate(HELD, possible=True), "later things happened"
    assert history.is_duplicate(RELEASED, possible=True)
    assert history.is_duplicate(STARTED, possible=True), "the third of three that are told again"
    assert not history.is_duplicate(STARTED, possible=True), "all were: it happens anew"
    assert not history.is_duplicate((ev.STARTED, 3_000, "m1"), possible=True)


def test_an_event_is_past_what_is_known_if_all_of_it_had_happened_by_then() -> None:
    history = JobHistory(1, JobSpec())
    history.add(HELD)
    history.add(STARTED)
    assert not history.is_past((ev.RELEASED, 1_500, None))
    assert history.is_past((ev.COMPLETED, 2_000, None))
    assert history.is_past((ev.COMPLETED, 2_001, None))
    assert not history.is_past(STARTED), "it is known itself"
