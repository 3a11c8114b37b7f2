"""Learning automata that poll users and choose nodes, and the rules they are held against."""

from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from outrider.api import EVICTED_RUN, Outcome, Policy, build
from outrider.engine.scheduling.pending_queue import QueueColumns
from outrider.formats.workload import GridRules, Workload
from outrider.model import events as ev
from outrider.model.decisions import Decision
from outrider.model.machines import MachineSpec
from outrider.replay.grid_run import GridRun
from outrider.testing import PolicyConformance
from outrider.testing.fixtures import HandSite, Row, chance
from outrider_policies.automata import Automata
from outrider_policies.automata.nodes import AutomataSettings
from outrider_policies.rules.placements import (
    CapacityRandom,
    Fifo,
    LeastLoaded,
    RandomMatch,
    RoundRobin,
)


class TestAutomata(PolicyConformance):
    policy = Automata


class TestLajs(PolicyConformance):
    policy = Automata
    settings = Automata.presets["lajs"]


class TestTwoWayAsPrinted(PolicyConformance):
    policy = Automata
    settings = Automata.presets["literal"]


class TestAutomataThatLearnFromEndings(PolicyConformance):
    policy = Automata
    settings: ClassVar = {
        "response": "ending", "scheme": "L_R-eP", "poll": "backlog", "forget_user_s": 3600.0,
    }  # fmt: skip


class TestRoundRobin(PolicyConformance):
    policy = RoundRobin


class TestCapacityRandom(PolicyConformance):
    policy = CapacityRandom


class TestLeastLoaded(PolicyConformance):
    policy = LeastLoaded


def probabilities(site: HandSite) -> dict[str, float]:
    """Return the node automaton's probabilities, checked to be probabilities."""
    found: dict[str, float] = site.policy.scores(1, site.site)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    assert min(found.values()) >= 0.0
    return found


def users_in_order(site: HandSite, users: dict[int, str], jobs: int) -> list[str]:
    """Let one machine work the queue off; whose jobs ran, in order."""
    order = []
    for _ in range(jobs):
        (job,) = site.tick(1.0)
        order.append(users[job])
        site.complete(job)
    return order


def crowd(**settings: Any) -> tuple[HandSite, dict[int, str]]:
    """Ann has thirty jobs in the queue before Bob and Cleo have two each; one machine."""
    site = HandSite(Automata, **settings)
    users = dict(enumerate(["ann"] * 30 + ["bob", "cleo"] * 2))
    for job, user in users.items():
        site.submit(job, user=user)
    site.machines(1)
    return site, users


def queue_of(site: HandSite, *waiting: int) -> QueueColumns:
    """Return a queue of these jobs."""
    table = QueueColumns()
    for stamp, job in enumerate(waiting):
        table.add(site.site.jobs[job], stamp, 0.0, 0.0)
    return table


# -- users --------------------------------------------------------------------------------------


def test_polls_that_take_one_job_let_small_users_in_between() -> None:
    order = users_in_order(*crowd(poll="one"), jobs=34)
    assert order.count("ann") == 30
    assert max(order.index("bob"), order.index("cleo")) < 15


def test_a_poll_of_the_backlog_takes_all_that_its_user_has() -> None:
    order = users_in_order(*crowd(poll="backlog"), jobs=34)
    start = order.index("ann")
    assert set(order[start : start + 30]) == {"ann"}


def test_rewards_by_jobs_make_a_user_of_many_jobs_come_first() -> None:
    one = users_in_order(*crowd(user_reward="poll"), jobs=20)
    many = users_in_order(*crowd(user_reward="jobs"), jobs=20)
    assert many.count("ann") > one.count("ann")


def test_polled_jobs_keep_their_place_however_often_it_is_asked_for() -> None:
    site, _ = crowd()
    queue = queue_of(site, *range(34))
    first = site.policy.rank(queue, site.site)
    assert np.array_equal(site.policy.rank(queue, site.site), first)
    assert np.sum(first == first.min()) == 1, "one machine is free: one job was taken"


def test_where_every_job_can_start_nobody_is_polled() -> None:
    site, _ = crowd()
    before = site.policy.rng.getstate()
    assert site.policy.rank(queue_of(site, 7), site.site).tolist() == [0.0]
    assert site.policy.rng.getstate() == before
    site.policy.rank(queue_of(site, 8, 31), site.site)
    assert site.policy.rng.getstate() != before


def test_users_come_and_go() -> None:
    policy = Automata(build(AutomataSettings, {"forget_user_s": 50.0}, "x"), chance("a"))
    assert policy.poll({}, 0.0) is None
    for now in range(40):
        policy.poll({"ann": 1}, float(now))
    policy.poll({"bob": 1}, 60.0)
    known = policy.save(HandSite(Fifo).site)["users"]["automaton"]
    assert known["actions"] == ["ann", "bob"]
    assert sum(known["probabilities"]) == pytest.approx(1.0, abs=1e-12)
    assert policy.poll({"bob": 1}, 95.0) == "bob"  # ann was forgotten: nobody else is left


