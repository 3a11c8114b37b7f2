"""Corners of what policies learn and show: what is summed, forgotten, refused or left alone."""

from typing import Any

import numpy as np
import pytest

from outrider.model import events as ev
from outrider.model.machines import MachineSpec, Resources
from outrider.testing.fixtures import HandSite
from outrider_policies.automata import Automata
from outrider_policies.automata.nodes import AutomataSettings
from outrider_policies.automata.policy import Users
from outrider_policies.bandits.arms import MeanArms
from outrider_policies.bandits.bandit import Exploration, ExplorationRate
from outrider_policies.bandits.ucb import FadingArms
from outrider_policies.estimators.learned import Kind, RunTimeDistributions
from outrider_policies.planning.baselines import Replan
from outrider_policies.planning.machine_plan import MachinePlan
from outrider_policies.planning.queued_jobs import QueuedJobs, RunLengths
from outrider_policies.sarsa import Sarsa
from outrider_policies.survival import Survival
from outrider_policies.wsept import Wsept


def test_what_the_automaton_learned_of_machines_is_shown_as_sums_of_their_groups() -> None:
    hand = HandSite(Automata, level="computer")
    hand.machines(1, 1, 1, cluster="lab")
    hand.machines(1, cluster="office")
    hand.policy.scores(1, hand.site)
    hand.policy._nodes.automaton.probabilities[:] = 0.1, 0.2, 0.3, 0.4
    learned = hand.policy.learned(hand.site)
    shown = {row["label"]: row["values"] for row in learned["rows"]}
    assert shown == {"lab": [pytest.approx(0.6)], "office": [pytest.approx(0.4)]}
    assert (learned["unit"], learned["columns"]) == ("probability", ["probability"])


def test_where_polls_find_nobody_one_of_those_with_jobs_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outrider_policies.automata.policy._MAX_POLLS", 3)
    hand = HandSite(Automata)
    users = Users(AutomataSettings(floor_ratio=0.0))
    users.note_users(["ann", "bob", "cleo"], 0.0)
    users.automaton.probabilities[:] = 1.0, 0.0, 0.0
    assert users.next_with_jobs({"bob": 2, "cleo": 1}, hand.policy.rng) in ("bob", "cleo")
    assert (users.chance("dora"), users.chance("ann") > 0.5) == (0.0, True)


def test_faded_rewards_outlast_a_restart_under_other_numbers() -> None:
    arms = FadingArms(0.5)
    for arm, reward in ((0, 1.0), (0, 0.0), (2, 0.5)):
        arms.learn(arm, reward)
    # of arm 0: (1 x 0.5 + 0) / (0.5 + 1), and half as much evidence after one more reward
    assert arms.bounds([0, 1, 2], 0.0) == [pytest.approx(1 / 3), float("inf"), 0.5]
    assert arms.bounds([0, 2], 3.0) == [
        pytest.approx(1 / 3 + 3.0 / (1.5 * 0.5) ** 0.5), pytest.approx(0.5 + 3.0),
    ]  # fmt: skip
    again = FadingArms(0.5)
    again.restore(arms.save([0, 1, 2]), [7, 5, 0])
    assert again.bounds([7, 5, 0], 3.0) == arms.bounds([0, 1, 2], 3.0)
    assert (again.seen_n(), again.evidence_of_all()) == (3, 1.75)


def test_an_arm_that_nobody_tried_is_still_untried_after_a_restart() -> None:
    arms = MeanArms()
    for reward in (1.0, 0.0, 0.5):
        arms.learn(2, reward)
    assert arms.save([0, 2]) == [[0, 1.5], [0, 3]]
    again = MeanArms()
    again.restore(arms.save([0, 2]), [4, 5])
    assert (again.evidence(4), again.evidence(5), again.seen_n()) == ((0.0, 0), (1.5, 3), 3)
    assert again.values == {5: 0.5}


def test_a_state_is_explored_more_at_first_and_once_its_rewards_fall() -> None:
    terms = Exploration(0.1, 0.5, 2, divergence_ratio=0.5, divergence_n=2, divergence_epsilon=0.95)
    rate = ExplorationRate(terms)
    seen = []
    for reward in (0.8, 1.0, 0.2, 0.7, 0.2):  # the last two of each: 0.9, 0.6, 0.45 and 0.45
        seen.append(rate.epsilon(7))
        rate.record(7, reward)
    assert (seen, rate.epsilon(7)) == ([0.5, 0.5, 0.1, 0.1, 1.0], 1.0)
    assert rate.epsilon(8) == 0.5, "another state"
    again = ExplorationRate(terms)
    again.restore(rate.save())
    again.record(7, 1.0)  # 0.6 with the one before
    assert again.epsilon(7) == 0.1
    assert rate.varies
    assert not ExplorationRate(terms._replace(first_n=0, divergence_ratio=None)).varies


def test_as_many_jobs_are_received_as_can_start_and_no_more() -> None:
    hand = HandSite(Automata)
    hand.machines(1, 2)
    for job in range(6):
        hand.submit(job, user="ann")
    assert sorted(hand.tick()) == [0, 1, 2]
    assert hand.policy.save(hand.site)["received"] == [0, 1, 2]


def test_the_nodes_that_were_likely_are_told_with_a_choice_only_where_they_are_asked_for() -> None:
    hand = HandSite(Automata)
    hand.machines(1, cluster="lab")
    hand.machines(1, cluster="office")
    hand.submit(0)
    job = hand.site.jobs[0]
    told = []
    for asked in (False, True):
        hand.policy.wants_scores = asked
        told.append(hand.policy.choose(job, None, hand.site, False).scores)
    assert told == [None, {"lab": 0.5, "office": 0.5}]


