"""``Outrider-v0``: what Gymnasium asks of an environment, and that it is a replay and no other."""

import threading
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import outrider
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError, PolicyError
from outrider_lab.gym import ENV_ID, REWARDS, OutriderEnv
from outrider_lab.gym.environment import AgentPolicy
from tests.lab.gym.episodes import COLUMN, Pick, oldest, play, shortest, youngest

MEASURES = {
    "bounded_slowdown": lambda run: -run["bounded_slowdown"]["all"]["mean"],
    "wait": lambda run: -run["wait_s"]["all"]["mean"],
    "utilisation": lambda run: run["utilisation_ratio"],
    "energy": lambda run: -sum(run["energy_wh"].values()),
    "utility": lambda run: run["utility"]["total"],
}


@pytest.fixture(scope="module")
def serial() -> Workload:
    """A grid of jobs of one CPU."""
    return outrider.generate_grid(1, row=0.4, jobs=150, machines=6)


@pytest.fixture(scope="module")
def parallel() -> Workload:
    """A grid of parallel jobs."""
    return outrider.generate_grid(1, like="vengerov", rate=0.15, length_s=600)


@pytest.mark.parametrize("window", [4, 32])
def test_the_checker_of_gymnasium_has_no_complaint(window: int) -> None:
    check_env(gymnasium.make(ENV_ID, window=window).unwrapped)


def test_without_arguments_it_runs_on_a_small_generated_grid() -> None:
    with gymnasium.make(ENV_ID) as env:
        played = play(env, oldest, seed=1)
    assert played.terminated
    assert not played.truncated
    assert played.run["jobs"]["completed"] == 300
    assert env.observation_space.shape == (32, len(COLUMN))
    assert env.action_space == gymnasium.spaces.Discrete(32)


def test_the_same_seed_is_the_same_episode_and_the_next_is_another() -> None:
    one, two = OutriderEnv(), OutriderEnv()
    first, again = play(one, shortest, seed=7), play(two, shortest, seed=7)
    assert all(np.array_equal(a, b) for a, b in zip(first.seen, again.seen, strict=True))
    assert first.rewards == again.rewards
    assert first.begun["seed"] == again.begun["seed"]
    assert first.run["ledger_sha256"] == again.run["ledger_sha256"]
    after_one, after_two = play(one, shortest), play(two, shortest)
    assert after_one.run["ledger_sha256"] == after_two.run["ledger_sha256"]
    assert after_one.run["ledger_sha256"] != first.run["ledger_sha256"]


@pytest.mark.parametrize("discipline", ["strict", "easy", "easy_sjbf", "conservative", "first_fit"])
@pytest.mark.parametrize(("pick", "rule"), [(oldest, "fifo"), (shortest, "sjf")])
def test_the_same_decisions_are_the_same_ledger_and_figures_as_a_policy_makes(
    serial: Workload, discipline: str, pick: Pick, rule: str
) -> None:
    terms: dict[str, Any] = {"discipline": discipline, "estimates": "lognormal:0.5"}
    played = play(OutriderEnv(serial, window=1024, **terms), pick, seed=3)
    run = outrider.replay(serial, policy=rule, seed=played.begun["seed"], **terms)
    assert played.run["ledger_sha256"] == run.ledger_sha256
    of_both = ("wait_s", "bounded_slowdown", "goodput_s", "utility", "starts", "span_s", "fairness")
    assert {name: played.run[name] for name in of_both} == {
        name: run.as_dict()[name] for name in of_both
    }


@pytest.mark.parametrize("discipline", ["strict", "easy", "conservative", "first_fit"])
def test_so_it_is_where_jobs_are_wide_and_others_pass(parallel: Workload, discipline: str) -> None:
    played = play(OutriderEnv(parallel, window=1024, discipline=discipline), oldest)
    run = outrider.replay(parallel, policy="fifo", seed=played.begun["seed"], discipline=discipline)
    assert played.run["ledger_sha256"] == run.ledger_sha256


def test_shortest_first_with_wide_jobs_is_sjf_where_nobody_passes(parallel: Workload) -> None:
    played = play(OutriderEnv(parallel, window=1024), shortest)
    run = outrider.replay(parallel, policy="sjf", seed=played.begun["seed"])
    assert played.run["ledger_sha256"] == run.ledger_sha256


def test_what_is_selected_makes_a_difference(serial: Workload) -> None:
    env = OutriderEnv(serial)
    assert len({play(env, pick).run["ledger_sha256"] for pick in (oldest, shortest, youngest)}) == 3


def test_an_empty_slot_means_the_oldest_job(serial: Workload) -> None:
    env = OutriderEnv(serial, window=64)
    empty = play(env, lambda seen, jobs_n: jobs_n if jobs_n < 64 else 0)
    assert empty.run["ledger_sha256"] == play(env, oldest).run["ledger_sha256"]


@pytest.mark.parametrize("reward", sorted(set(REWARDS) - {"energy"}))
@pytest.mark.parametrize("pick", [oldest, youngest])
def test_rewards_sum_up_to_what_reports_publish(
    parallel: Workload, serial: Workload, reward: str, pick: Pick
) -> None:
    for trace in (serial, parallel):
        played = play(OutriderEnv(trace, reward=reward), pick)
        assert sum(played.rewards) == pytest.approx(MEASURES[reward](played.run), rel=1e-9)
        assert sum(one != 0.0 for one in played.rewards) > len(played.rewards) / 10


