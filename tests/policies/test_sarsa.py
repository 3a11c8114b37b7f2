"""`sarsa`: who starts first, what is learned from it, who may not wait longer, where it starts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.api import RUNNING, ConfigurationError
from outrider.formats.workload import SpeedChange, Workload
from outrider.model.decisions import Decision
from outrider.model.settings import build
from outrider.plugins.finding import stream
from outrider.replay.grid_run import GridRun
from outrider.simulation.generators.grids import perez_grid
from outrider.testing.fixtures import HandSite, Row
from outrider_policies.rules.orders import EarliestDeadlineFirst, EdfSettings
from outrider_policies.rules.placements import Fifo
from outrider_policies.sarsa import Sarsa, SarsaSettings
from tests.policies.views import reason_of

HOUR_S = 3600.0
TUNING_SEED = 20_000


def sarsa(seed: int = 0, **settings: Any) -> Sarsa:
    return Sarsa(build(SarsaSettings, settings, "sarsa"), stream(seed, "policy:sarsa"))


def quiet(**settings: Any) -> HandSite:
    """One machine, and no exploration."""
    site = HandSite(Sarsa, **({"epsilon": 0.0} | settings))
    site.machines(1)
    return site


def run(workload: Workload, *policies: Any) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """The report, and (time, job, machine, reason) of each start of the acting policy."""
    starts = []

    def keep(decision: Decision) -> None:
        row = Row.of(decision, workload)
        if row.action == "start" and decision.policy == policies[0].name:
            starts.append((row.time_s, row.job, row.machine, row.reason))

    report = GridRun(workload, list(policies), keep).run()
    return report, starts


# -- who starts first -------------------------------------------------------------------------


def test_a_short_interactive_job_starts_before_a_long_batch_job_that_came_first() -> None:
    site = quiet()
    site.submit(0, estimate_s=600.0)
    assert site.tick() == [0]
    site.submit(1, estimate_s=20 * HOUR_S)
    site.submit(2, estimate_s=300.0, job_class="interactive")
    assert site.tick(60.0) == []
    site.complete(0)
    assert site.tick(60.0) == [2]


def test_an_interactive_job_that_waited_too_long_starts_before_a_more_valuable_one() -> None:
    site = quiet()
    site.submit(0, estimate_s=600.0)
    site.tick()
    site.submit(1, estimate_s=800.0, job_class="interactive")
    site.tick(400.0)
    site.submit(2, estimate_s=30.0, job_class="interactive")
    site.complete(0)
    assert site.tick() == [1]
    assert reason_of(site, 1) == "waited_interactive"


def test_a_batch_job_that_waited_too_long_starts_first_unless_an_interactive_one_waits() -> None:
    site = quiet(guard_batch_ratio=2.0, guard_drain_ratio=0.0)
    for number, estimate_s in ((0, 600.0), (1, 20 * HOUR_S), (2, 300.0), (3, 300.0)):
        site.submit(number, estimate_s=estimate_s)
    assert site.tick() == [2]
    site.now += 600.0
    site.complete(2)
    assert site.tick() == [3], "nobody has waited two mean runs of 600 s yet"
    site.now += 700.0
    site.submit(4, estimate_s=60.0, job_class="interactive")
    site.complete(3)
    assert site.tick() == [4], "an interactive job waits"
    site.complete(4)
    assert site.tick() == [0], "the oldest of those that waited too long"
    assert reason_of(site, 0) == "waited_batch"


def test_where_the_queue_is_long_everybody_waits_and_the_guard_waits_with_them() -> None:
    for drain_ratio, first in ((0.0, 1), (1.5, 3)):
        site = quiet(guard_batch_ratio=1.0, guard_drain_ratio=drain_ratio)
        for number, estimate_s in ((0, 300.0), (1, 20 * HOUR_S), (2, 300.0), (3, 300.0)):
            site.submit(number, estimate_s=estimate_s)
        assert site.tick() != [1]
        running = next(n for n, job in site.site.jobs.items() if job.state == RUNNING)
        site.now += 600.0
        site.complete(running)
        site.tick()
        running = next(n for n, job in site.site.jobs.items() if job.state == RUNNING)
        site.now += 900.0
        site.complete(running)  # 1 has waited two mean runs, but the queue is 20 hours long
        started = site.tick()
        assert (started == [1]) == (first == 1), f"drain ratio {drain_ratio}: {started}"


def test_the_state_tells_what_the_run_is_expected_to_be_worth_after_its_wait() -> None:
    """Return exp(-.5 x 3,540 / 3,600), of an interactive job of 100 s that waited an hour."""
    site = quiet()
    site.now += 5.0 * HOUR_S
    site.submit(0)
    site.tick()
    site.submit(1, job_class="interactive", estimate_s=100.0)
    site.now += HOUR_S
    site.complete(0)
    assert site.tick() == [1]
    features, _ = site.policy._site.state(site.site)
    assert features[3] == pytest.approx(np.exp(-0.5 * (HOUR_S - 60.0) / HOUR_S))


def test_without_guards_values_alone_decide() -> None:
    site = quiet(guards=False)
    site.submit(0, estimate_s=600.0)
    site.tick()
    site.submit(1, estimate_s=800.0, job_class="interactive")
    site.tick(10 * HOUR_S)
    site.submit(2, estimate_s=30.0, job_class="interactive")
    site.complete(0)
    assert site.tick() == [2]


def test_every_waiting_job_is_tried_while_exploring() -> None:
    first = set()
    for seed in range(40):
        site = quiet(epsilon=1.0)
        site.policy.rng.seed(seed)
        for number in range(4):
            site.submit(number, estimate_s=600.0 * (number + 1))
        first |= set(site.tick())
    assert first == {0, 1, 2, 3}


def test_propensities_are_those_of_epsilon_greedy() -> None:
    policy = sarsa(epsilon=0.4)
    told: dict[str, list[Any]] = {}

    def keep(decision: Decision) -> None:
        if decision.propensity is not None:
            told.setdefault(decision.reason, []).append(decision.propensity)

    workload = perez_grid(0.5, TUNING_SEED, jobs=400, machines=5)
    GridRun(workload, [policy], keep).run()
    assert min(told["best"]) >= 0.6
    assert max(told["explore"]) <= 0.4
    assert set(told["waited_interactive"]) == {1.0}


def test_jobs_of_unknown_length_count_as_means_of_their_class() -> None:
    site = quiet()
    for number, job_class, run_s in ((0, "interactive", 60.0), (1, "batch", 9000.0)):
        site.submit(number, job_class=job_class)
        assert site.tick() == [number]
        site.now += run_s
        site.complete(number)
    site.submit(2)
    assert site.tick() == [2]
    site.submit(3, job_class="batch")
    site.submit(4, job_class="interactive")
    site.submit(5, job_class="batch", estimate_s=120.0)
    site.tick(10.0)
    order = []
    for _ in range(3):
        site.complete(site.starts[-1][0])
        order += site.tick()
    assert order == [4, 5, 3]


# -- what is learned --------------------------------------------------------------------------


def test_it_learns_that_short_runs_earn_more_than_long_ones() -> None:
    policy = sarsa(start="none", epsilon=0.5)
    run(perez_grid(0.5, TUNING_SEED, jobs=1500, machines=10), policy)
    view: Any = _no_site()
    rows = policy.learned(view)["rows"]
    assert [row["label"] for row in rows] == ["interactive", "batch"]
    assert rows[0]["values"] != rows[1]["values"]
    for row in rows:
        values = row["values"]
        assert values[0] > values[2] > values[4], row


def _no_site() -> Any:
    class View:
        now = 0.0
        free_total = 1
        machines_n = 10

        @staticmethod
        def cpus_of(machine: int) -> int:
            return 1

        @staticmethod
        def vo_shares() -> dict[str, tuple[float, float]]:
            return {}

    return View()


def test_in_shadow_it_learns_from_the_decisions_of_another() -> None:
    shadow = sarsa(start="none")
    behaviour = EarliestDeadlineFirst(EdfSettings(), stream(0, "policy:edf"))
    before = json.dumps(shadow.start_state(_no_site()))
    workload = perez_grid(0.5, TUNING_SEED, jobs=300, machines=10)
    run(workload, behaviour, shadow)
    assert json.dumps(shadow.start_state(_no_site())) != before
    assert shadow.save(_no_site())["memory"]["added"] == 299, "all but the last have a successor"


def test_acting_it_remembers_each_decision_once() -> None:
    policy = sarsa()
    run(perez_grid(0.5, TUNING_SEED, jobs=300, machines=10), policy)
    assert policy.save(_no_site())["memory"]["added"] == 299


def test_frozen_it_values_as_it_did_at_the_start() -> None:
    policy = sarsa(learn=False)
    before = policy.start_state(_no_site())
    run(perez_grid(0.5, TUNING_SEED, jobs=300, machines=10), policy)
    assert policy.start_state(_no_site()) == before
    assert policy.save(_no_site())["memory"]["added"] == 0


def test_a_run_that_was_thrown_away_earns_nothing_but_fairness() -> None:
    site = quiet()
    site.submit(0, estimate_s=600.0)
    site.tick()
    site.now += 100.0
    site.evict(0)
    assert site.runner.reward_sum == pytest.approx(1.0)


@pytest.mark.parametrize("approximator", ["mlp", "linear", "boosting"])
def test_trained_in_batches_beside_the_decisions_it_decides_the_same_each_time(
    approximator: str,
) -> None:
    settings: dict[str, Any] = {
        "training": "batch", "approximator": approximator, "start": "none",
        "retrain_every_n": 60, "adopt_after_n": 20,
    }  # fmt: skip
    workload = perez_grid(0.5, TUNING_SEED, jobs=300, machines=10)
    (_, starts), (_, again) = (run(workload, sarsa(**settings)) for _ in range(2))
    assert starts == again
    untrained = run(workload, sarsa(**settings | {"retrain_every_n": 10_000}))[1]
    assert starts != untrained, "no training was taken up"


def test_nodes_that_slow_down_without_a_word_are_left_alone_when_others_are_free() -> None:
    workload = perez_grid(0.5, TUNING_SEED, jobs=900, machines=10, load=0.4)
    half_s = float(workload.submit_s[300])
    workload.speed_changes = [SpeedChange(half_s, machine, 0.25) for machine in range(3)]
    slow = set(workload.machine_names[:3])
    _, starts = run(workload, sarsa())
    late = [machine for time_s, _, machine, _ in starts if time_s > workload.submit_s[600]]
    frozen = run(workload, sarsa(learn=False))[1]
    blind = [machine for time_s, _, machine, _ in frozen if time_s > workload.submit_s[600]]
    share, share_blind = (np.mean([m in slow for m in ms]) for ms in (late, blind))
    assert share < 0.5 * share_blind, f"{share:.0%} of starts, {share_blind:.0%} if frozen"


def test_vos_may_come_and_go_without_a_trace_in_what_is_seen() -> None:
    workload = perez_grid(0.5, TUNING_SEED, jobs=300, machines=10)
    workload.vo[150:] = ["newcomer" if n % 3 else "1" for n in range(150)]
    report, starts = run(workload, sarsa())
    assert len(starts) == 300
    assert report["fairness"]["share"]["newcomer"] > 0.0


def test_interactive_jobs_wait_far_less_than_in_line_and_no_batch_job_starves() -> None:
    workload = perez_grid(0.5, TUNING_SEED, jobs=3000)
    in_line = run(workload, Fifo(Fifo.settings_type(), stream(0, "policy:fifo")))[0]["wait_s"]
    ours = run(workload, sarsa())[0]["wait_s"]
    interactive = ours["by_class"]["interactive"], in_line["by_class"]["interactive"]
    batch = ours["by_class"]["batch"], in_line["by_class"]["batch"]
    assert interactive[0]["mean"] < interactive[1]["mean"] / 4
    assert batch[0]["mean"] < batch[1]["mean"]
    assert batch[0]["max"] < 5 * workload.run_s.mean(), "the guard stands at four"


# -- where it starts --------------------------------------------------------------------------


def test_a_saved_policy_is_a_start_state_too(tmp_path: Path) -> None:
    policy = sarsa(start="none")
    run(perez_grid(0.5, TUNING_SEED, jobs=100, machines=10), policy)
    file = tmp_path / "start.json"
    for state in (policy.save(_no_site()), policy.start_state(_no_site())):
        file.write_text(json.dumps(state))
        again = sarsa(start=str(file)).start_state(_no_site())
        assert again == policy.start_state(_no_site())


def test_both_shipped_nets_fit_their_settings() -> None:
    for settings in ({}, Sarsa.presets["literal"]):
        started, afresh = sarsa(**settings), sarsa(**settings, start="none")
        assert started.start_state(_no_site()) != afresh.start_state(_no_site())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "no start state"),
        ('{"encoding": "relative"}', "no start state"),
        ('{"encoding": "literal", "training": {"values": {}}}', 'encoding = "literal"'),
        ('{"encoding": "relative", "training": {"values": {"kind": "linear"}}}', "'linear'"),
        (
            '{"encoding": "relative", "training": {"values": {"kind": "mlp", "parameters": [1]}}}',
            "221 finite numbers",
        ),
    ],
)
def test_a_file_that_is_no_start_is_refused_by_name(
    tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "start.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigurationError, match=said) as refused:
        sarsa(start=str(file))
    assert str(file) in str(refused.value)


def test_a_start_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "start.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="cannot be read: not text; expected"):
        sarsa(start=str(file))


def test_what_cannot_be_combined_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match='expected "batch"'):
        sarsa(approximator="boosting", start="none")
    with pytest.raises(ConfigurationError, match='start = "none"'):
        sarsa(approximator="linear")


# -- what it tells ----------------------------------------------------------------------------


def test_it_tells_value_place_and_when_a_guard_would_act() -> None:
    site = quiet(guard_drain_ratio=0.0)
    site.submit(0, estimate_s=600.0)
    site.tick()
    site.now += 600.0
    site.complete(0)
    site.submit(1, estimate_s=600.0)
    site.tick()
    site.submit(2, estimate_s=20 * HOUR_S, vo="physics")
    site.submit(3, estimate_s=60.0, job_class="interactive", vo="biology")
    site.tick(100.0)
    jobs = site.site.jobs
    said = site.policy.explain(jobs[2], site.site)
    assert "1 of 2 waiting jobs have a higher one; first is interactive biology 1 min" in said
    assert "in 38 min it precedes higher values, while no interactive job waits" in said
    assert "the highest of 2 waiting jobs: it starts first" in site.policy.explain(
        jobs[3], site.site
    )
    site.tick(400.0)
    said = site.policy.explain(jobs[3], site.site)
    assert "it has waited 8 min and is the oldest of those that waited too long" in said