def test_who_asks_for_no_time_is_not_like_those_who_ask_for_a_second() -> None:
    runs = RunTimeDistributions(100)
    for n in range(400):
        runs.learn(Kind("batch", f"user {n}", "all", None, 1), 10_000.0)
        runs.learn(Kind("batch", f"user {n}", "all", 1.0, 1), 1.0)
    likely = runs.predict(Kind("batch", "new", "all", 1.5, 1))
    assert likely[0] > 0.8
    assert runs.predict(Kind("batch", "new", "all", None, 1))[0] < 0.2


def test_what_was_learned_with_another_encoding_is_refused() -> None:
    site: Any = HandSite(Sarsa).site
    relative = HandSite(Sarsa).policy.save(site)
    literal = HandSite(Sarsa, **Sarsa.presets["literal"])
    with pytest.raises(ValueError, match="it was saved with the encoding 'relative'"):
        literal.policy.restore(relative, site)


def test_a_run_is_expected_to_end_as_long_after_its_start_as_such_jobs_take() -> None:
    hand = HandSite(Sarsa)
    hand.machines(1)
    hand.now = 5_000.0
    hand.submit(0, estimate_s=600.0)
    assert hand.tick() == [0]
    [[job, end_s, utility]] = hand.policy.save(hand.site)["site"]["statistics"]["runs"]
    assert (job, end_s, utility) == (0, 5_600.0, 1.0)


def test_prices_are_shown_for_every_group_that_has_machines() -> None:
    hand = HandSite(Survival)
    hand.machines(1, 1, cluster="cheap", active_w=40.0)
    hand.machines(1, cluster="dear", active_w=400.0)
    hand.submit(0)
    hand.tick()
    key = hand.policy.group_key(hand.site.jobs[0], hand.site)
    shown = hand.policy.scores(key, hand.site)
    assert list(shown) == ["cheap", "dear"]
    assert 0.0 < shown["cheap"] < shown["dear"]


def test_users_who_came_once_and_never_again_take_no_room() -> None:
    hand = HandSite(Wsept, contexts=64)
    hand.machines(1)
    hand.submit(0)
    hand.tick()
    for job in range(1, 80):
        hand.submit(job, user=f"user{job}")
    hand.tick(1.0)
    hand.complete(0)
    hand.tick(1.0)
    assert len(hand.policy._lengths) == 79
    hand.complete(int(hand.starts[-1][0]))
    hand.tick(1.0)
    assert len(hand.policy._lengths) <= 78, "it began anew with those who wait"


def planned(machine: MachineSpec, *jobs: tuple[int, dict[str, Any]]) -> HandSite:
    """One machine on which these jobs run, each on so many CPUs."""
    hand = HandSite(Replan)
    hand.tell(ev.JOINED, 0, machine)
    for job, (cpus, spec) in enumerate(jobs):
        hand.submit(job, cpus=cpus, **spec)
        hand.tell(ev.STARTED, job, (0, cpus))
    return hand


def test_what_is_suspended_or_overbooked_is_not_the_plans_to_move() -> None:
    lengths = RunLengths(3600.0, None)
    hand = planned(MachineSpec(cpus=4), (2, {}), (1, {}))
    hand.tell(ev.SUSPENDED, 1)
    plan = MachinePlan(0, hand.site, lengths)
    assert (plan.cpus_by_job(), plan.free) == ({0: 2}, 1)
    over = planned(MachineSpec(cpus=4), (3, {}), (3, {}))
    assert MachinePlan(0, over.site, lengths).cpus_by_job() == {}


def test_a_queued_job_may_be_placed_where_it_may_run_and_its_memory_is_left() -> None:
    hand = planned(MachineSpec(cpus=8, resources=Resources(memory_mib=1000)))
    hand.tell(ev.JOINED, 1, MachineSpec(cpus=8))
    hand.tell(ev.ELIGIBLE, 0, ("second", (1,), True))
    hand.submit(0)
    hand.submit(1, resources=Resources(memory_mib=600))
    hand.submit(2, eligible="second")
    seen: list[Any] = []

    def rearrange(queue: Any, view: Any) -> tuple[()]:
        seen.append(queue)
        return ()

    hand.policy.rearrange = rearrange
    hand.tick()
    queued = QueuedJobs(seen[0], hand.site, RunLengths(3600.0, None))
    assert queued.may_run_on(0, {"memory_mib": 700.0}).tolist() == [True, True, False]
    assert queued.may_run_on(0, {"memory_mib": 500.0}).tolist() == [True, False, False]
    assert queued.may_run_on(1, {}).tolist() == [True, True, True]
    plan = MachinePlan(0, hand.site, RunLengths(3600.0, None))
    run = plan.place(queued, 1, 1, 1.0, "best")
    assert (plan.left["memory_mib"], plan.free, plan.has_started) == (400.0, 7, True)
    assert plan.cpus_by_job() == {1: 1}
    plan.suspend([run], queued)
    assert (plan.left["memory_mib"], plan.free, plan.has_started) == (1_000.0, 8, False)
    other = queued.copied()
    other.is_open[0] = False
    assert np.flatnonzero(queued.is_open).tolist() == [0, 1, 2]
    queued.add([hand.site.jobs[0]], 0, [60.0])
    assert queued._is_interactive.tolist() == [False] * 4
    assert queued.home.tolist() == [-1, -1, -1, 0]