def test_so_does_energy_on_a_campus_that_knows_its_watts() -> None:
    campus = outrider.generate_campus(3, weeks=0.3, machines=4, clusters=1, jobs=60)
    played = play(OutriderEnv(campus, reward="energy"), oldest)
    assert sum(played.rewards) == pytest.approx(MEASURES["energy"](played.run), rel=1e-9)
    assert sum(played.rewards) < 0.0
    run = outrider.replay(campus, policy="fifo", seed=played.begun["seed"])
    assert run.energy_wh == played.run["energy_wh"]


def test_energy_without_watts_is_refused(serial: Workload) -> None:
    with pytest.raises(ConfigurationError, match="has no watts of its machines"):
        OutriderEnv(serial, reward="energy").reset()


def test_a_trace_that_is_cut_off_is_truncated(serial: Workload) -> None:
    until_s = float(serial.submit_s[80])
    played = play(OutriderEnv(serial, until_s=until_s), oldest)
    assert (played.terminated, played.truncated) == (False, True)
    run = outrider.replay(serial, policy="fifo", until_s=until_s)
    assert played.run["ledger_sha256"] == run.ledger_sha256


def test_nothing_that_is_seen_depends_on_how_long_jobs_will_run(serial: Workload) -> None:
    """Two worlds in which users ask for the same and jobs run differently, until the first end."""
    at_once = replace(serial, submit_s=np.zeros(150), requested_s=serial.run_s.copy())
    longer = replace(at_once, run_s=at_once.run_s * 3.0 + np.arange(150.0))
    one, other = (
        play(OutriderEnv(t, estimates="requested", window=150), oldest) for t in (at_once, longer)
    )
    begun_n = 6  # as many as there are machines: then the first has to end
    for n in range(begun_n):
        assert np.array_equal(one.seen[n], other.seen[n])
    assert one.run["ledger_sha256"] != other.run["ledger_sha256"]


def test_rows_are_jobs_oldest_first_and_the_mask_says_which(serial: Workload) -> None:
    played = play(OutriderEnv(serial, window=8), youngest)
    for seen, mask in zip(played.seen, played.masks, strict=True):
        jobs_n = int(mask.sum())
        assert mask.tolist() == [1] * jobs_n + [0] * (8 - jobs_n)
        assert seen[:, COLUMN["is_job"]].tolist() == mask.tolist()
        assert not seen[jobs_n:].any()
        assert (np.diff(seen[:jobs_n, COLUMN["wait"]]) <= 0).all()
    assert not played.masks[-1].any()


def test_a_stretch_of_a_workload_is_drawn_for_each_episode(serial: Workload) -> None:
    env = OutriderEnv(serial, jobs=60)
    first, second = play(env, oldest, seed=2), play(env, oldest)
    assert first.run["jobs"]["submitted"] == second.run["jobs"]["submitted"] == 60
    assert first.begun["trace"] != second.begun["trace"]


def test_an_episode_left_in_the_middle_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    env = OutriderEnv()
    for _ in range(3):
        env.reset(seed=1)
        env.step(np.int64(0))
    assert threading.active_count() == before + 1
    env.close()
    assert threading.active_count() == before
    dropped = OutriderEnv()
    dropped.reset(seed=1)
    (thread,) = (t for t in threading.enumerate() if t.name == "outrider-episode")
    del dropped
    thread.join(10)
    assert not thread.is_alive()


def test_an_error_of_the_engine_comes_out_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*asked: object) -> None:
        raise ZeroDivisionError("no reason")

    env = OutriderEnv()
    env.reset(seed=1)
    monkeypatch.setattr(AgentPolicy, "choose", fails)
    with pytest.raises(PolicyError, match='policy "agent" failed: ZeroDivisionError: no reason'):
        env.step(np.int64(0))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(0))


def test_what_is_wrong_is_said(serial: Workload) -> None:
    for arguments, message in (
        ({"reward": "waits"}, 'reward "waits": did you mean "wait"'),
        ({"window": 1}, "window = 1; expected 2 to 4096"),
        ({"jobs": 1}, "jobs = 1; expected 2 or more"),
        ({"trace": serial, "jobs": 151}, "has 150; expected so many or less"),
        ({"discipline": "eazy"}, 'discipline "eazy": did you mean "easy"'),
    ):
        with pytest.raises(ConfigurationError, match=message):
            OutriderEnv(**arguments)
    with pytest.raises(ValueError, match="action 32; expected a row, 0 to 31"):
        _begun().step(np.int64(32))
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"env\.reset"):
        OutriderEnv().step(np.int64(0))
    alone = outrider.generate_grid(1, row=0.4, jobs=5, machines=50)
    with pytest.raises(ConfigurationError, match="nothing to select"):
        OutriderEnv(alone).reset()


def _begun() -> OutriderEnv:
    env = OutriderEnv()
    env.reset(seed=0)
    return env
