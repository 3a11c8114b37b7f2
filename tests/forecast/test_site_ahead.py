"""Simulated events from the present on follow from decisions and from what comes."""

from collections.abc import Iterable

from outrider.forecast.candidate_starts import SiteAhead
from outrider.forecast.closures import OWNER, Closure
from outrider.forecast.recent_days import Arrival
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import RUNNING, Job, JobSpec

NEVER_STARTS = 99
WIDE = JobSpec(cpus=4)


def site_of(
    *here: Job,
    run_s: float = 100.0,
    closed: dict[int, float] | None = None,
    coming: Iterable[tuple[float, Arrival | Closure]] = (),
    evicting: tuple[str, ...] = (OWNER,),
) -> SiteAhead:
    return SiteAhead(
        0.0, 10_000.0, here, {job.number: run_s for job in here}, closed or {}, iter(coming),
        frozenset(evicting), {NEVER_STARTS}, lambda: True,
    )  # fmt: skip


def running(number: int, machine: int) -> Job:
    job = Job(number, JobSpec(), -40.0)
    job.state, job.machine, job.start_s = RUNNING, machine, -40.0
    return job


def test_a_job_on_fewer_cpus_runs_for_longer_and_a_preempted_one_keeps_its_work() -> None:
    site = site_of(Job(0, WIDE, 0.0), Job(1, WIDE, 0.0))
    events = site.events()
    assert next(events) == (0.0, ev.TICK, 0, None)
    site.shrink(0, 5, 2)
    site.start(1, 6)
    assert next(events) == (0.0, ev.STARTED, 0, (5, 2))
    assert next(events) == (0.0, ev.STARTED, 1, (6, 4))
    site.wake_at(50.0)
    assert next(events) == (50.0, ev.TICK, 0, None)
    site.shrink(0, 5, 4)  # a quarter of its work is done
    site.preempt(1)
    assert next(events) == (50.0, ev.RESIZED, 0, 4)
    assert next(events) == (50.0, ev.SUSPENDED, 1, ev.CPUS_GIVEN_BACK)
    site.wake_at(90.0)
    assert next(events) == (90.0, ev.TICK, 0, None)
    site.resume(1, 4)
    assert next(events) == (90.0, ev.RESUMED, 1, (6, 4))
    assert list(events) == [(125.0, ev.COMPLETED, 0, None), (140.0, ev.COMPLETED, 1, None)]


def test_a_run_that_is_suspended_already_can_be_preempted_and_loses_no_work() -> None:
    site = site_of(Job(0, WIDE, 0.0))
    events = site.events()
    next(events)
    site.start(0, 6)
    assert next(events) == (0.0, ev.STARTED, 0, (6, 4))
    for at_s in (50.0, 80.0):
        site.wake_at(at_s)
        assert next(events) == (at_s, ev.TICK, 0, None)
        site.preempt(0)
        assert next(events) == (at_s, ev.SUSPENDED, 0, ev.CPUS_GIVEN_BACK)
    site.wake_at(90.0)
    assert next(events) == (90.0, ev.TICK, 0, None)
    site.resume(0, 4)
    assert list(events) == [(90.0, ev.RESUMED, 0, (6, 4)), (140.0, ev.COMPLETED, 0, None)]


def test_a_run_that_was_preempted_before_can_be_preempted_again() -> None:
    job = running(0, 6)
    job.gave_back = True
    site = site_of(job)
    events = site.events()
    next(events)
    site.preempt(0)
    assert next(events) == (0.0, ev.SUSPENDED, 0, ev.CPUS_GIVEN_BACK)
    site.resume(0, 1)
    assert list(events) == [(0.0, ev.RESUMED, 0, (6, 1)), (60.0, ev.COMPLETED, 0, None)]


def test_who_runs_goes_on_and_is_evicted_when_the_owner_comes() -> None:
    closure = Closure(7, 30.0, 500.0, OWNER)
    longer = Closure(7, 400.0, 700.0, OWNER)
    site = site_of(
        running(0, 6), running(1, 7), coming=[(30.0, closure), (400.0, longer)]
    )  # fmt: skip
    happened: list[Event] = [event for event in site.events() if event[1] != ev.TICK]
    assert happened == [
        (30.0, ev.EVICTED, 1, OWNER),
        (30.0, ev.OWNER_CAME, 7, None),
        (60.0, ev.COMPLETED, 0, None),
        (700.0, ev.OWNER_WENT, 7, None),
        (700.0, ev.USABLE, 7, None),
    ]


def test_where_owners_evict_nobody_runs_go_on() -> None:
    closure = Closure(7, 30.0, 500.0, OWNER)
    happened = list(site_of(running(1, 7), coming=[(30.0, closure)], evicting=()).events())
    assert (60.0, ev.COMPLETED, 1, None) in happened
    assert all(event[1] != ev.EVICTED for event in happened)


def test_what_comes_is_submitted_with_what_was_asked_for_and_no_run_time() -> None:
    came = Arrival(20.0, WIDE, 300.0, -1)
    happened = list(site_of(running(3, 0), coming=[(20.0, came)]).events())
    assert (20.0, ev.SUBMITTED, 4, WIDE) in happened


def test_a_machine_that_is_closed_opens_and_it_ends_with_the_last_wanted_start() -> None:
    site = SiteAhead(
        0.0, 10_000.0, [Job(0, JobSpec(), 0.0)], {0: 5.0}, {2: 80.0}, iter(()), frozenset(), {0},
        lambda: True,
    )  # fmt: skip
    events = site.events()
    assert [next(events)[1] for _ in range(3)] == [ev.TICK, ev.OWNER_WENT, ev.USABLE]
    site.wake_at(80.0)
    assert next(events) == (80.0, ev.TICK, 0, None)
    site.start(0, 2)
    assert list(events) == [(80.0, ev.STARTED, 0, (2, 1))]
    assert site.starts_s == {0: 80.0}
