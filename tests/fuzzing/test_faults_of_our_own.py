"""Internal errors half way through any event: the rest of the site continues consistently.

The faults are put into what handlers call, so that an event is really cut in two.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch
from outrider.journal import Journal
from outrider.model.events import COMPLETED, EVICTED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.core.core import Core
from outrider.service.journal.restart import replay_inputs
from tests.fixtures.cores import T, core_of, run_of, tell
from tests.fuzzing.disorder import Disorder
from tests.fuzzing.invariants import contradictions

PLACES = [
    ("accounting", "run_started"), ("accounting", "run_wasted"), ("accounting", "run_closed"),
    ("accounting", "run_paused"), ("accounting", "run_resumed"), ("accounting", "job_changed"),
    ("accounting", "job_removed"), ("accounting", "job_submitted"),
    ("site", "take"), ("site", "give_back"), ("site", "open_machine"), ("site", "shut"),
    ("site", "join"), ("site", "leave"),
]  # fmt: skip
OF_HALF_EVENTS = ("starts, ", "submitted, ")
"""Names of totals that may count one half of an event that failed; current figures may not."""


class FaultError(Exception):
    """Error injected by the test."""


def fails_at_times(of: Any, name: str, before: bool) -> None:
    """Let a method fail in one call of eight, before it does anything or after."""
    do: Callable[..., Any] = getattr(of, name)
    rng = random.Random(name)

    def failing(*args: Any) -> Any:
        is_due = rng.random() < 1 / 8
        if is_due and before:
            raise FaultError(name)
        result = do(*args)
        if is_due:
            raise FaultError(name)
        return result

    setattr(of, name, failing)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("part", "name"), PLACES)
def test_wherever_an_event_fails_all_that_goes_on_is_right(
    part: str, name: str, before: bool
) -> None:
    core = core_of("log")
    fails_at_times(getattr(core, part), name, before)
    disorder = Disorder(random.Random(f"{name} {before}"))
    for n in range(60):
        events = disorder.batch(40)
        feed = core.take("log", Batch(events=events, cursor=n), disorder.now_s)
        while core.step(feed, 7):
            pass
        entry = core.entry("log", Batch(events=[], cursor=n))
        assert entry is not None
        wrong = [text for text in contradictions(core) if "faults: " not in text]
        assert not [text for text in wrong if not any(part in text for part in OF_HALF_EVENTS)]
    assert core.merger.set_aside["fault"] > 0
    assert core.accounting.submitted > 50


def core_that_fails_on(job: str) -> Core:
    """A core with a fault: it cannot complete one job."""
    core = core_of("log")
    complete: Any = core.accounting.run_completed

    def failing(done: Any, *rest: Any) -> None:
        if core.merger.normaliser.job_names[done.number] == job:
            raise FaultError("of our own")
        complete(done, *rest)

    core.accounting.run_completed = failing  # type: ignore[assignment, method-assign]
    return core


def test_an_event_that_fails_is_recorded_and_the_next_ones_go_on(tmp_path: Path) -> None:
    core = core_that_fails_on("2")
    events = [event for n in (1, 2, 3) for event in run_of(str(n), T + 10 * n)]
    tell(core, "log", events, T + 60)
    assert core.accounting.completed == 2
    assert not core.site.jobs
    assert "1 events rejected" in core.notes()[0]
    entry = core.entry("log", Batch(events=[], cursor=1))
    assert entry is not None
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(entry)
        ((_, kept),) = journal.latest_set_aside(10)
    assert (kept.kind, kept.subject, kept.reason) == ("completed", "2", "fault")
    assert kept.detail == "FaultError: of our own"


def test_after_a_restart_it_is_set_aside_again_and_not_recorded_twice(tmp_path: Path) -> None:
    core = core_that_fails_on("2")
    events = [event for n in (1, 2, 3) for event in run_of(str(n), T + 10 * n)]
    tell(core, "log", events, T + 60)
    entry = core.entry("log", Batch(events=[], cursor=1))
    assert entry is not None
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(entry)
        again = core_that_fails_on("2")
        replay_inputs(again, journal.inputs_after(0))
    assert again.merger.set_aside == core.merger.set_aside
    assert again.entry("log", Batch(events=[], cursor=1)) is None
    assert again.accounting.completed == 2


def test_what_is_told_later_of_a_job_that_was_taken_out_comes_after_its_end() -> None:
    core = core_of("log")
    book: Any = core.accounting.run_wasted

    def failing(*args: Any) -> None:
        core.accounting.run_wasted = book  # type: ignore[method-assign]
        raise FaultError("once")

    core.accounting.run_wasted = failing  # type: ignore[assignment, method-assign]
    told: list[NamedEvent] = [
        (T, SUBMITTED, "1", JobSpec()), (T + 1, STARTED, "1", ("m1", 1)),
        (T + 2, EVICTED, "1", "owner"),
    ]  # fmt: skip
    tell(core, "log", told, T + 3)
    assert core.merger.set_aside["fault"] == 1
    assert not core.site.jobs
    tell(core, "log", [(T + 5, COMPLETED, "1", None), *run_of("2", T + 6)], T + 10)
    assert core.merger.set_aside["after_end"] == 1
    assert core.accounting.completed == 1
    assert core.site.busy == [0]


def test_a_clock_that_cannot_move_is_told_and_does_not_keep_the_daemon_busy_for_ever() -> None:
    core = core_of("log")
    tell(core, "log", run_of("1", T), T + 60)

    def failing(*args: Any) -> None:
        raise FaultError("whenever it is tried")

    core.merger.reach = failing  # type: ignore[assignment, method-assign]
    feed = core.take("log", Batch(events=[], cursor=1), T + 3_600)
    steps = [core.step(feed, 100) for _ in range(5)]
    assert steps[-1] is False, "nothing is left to feed"
    assert core.merger.set_aside["fault"] == 1