def test_polling_learns_who_has_jobs() -> None:
    policy = Automata(build(AutomataSettings, {}, "x"), chance("a", 3))
    for user in ("ann", "bob", "cleo"):
        policy.poll({user: 1}, 0.0)
    asked = Counter(policy.poll({"bob": 1}, 1.0) for _ in range(400))
    assert asked["bob"] > 300
    assert asked[None] > 5, "the floor still asks the others"


# -- nodes --------------------------------------------------------------------------------------


def node_queues(jobs: int, speeds: list[float], seed: int = 5) -> Workload:
    """Nodes with queues at a load of .8."""
    rng = np.random.default_rng(seed)
    nan = np.full(jobs, np.nan)
    return Workload(
        "nodes", [str(n) for n in range(jobs)],
        np.cumsum(rng.exponential(100.0 / (0.8 * sum(speeds)), jobs)),
        rng.exponential(100.0, jobs), np.ones(jobs, dtype=np.int64), nan, nan, nan,
        ["ann"] * jobs, ["all"] * jobs, ["batch"] * jobs,
        [f"node-{n}" for n in range(len(speeds))],
        [MachineSpec(cluster="grid", speed=speed) for speed in speeds],
        rules=GridRules(node_queues=True),
    )  # fmt: skip


def sent(kind: type[Policy], workload: Workload, **settings: Any) -> Counter[str | None]:
    """Jobs by node, all of them done."""
    policy = kind(build(kind.settings_type, settings, "x"), chance(kind.name))
    where: Counter[str | None] = Counter()

    def keep(decision: Decision) -> None:
        row = Row.of(decision, workload)
        where[row.machine] += row.action == "start"

    report = GridRun(workload, [policy], keep).run()
    assert report["jobs"]["completed"] == sum(where.values()) == len(workload.submit_s)
    return where


SPEEDS = [1.0, 1.0, 1.0, 9.0]


def test_lajs_sends_a_fast_node_more_without_knowing_its_speed() -> None:
    workload = node_queues(1500, SPEEDS)
    assert sent(RandomMatch, workload)["node-3"] / 1500 == pytest.approx(0.25, abs=0.05)
    assert sent(Automata, workload, **Automata.presets["lajs"])["node-3"] / 1500 > 0.55


def test_the_greedy_rule_and_the_baselines_do_as_their_names_say() -> None:
    workload = node_queues(800, SPEEDS)
    assert sent(Automata, workload, **Automata.presets["literal"])["node-3"] / 800 > 0.75
    assert sent(CapacityRandom, workload)["node-3"] / 800 == pytest.approx(0.75, abs=0.05)
    assert sent(LeastLoaded, workload)["node-3"] / 800 > 0.6
    assert set(sent(RoundRobin, workload).values()) == {200}


def test_the_load_is_of_the_capacity_and_machines_of_the_same_load_are_drawn() -> None:
    site = HandSite(LeastLoaded)
    site.machines(8, 2)
    site.machines(4, speed=4.0, cluster="north")
    site.machines(4, speed=4.0, cluster="south")
    for job, (machine, cpus) in enumerate(((0, 2), (1, 1), (2, 3), (3, 3))):
        site.submit(job, cpus=cpus)
        site.tell(ev.STARTED, job, (machine, cpus))
    site.submit(4)  # 2 of 8, 1 of 2, and twice 3 of 4 that are as fast as 16
    said = site.policy.explain(site.site.jobs[4], site.site)
    assert said == "it goes to the machine of least load: 0.188 CPUs in use per capacity"
    assert site.tick() == [4]
    [(_, first)] = site.starts
    assert first in (2, 3)
    for job, machine in ((5, 5 - first), (6, 0)):  # the other one of the two; then .25 each
        site.submit(job)
        assert site.tick() == [job]
        assert site.starts[-1] == (job, machine)
    assert [row[-1] for row in site.decision_log.rows] == [0.5, 1.0, 1.0]


def test_a_node_is_penalised_for_having_more_than_the_mean() -> None:
    site = HandSite(Automata, level="computer", floor_ratio=0.0, reward_step=0.2)
    site.machines(8, 8)
    site.submit(0)
    site.tick()
    (_, first) = site.starts[0]
    after_one = probabilities(site)[f"default no. {first}"]
    assert after_one == pytest.approx(0.6), "it was empty, so it was rewarded"
    site.policy.sent(site.site.jobs[0], first, site.site)
    assert probabilities(site)[f"default no. {first}"] == pytest.approx(0.48)


