"""Answers of the gate: by mode, freshness of input, and budget."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.acting.gate import (
    ACT,
    BUDGET,
    NO_LEVER,
    STALE,
    WOULD,
    Budget,
    Gate,
    refused,
)
from outrider.model.decisions import ACTIONS, DEFER, PREEMPT, START
from tests.suite.examples import examples


@settings(max_examples=examples(200), derandomize=True)
@given(
    gaps=st.lists(st.sampled_from([0.0, 0.5, 7.0, 20.0, 59.5, 60.0]), min_size=1, max_size=60),
    most=st.sampled_from([0.0, 0.5, 1.0, 2.5, 5.0]),
)
def test_no_minute_sees_more_starts_than_its_budget(gaps: list[float], most: float) -> None:
    gate = Gate("active", Budget(most, 30.0))
    times = list(accumulate(gaps))
    acted = [t for t in times if gate.answer(START, t, 0.0) == ACT]
    for last in acted:
        assert sum(1 for t in acted if last - 60.0 < t <= last) <= most
    assert len(acted) + gate.verdicts[BUDGET] == len(times)


def test_a_budget_that_is_not_used_up_refuses_nothing() -> None:
    gate = Gate("canary", Budget(2.0, 30.0))
    assert [gate.answer(START, t, 0.0) for t in (0.0, 1.0, 2.0, 60.0, 60.5, 61.0)] == [
        ACT, ACT, refused(BUDGET), ACT, refused(BUDGET), ACT,
    ]  # fmt: skip


def test_stale_input_carries_nothing_and_uses_no_budget() -> None:
    gate = Gate("active", Budget(1.0, 30.0))
    answers = [gate.answer(START, 0.0, age) for age in (30.1, 31.0, 30.0)]
    assert answers == [refused(STALE), refused(STALE), ACT]


@pytest.mark.parametrize("mode", ["observe", "shadow"])
def test_a_mode_that_never_acts_still_says_and_counts_what_it_would_have_done(mode: str) -> None:
    gate = Gate(mode, Budget(1.0, 30.0))
    assert [gate.answer(START, 0.0, age) for age in (0.0, 0.0, 99.0)] == [
        WOULD, "refused: budget", "refused: stale_input",
    ]  # fmt: skip
    assert gate.verdicts == {ACT: 1, BUDGET: 1, STALE: 1}


def test_what_starts_nothing_takes_nothing_from_the_budget_of_starts() -> None:
    gate = Gate("active", Budget(1.0, 30.0))
    asked = [(PREEMPT, 0.0), (PREEMPT, 0.0), (START, 0.0), (PREEMPT, 0.0), (PREEMPT, 99.0)]
    assert [gate.answer(action, 0.0, age) for action, age in asked] == [
        ACT, ACT, ACT, ACT, refused(STALE),
    ]  # fmt: skip


def test_what_no_lever_can_do_is_refused_and_takes_nothing_from_the_budget() -> None:
    gate = Gate("active", Budget(1.0, 30.0))
    asked = [gate.answer(START, 0.0, 0.0, has_lever=has) for has in (False, False, True)]
    assert asked == [refused(NO_LEVER), refused(NO_LEVER), ACT]
    assert gate.answer(START, 0.0, 99.0, has_lever=False) == refused(STALE)


@given(
    mode=st.sampled_from(["observe", "shadow"]),
    asked=st.lists(st.tuples(st.sampled_from(ACTIONS), st.floats(0, 1e6), st.floats(0, 1e6))),
)
def test_no_decision_may_ever_be_carried_out_in_shadow(
    mode: str, asked: list[tuple[str, float, float]]
) -> None:
    gate = Gate(mode, Budget(1e9, 1e9))
    for action, now_s, age_s in asked:
        assert gate.answer(action, now_s, age_s, has_lever=action != DEFER) == WOULD
