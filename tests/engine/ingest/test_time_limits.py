"""Events with an implausible time: rejected before they arrive, and not among the inputs."""

from typing import Any

from outrider.api import Batch
from outrider.engine.ingest.set_aside import IMPLAUSIBLE_TIME, TimeLimits
from outrider.model.events import TICK, NamedEvent
from outrider.service.core.core import Core
from outrider.service.journal.restart import replay_inputs
from tests.fixtures.cores import T, core_of, packed, run_of

LIMITS = TimeLimits(T - 1_000, T + 1_000)


def inputs_of(core: Core, events: list[NamedEvent], limits: TimeLimits | None) -> Any:
    batch = Batch(events=events, cursor=1)
    feed = core.take("log", batch, T + 60, limits)
    while core.step(feed, 100):
        pass
    return core.entry("log", batch)


def test_they_change_nothing_and_are_counted() -> None:
    spoilt, sound = core_of("log"), core_of("log")
    entry = inputs_of(spoilt, [*run_of("1", T), *run_of("2", T + 2_000), *run_of("3", 0)], LIMITS)
    inputs_of(sound, run_of("1", T), LIMITS)
    assert packed(spoilt.engine.save()) == packed(sound.engine.save())
    assert spoilt.merger.waiting_n() == 0
    assert spoilt.merger.set_aside[IMPLAUSIBLE_TIME] == 6
    assert len([event for _, event in entry.inputs if event[1] != TICK]) == 3
    assert [row.reason for row in entry.set_aside] == [IMPLAUSIBLE_TIME] * 6


def test_a_feeder_that_gives_no_limits_may_tell_of_any_time() -> None:
    core = core_of("log")
    inputs_of(core, run_of("1", T - 1e9), None)
    assert core.accounting.completed == 1
    assert core.merger.set_aside[IMPLAUSIBLE_TIME] == 0


def test_what_waits_is_looked_at_again_when_it_is_known_to_be_wrong() -> None:
    """An older Outrider kept a record of 2099 waiting, in its snapshots too."""
    old = core_of("log")
    inputs_of(old, [*run_of("1", T), *run_of("2", T + 4e9), *run_of("3", T + 100)], None)
    new = core_of("log")
    new.restore(old.save())
    assert replay_inputs(new, [], LIMITS) == 0
    assert new.merger.waiting_n() == 3
    assert [e.event[2] for e in new.merger.newly_set_aside] == ["2"] * 3