def test_the_ratio_rule_rewards_where_capacity_per_job_is_not_below_any_busy_node_s() -> None:
    """Check section 4.1.2 by hand: nodes of 4 and 2 CPUs, steps of 0.2."""
    site = HandSite(Automata, level="computer", response="ratio", reward_step=0.2)
    site.machines(4, 2)
    site.submit(0)

    def after_one_more(machine: int) -> float:
        site.policy.sent(site.site.jobs[0], machine, site.site)
        return probabilities(site)[f"default no. {machine}"]

    assert after_one_more(0) == pytest.approx(0.6), "nobody is busy: rewarded"
    assert after_one_more(1) == pytest.approx(0.8 * 0.4), "2 / 1 is below 4 / 1: penalised"
    assert after_one_more(0) == pytest.approx(0.68 + 0.2 * 0.32), "4 / 2 is as much as 2 / 1"
    assert after_one_more(0) == pytest.approx(0.8 * 0.744), "4 / 3 is below both: penalised"


def test_an_evicted_run_is_a_penalty_and_a_completed_one_none() -> None:
    site = HandSite(Automata, level="computer", reward_step=0.2)
    site.machines(1, 1)
    site.submit(0)
    (job,) = site.tick()
    machine = site.starts[0][1]
    before = probabilities(site)[f"default no. {machine}"]
    site.evict(job)
    assert probabilities(site)[f"default no. {machine}"] == pytest.approx(0.8 * before)
    (job,) = site.tick(1.0)
    before = probabilities(site)[f"default no. {machine}"]
    site.complete(job)
    assert probabilities(site)[f"default no. {machine}"] == before


def test_where_endings_are_the_response_a_completion_is_worth_one_and_an_eviction_minus_one() -> (
    None
):
    site = HandSite(Automata, level="computer", response="ending", reward_step=0.2)
    site.machines(1, 1)
    site.submit(0)
    (job,) = site.tick()
    site.evict(job)
    (job,) = site.tick(1.0)
    site.complete(job)
    assert [end[-2] for end in site.decision_log.ends] == [-1.0, 1.0]


def test_nodes_come_and_go_with_their_machines() -> None:
    site = HandSite(Automata, level="computer")
    site.machines(1, 1, 1)
    assert set(probabilities(site)) == {f"default no. {n}" for n in range(3)}
    site.tell(ev.LEFT, 1)
    assert set(probabilities(site)) == {"default no. 0", "default no. 2"}
    site.machines(1)
    assert probabilities(site)["default no. 3"] == pytest.approx(1 / 3)


def test_a_run_that_outlives_its_node_is_no_error() -> None:
    site = HandSite(Automata, level="computer")
    site.machines(1, 1)
    site.submit(0)
    site.tick()
    machine = site.starts[0][1]
    site.tell(ev.LEFT, machine)
    run = Outcome(0, 1, machine, 0, 0.0, 5.0, 5.0, EVICTED_RUN, "owner")
    assert site.policy.observe(run, site.site, True) == ()
    assert len(probabilities(site)) == 1


@pytest.mark.parametrize("level", ["computer", "cluster"])
def test_a_wide_job_goes_to_a_node_that_can_take_it_or_waits(level: str) -> None:
    site = HandSite(Automata, level=level)
    site.machines(1, 2, cluster="small")
    site.machines(8, cluster="large")
    site.submit(0, cpus=4)
    site.submit(1, cpus=6)
    site.tick()
    assert [machine for _, machine in site.starts] == [2]
    assert "no node has 6 CPUs free" in site.policy.explain(site.site.jobs[1], site.site)
    site.complete(site.starts[0][0])
    assert len(site.tick(1.0)) == 1


def test_it_learns_in_shadow_from_where_the_batch_system_starts_jobs() -> None:
    workload = node_queues(600, SPEEDS)
    shadow = Automata(build(AutomataSettings, Automata.presets["lajs"], "x"), chance("a"))
    acting = RandomMatch(RandomMatch.settings_type(), chance("r"))
    run = GridRun(workload, [acting, shadow], lambda *row: None)
    run.run()
    learned = shadow.scores(1, run.site)
    assert learned["grid no. 3"] > 2 * max(learned[f"grid no. {n}"] for n in range(3))


def test_it_says_who_is_asked_where_the_job_goes_and_what_would_change_that() -> None:
    site, _ = crowd()
    site.tick()
    site.complete(site.starts[0][0])
    said = site.policy.explain(site.site.jobs[33], site.site)
    assert "its user is polled in" in said
    assert "most likely go to default (probability 100%), which has 0 jobs per machine" in said
    assert "a node's probability falls when it gets a job while it has more than the mean" in said


def test_what_was_learned_of_machines_does_not_fit_clusters() -> None:
    site = HandSite(Automata, level="computer")
    site.machines(1, 1)
    other = Automata(build(AutomataSettings, {}, "x"), chance("a"))
    with pytest.raises(ValueError, match='learned at level "computer", not "cluster"'):
        other.restore(site.policy.save(site.site), site.site)
