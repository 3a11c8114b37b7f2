"""Learning of the fuzzy scheduler, acting and in shadow."""

from itertools import pairwise

import numpy as np
import pytest

from outrider.api import Policy
from outrider.api import events as ev
from outrider.replay.grid_run import GridRun
from outrider.simulation.generators.grids.workloads import vengerov_grid
from outrider.testing.fixtures import LINEAR, HandSite, made, played
from outrider_policies.planning.baselines import Aggressive
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.planning.fuzzy_td.transitions import Transitions, ValueFunction

STEPS = 4000
SEED = 10_001


def trained(
    policy: Policy, *, in_shadow_of: Policy | None = None, steps: float = STEPS
) -> dict[str, float]:
    """Return the output of each rule after some thousand steps at rate .2."""
    workload = vengerov_grid(0.2, SEED, steps="continuous", length_s=steps)
    policies = [policy] if in_shadow_of is None else [in_shadow_of, policy]
    run = GridRun(workload, policies, lambda *row: None, until_s=steps, utilities=LINEAR)
    run.run()
    return {name.split()[1]: value for name, value in policy.scores((), run.site).items()}


def test_acting_it_learns_that_utility_is_worth_more_and_idle_cpus_less() -> None:
    rules = trained(made(FuzzyTd, inputs=3, longest_s=10.0))
    for behind in ("SS", "LS"):
        assert rules[f"L{behind}"] > rules[f"S{behind}"] + 0.1, "unit utility of the runs"
    assert rules["LLS"] > rules["LLL"] + 0.1, "idle CPUs"


def test_in_shadow_it_learns_the_value_of_states_under_whoever_acts() -> None:
    rules = trained(made(FuzzyTd, inputs=3, longest_s=10.0), in_shadow_of=made(Aggressive))
    assert rules["LSS"] > rules["SSS"] + 0.1, "unit utility of the runs"


def test_without_learning_the_rules_stay_as_they_were() -> None:
    said = (0.5, -0.5, 0.25, 0.0, 1.0, 0.0, 2.0, -1.0)
    rules = trained(made(FuzzyTd, inputs=3, learn=False, first_outputs=said), steps=500)
    assert tuple(rules.values()) == said


def test_a_value_function_that_prefers_bad_states_comes_round_by_itself() -> None:
    bad = (1.0, 3.0, 1.0, 3.0, -3.0, -1.0, -3.0, -1.0)
    workload = vengerov_grid(0.2, SEED, steps="continuous", length_s=STEPS)

    def earned(learn: bool) -> list[float]:
        """Return values by quarter of the run, without what is in progress at its ends."""
        policy = made(FuzzyTd, inputs=3, longest_s=10.0, first_outputs=bad, learn=learn)
        stops = [STEPS * n / 4 for n in range(1, 5)]
        totals = [0.0]
        run = GridRun(workload, [policy], lambda *row: None, until_s=STEPS, utilities=LINEAR)
        for event in run.stream():
            while stops and event[0] >= stops[0]:
                stops.pop(0)
                totals.append(run.accounting.utility.total)
        totals.append(run.accounting.utility.total)
        return [after - before for before, after in pairwise(totals)]

    learning, frozen = earned(learn=True), earned(learn=False)
    assert learning[3] > 1.1 * frozen[3], "the last quarter, with learning and without"


def test_a_wrong_number_of_outputs_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="first_outputs has 3 values; 5 inputs have 32 rules"):
        made(FuzzyTd, first_outputs=(0.0, 1.0, 2.0))


def test_learning_at_free_decisions_makes_fewer_updates_than_at_every_round() -> None:
    counts = []
    for update in ("free_decisions", "every_round"):
        policy = made(FuzzyTd, inputs=3, update=update)
        played(policy, vengerov_grid(0.1, SEED, length_s=1000.0), until_s=1000.0)
        (value,) = policy._values.values()  # type: ignore[attr-defined]
        counts.append(value.td.updates_n)
    assert 0 < counts[0] < counts[1]


class TestTransitions:
    """Value function that records transitions from state to state, with their rewards."""

    def test_a_transition_carries_the_reward_of_what_ended_on_its_way(self) -> None:
        value, transitions = ValueFunction(3), Transitions()
        transitions.reach([1.0, 1.0, 1.0], value)
        transitions.ended(7, 0.5)
        transitions.ended(8, 0.25)
        transitions.reach([0.0, 0.0, 0.0], value)
        assert value.td.updates_n == 1
        assert value.rulebase.outputs[-1] == pytest.approx(0.5 * 0.75), "the state that was left"
        assert np.count_nonzero(value.rulebase.outputs) == 1

    def test_the_first_state_teaches_nothing(self) -> None:
        value, transitions = ValueFunction(3), Transitions()
        transitions.reach([1.0, 0.0, 0.0], value)
        assert value.td.updates_n == 0

    def test_runs_that_ended_were_planned_all_the_same(self) -> None:
        transitions = Transitions()
        transitions.leave({1: 4, 2: 8})
        transitions.ended(1, 0.0)
        assert transitions.went_as_planned({2: 8})
        assert not transitions.went_as_planned({2: 6})
        assert not transitions.went_as_planned({2: 8, 3: 1})


def test_a_machine_that_left_and_came_back_begins_anew() -> None:
    site = HandSite(FuzzyTd)
    site.machines(2, 2)
    site.submit(0, cpus=2, estimate_s=50.0)
    site.tick()
    spec = site.site.specs[0]

    def known() -> set[int]:
        return {place for _, place, _ in site.policy.save(site.site)["transitions"]}

    assert known() == {0, 1}
    site.tell(ev.OWNER_CAME, 0)
    site.tell(ev.OWNER_WENT, 0)
    assert known() == {0, 1}, "it is the same machine all the time"
    site.tell(ev.LEFT, 0)
    assert len(known()) == 1, "else a daemon that restarted meanwhile would learn otherwise"
    site.tell(ev.JOINED, 0, spec)
    assert len(known()) == 1
