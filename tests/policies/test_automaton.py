"""Learning automata: probabilities stay probabilities, and converge to what theory says."""

import random
from collections import Counter
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_policies.automata.automaton import Automaton, Scheme, scheme
from tests.suite.examples import examples

EXACT = 1e-12
STEPS = st.floats(0.0, 1.0, allow_subnormal=False)
ANSWERS = st.tuples(
    st.sampled_from(["reward", "penalise", "add", "remove"]),
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sets(st.integers(0, 8)),
)


def three(a: float = 0.1, b: float = 0.1) -> Automaton:
    """Three actions of 1/2, 3/10 and 1/5."""
    automaton = Automaton(Scheme(a, b), "xyz")
    automaton.probabilities[:] = 0.5, 0.3, 0.2
    return automaton


def expect_probabilities(automaton: Automaton) -> None:
    p = automaton.probabilities
    assert len(p) == len(automaton.actions)
    assert (p >= 0.0).all()
    if len(p):
        assert abs(p.sum() - 1.0) <= EXACT


@settings(max_examples=examples(150))
@given(a=STEPS, b=STEPS, answers=st.lists(ANSWERS, max_size=60))
def test_probabilities_sum_to_one_whatever_happens(
    a: float, b: float, answers: list[tuple[str, int, int, set[int]]]
) -> None:
    automaton = Automaton(Scheme(a, b), range(3))
    for fresh, (what, which, times, some) in enumerate(answers, 100):
        n = len(automaton)
        if what == "add" or not n:
            automaton.add(fresh)
        elif what == "remove":
            automaton.remove(automaton.actions[which % n])
        else:
            position = which % n
            enabled = sorted({position} | {each % n for each in some})
            among = np.array(enabled, dtype=np.intp) if some else None
            if what == "reward":
                automaton.reward(position, among, times)
            else:
                automaton.penalise(position, among)
        expect_probabilities(automaton)


def test_the_sum_is_still_one_after_fifty_thousand_steps() -> None:
    automaton, rng = Automaton(scheme("L_R-P", 0.1, 0.0), range(5)), random.Random(1)
    worst = 0.0
    for _ in range(50_000):
        at = automaton.draw(rng)
        (automaton.reward if rng.random() < 0.4 else automaton.penalise)(at)
        worst = max(worst, abs(float(automaton.probabilities.sum()) - 1.0))
    assert worst <= EXACT


def test_a_reward_and_a_penalty_are_the_linear_schemes() -> None:
    automaton = three()
    automaton.reward(1)
    assert automaton.probabilities.tolist() == pytest.approx([0.45, 0.37, 0.18])
    automaton = three()
    automaton.penalise(1)
    assert automaton.probabilities.tolist() == pytest.approx([0.5, 0.27, 0.23])


def test_the_schemes_differ_in_what_a_penalty_weighs() -> None:
    assert scheme("L_R-P", 0.2, 0.01) == Scheme(0.2, 0.2)
    assert scheme("L_R-eP", 0.2, 0.01) == Scheme(0.2, 0.01)
    assert scheme("L_R-I", 0.2, 0.01) == Scheme(0.2, 0.0)


def test_equation_41_means_as_many_rewards_in_a_row() -> None:
    at_once, one_by_one = three(), three()
    at_once.reward(2, times=7)
    for _ in range(7):
        one_by_one.reward(2)
    assert at_once.probabilities.tolist() == pytest.approx(one_by_one.probabilities.tolist())


def test_equation_41_as_printed_gives_no_probabilities() -> None:
    """The reason for the correction, by the paper's own formula."""
    n, a = 20, 0.1
    p = [0.2, 0.8]
    assert (p[0] + n * a * (1.0 - p[0])) / 1.0 == pytest.approx(1.8)  # k = 0
    p = [0.25] * 4
    for k in range(1, 11):
        p = [(p[0] + a * (1.0 - p[0])) / (k + 1), *((1.0 - a) * q for q in p[1:])]
    assert sum(p) < 0.5


def test_among_some_actions_only_their_own_mass_moves() -> None:
    automaton = three()
    automaton.reward(0, np.array([0, 2]))
    assert automaton.probabilities.tolist() == pytest.approx([0.52, 0.3, 0.18])
    automaton = three()
    automaton.penalise(0, np.array([0, 2]))
    assert automaton.probabilities.tolist() == pytest.approx([0.45, 0.3, 0.25])


