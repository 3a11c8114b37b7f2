"""Watched time: how long a policy has decided here."""

import json
from typing import Any

import pytest

from outrider.service.commands.evidence import WatchedTime
from tests.fixtures.clocks import SetClock

BANDIT: dict[str, Any] = {"bandit": {"epsilon": 0.1}}


def watched_for(clock: SetClock, watched: WatchedTime, *looks: tuple[str, float]) -> None:
    """Ten seconds at a time in these modes."""
    for mode, seconds in looks:
        watched.look(mode, BANDIT, counts=False)
        for _ in range(int(seconds // 10)):
            clock.now_s += 10.0
            watched.look(mode, BANDIT, counts=True)


def test_higher_modes_count_for_the_lower_ones_and_not_the_other_way() -> None:
    clock = SetClock(1_000.0)
    watched = WatchedTime(clock=clock)
    watched_for(clock, watched, ("shadow", 600.0), ("canary", 300.0), ("active", 60.0))
    assert watched.at_least("shadow") == 960.0
    assert watched.at_least("canary") == 360.0
    assert watched.at_least("active") == 60.0


def test_what_was_not_watched_does_not_count() -> None:
    clock = SetClock(1_000.0)
    watched = WatchedTime(clock=clock)
    watched_for(clock, watched, ("shadow", 100.0))
    clock.now_s += 50.0
    watched.look("shadow", BANDIT, counts=False)  # a source was down
    clock.now_s += 7200.0
    watched.look("shadow", BANDIT, counts=True)  # the host slept
    assert watched.at_least("shadow") == 160.0


def test_another_policy_or_other_settings_begin_at_nothing() -> None:
    clock = SetClock(1_000.0)
    watched = WatchedTime(clock=clock)
    watched_for(clock, watched, ("shadow", 100.0))
    watched.look("shadow", {"bandit": {"epsilon": 0.2}}, counts=True)
    assert watched.at_least("shadow") == 0.0


def test_a_broken_guard_ends_what_spoke_for_it() -> None:
    clock = SetClock(1_000.0)
    watched = WatchedTime(clock=clock)
    watched_for(clock, watched, ("active", 100.0))
    watched.reset()
    watched_for(clock, watched, ("shadow", 20.0))
    assert watched.at_least("shadow") == 20.0


def test_it_goes_on_after_a_restart() -> None:
    clock = SetClock(1_000.0)
    before = WatchedTime(clock=clock)
    watched_for(clock, before, ("shadow", 100.0))
    after = WatchedTime(json.loads(json.dumps(before.plain())), clock)
    watched_for(clock, after, ("shadow", 30.0))
    assert after.at_least("shadow") == 130.0


@pytest.mark.parametrize(
    "kept", [None, 7, [], {"s": 1}, {"s": {"all": 5, "shadow": "x", "active": -1, "canary": None}}]
)
def test_what_cannot_be_used_is_nothing(kept: Any) -> None:
    assert WatchedTime(kept).at_least("observe") == 0.0