def test_with_one_action_enabled_nothing_is_learned() -> None:
    automaton = three()
    automaton.reward(1, np.array([1]))
    automaton.penalise(1, np.array([1]))
    assert automaton.probabilities.tolist() == [0.5, 0.3, 0.2]
    alone = Automaton(Scheme(0.5, 0.5), ["only"])
    alone.penalise(0)
    assert alone.probabilities.tolist() == [1.0]


def test_actions_come_and_go_in_proportion() -> None:
    automaton = three()
    automaton.add("w")
    assert automaton.probabilities.tolist() == pytest.approx([0.375, 0.225, 0.15, 0.25])
    automaton.remove("w")
    assert automaton.probabilities.tolist() == pytest.approx([0.5, 0.3, 0.2])
    automaton.remove("x")
    assert automaton.probabilities.tolist() == pytest.approx([0.6, 0.4])
    assert (automaton.position("y"), automaton.position("z")) == (0, 1)


def test_when_an_action_with_all_the_probability_goes_the_others_are_alike() -> None:
    automaton = three()
    automaton.probabilities[:] = 1.0, 0.0, 0.0
    automaton.remove("x")
    assert automaton.probabilities.tolist() == [0.5, 0.5]


def test_an_action_cannot_be_there_twice() -> None:
    with pytest.raises(ValueError, match="'x' is there already"):
        three().add("x")


def test_draws_have_the_chances_that_are_told() -> None:
    automaton, rng, among = three(), random.Random(3), np.array([0, 2])
    chances = automaton.chances(0.1, among)
    assert chances.tolist() == pytest.approx([0.9 * 5 / 7 + 0.05, 0.9 * 2 / 7 + 0.05])
    drawn = Counter(automaton.draw(rng, 0.1, among) for _ in range(20_000))
    assert set(drawn) == {0, 2}
    assert drawn[0] / 20_000 == pytest.approx(chances[0], abs=0.02)


def test_the_floor_draws_also_what_has_no_probability_left() -> None:
    automaton, rng = three(), random.Random(4)
    automaton.probabilities[:] = 1.0, 0.0, 0.0
    assert {automaton.draw(rng) for _ in range(500)} == {0}
    assert {automaton.draw(rng, 0.1) for _ in range(500)} == {0, 1, 2}


def test_what_was_saved_goes_on_identically() -> None:
    automaton, again = three(), Automaton(Scheme(0.1, 0.1))
    automaton.reward(2)
    again.restore(automaton.save())
    for one in (automaton, again):
        one.penalise(0)
        one.remove("y")
    assert again.probabilities.tolist() == automaton.probabilities.tolist()
    assert again.actions == automaton.actions


def mean_p_best(name: str, a: float, b: float, runs: int = 50, steps: int = 3000) -> float:
    """p(best) at the end, penalties .8 .6 .4 .2, averaged over the last half and the runs."""
    found = []
    for seed in range(runs):
        rng = random.Random(f"{name} {seed}")
        automaton = Automaton(scheme(name, a, b), range(4))  # type: ignore[arg-type]
        late = []
        for step in range(steps):
            at = automaton.draw(rng)
            is_bad = rng.random() < (0.8, 0.6, 0.4, 0.2)[at]
            (automaton.penalise if is_bad else automaton.reward)(at)
            if step >= steps // 2 and step % 10 == 0:
                late.append(float(automaton.probabilities[3]))
        found.append(fmean(late))
    return fmean(found)


def test_reward_penalty_ends_up_in_inverse_proportion_to_the_penalties() -> None:
    theory = (1 / 0.2) / (1 / 0.8 + 1 / 0.6 + 1 / 0.4 + 1 / 0.2)
    assert theory == pytest.approx(0.48)
    assert mean_p_best("L_R-P", 0.02, 0.0, runs=20) == pytest.approx(theory, abs=0.02)


def test_reward_inaction_finds_the_best_with_small_steps_and_locks_in_with_large_ones() -> None:
    assert mean_p_best("L_R-I", 0.02, 0.0, runs=10) > 0.97
    assert mean_p_best("L_R-I", 0.3, 0.0, runs=40, steps=300) < 0.9


def test_reward_epsilon_penalty_lies_between() -> None:
    assert 0.8 < mean_p_best("L_R-eP", 0.05, 0.0025, runs=10) < 0.98
