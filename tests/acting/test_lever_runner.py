"""Execution of decisions that the gate admitted; a faulty lever does not affect others."""

import time
from concurrent.futures import Future

import pytest

from outrider.acting import lever_thread
from outrider.acting.lever_runner import LeverRunner
from outrider.model import events as ev
from outrider.model.errors import PluginError
from tests.acting.levers import (
    Blocking,
    Noting,
    Refusing,
    Silent,
    at_a_pool,
    counts_of,
    row,
    wait_until,
)


def test_only_what_the_gate_let_through_reaches_the_lever_that_carries_it() -> None:
    starts, preempts = Noting(), Blocking()
    preempts.let_go.set()
    runner = at_a_pool(starts, preempts)
    runner.take(
        [
            row("1", gate="would"), row("2", gate="refused: budget"), row("3", gate=None),
            row("4"), row("5", action="preempt"),
        ]
    )  # fmt: skip
    assert starts.wait_for(1) == [("apply", "4")]
    assert preempts.wait_for(1) == [("apply", "5")]
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 1)
    assert runner.threads[0].standing == {"4": row("4")}
    assert runner.close(5.0) == []
    assert starts.asked == [("apply", "4"), ("withdraw", "4")]
    assert starts.closed
    assert preempts.closed


def test_what_stands_is_renewed_and_counted_as_that() -> None:
    class Short(Noting):
        lease_s = 2.4

    lever = Short()
    runner = at_a_pool(lever)
    runner.take([row("1")])
    assert wait_until(lambda: counts_of(runner, "noting")["renewed"] >= 2)
    assert counts_of(runner, "noting")["applied"] == 1
    runner.close(5.0)


def test_a_batch_system_that_is_silent_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lever_thread, "RETRY_AFTER_S", 0.05)
    lever = Silent()
    runner = at_a_pool(lever)
    runner.take([row("1"), row("2")])
    assert lever.wait_for(4) == [("apply", "1"), ("apply", "2")] * 2
    assert runner.threads[0].failure == "KeyError: 'no such queue'"
    assert runner.threads[0].standing.keys() == {"1", "2"}, "a part of it may have been done"
    lever.answers = True
    assert wait_until(lambda: counts_of(runner, "noting")["renewed"] == 2)
    assert runner.threads[0].failure == ""
    runner.close(5.0)
    assert set(lever.asked[-2:]) == {("withdraw", "1"), ("withdraw", "2")}


def test_what_is_refused_for_one_job_is_done_for_the_others_and_told() -> None:
    lever = Refusing()
    runner = at_a_pool(lever)
    runner.take([row("1"), row("2"), row("3")])
    assert wait_until(lambda: counts_of(runner, "noting") == {"applied": 2, "refused": 1})
    thread = runner.threads[0]
    assert thread.refusals == {"2": "not yours"}
    assert thread.failure == "2: not yours"
    runner.take([], [("pool", (5.0, ev.STARTED, "2", ("m1", 1)))])
    assert thread.refusals == {}, "it runs"
    runner.close(5.0)
    assert ("withdraw", "2") not in lever.asked


def test_a_lever_that_blocks_holds_up_neither_the_caller_nor_other_levers() -> None:
    blocked, other = Blocking(), Noting()
    runner = at_a_pool(blocked, other)
    began_s = time.monotonic()
    runner.take([row("0", action="preempt")])
    assert blocked.wait_for(1) == [("apply", "0")]
    runner.take(row(str(n), action="preempt") for n in range(1, 10_000))
    runner.take([row("free")])
    assert time.monotonic() - began_s < 5.0
    assert other.wait_for(1) == [("apply", "free")]
    assert runner.close(0.1) == ["pool: blocking"]
    assert other.asked[-1] == ("withdraw", "free")
    blocked.let_go.set()


def test_of_what_was_decided_while_a_lever_hung_the_last_counts() -> None:
    lever = Blocking()
    runner = at_a_pool(lever)
    runner.take([row("1", action="preempt")])
    lever.wait_for(1)
    runner.take([row("2", action="preempt"), row("3", action="preempt")])
    runner.take([row("2", "defer", None), row("4", action="preempt")])
    runner.take([], [("pool", (1.0, ev.REMOVED, "4", "removed"))])
    lever.let_go.set()
    assert lever.wait_for(2) == [("apply", "1"), ("apply", "3")]
    runner.close(5.0)


@pytest.mark.parametrize("unwanted", [("defer", None), ("start", "refused: budget"),
                                      ("start", "would")])  # fmt: skip
def test_what_the_policy_does_not_want_any_more_is_taken_back_and_nothing_else(
    unwanted: tuple[str, str | None],
) -> None:
    lever = Noting()
    runner = at_a_pool(lever)
    runner.take([row("1"), row("2")])
    lever.wait_for(2)
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 2)
    runner.take([row("3", *unwanted), row("1", *unwanted)])
    assert lever.wait_for(3)[2:] == [("withdraw", "1")]
    assert wait_until(lambda: counts_of(runner, "noting")["withdrawn"] == 1)
    runner.take([row("1", *unwanted)])
    runner.close(5.0)
    assert lever.asked[3:] == [("withdraw", "2")]


@pytest.mark.parametrize("kind", [ev.STARTED, ev.COMPLETED, ev.REMOVED, ev.HELD])
def test_a_job_whose_wait_has_ended_is_left_alone(kind: int) -> None:
    lever = Noting()
    runner = at_a_pool(lever)
    runner.take([row("1"), row("2")])
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 2)
    runner.take([], [("pool", (7.0, kind, "1", None)), ("pool", (7.0, ev.CHANGED, "2", {}))])
    assert runner.threads[0].standing.keys() == {"2"}
    runner.close(5.0)
    assert lever.asked[2:] == [("withdraw", "2")]


def test_a_decision_older_than_its_jobs_start_in_the_same_batch_is_not_carried_out() -> None:
    lever = Noting()
    runner = at_a_pool(lever)
    started = [("pool", (5.0, ev.STARTED, job, ("m1", 1))) for job in ("1", "2")]
    runner.take([row("1", time_s=4.0), row("2", time_s=6.0)], started)
    assert lever.wait_for(1) == [("apply", "2")]
    runner.close(5.0)
    assert lever.asked[1:] == [("withdraw", "2")]


def test_on_stale_input_nothing_is_done() -> None:
    is_fresh = False
    lever = Noting()
    runner = at_a_pool(lever, is_fresh=lambda: is_fresh)
    runner.take([row("1")])
    time.sleep(0.05)
    assert lever.asked == []
    is_fresh = True
    assert lever.wait_for(1) == [("apply", "1")]
    runner.close(5.0)


def test_what_waits_behind_a_change_that_hangs_is_not_made_any_more_once_the_daemon_ends() -> None:
    lever = Blocking()
    runner = at_a_pool(lever)
    runner.take([row("1", action="preempt")])
    lever.wait_for(1)
    runner.take([row("2", action="preempt")])
    assert runner.close(0.0) == ["pool: blocking"]
    lever.let_go.set()
    assert runner.close(10.0) == []
    assert lever.asked == [("apply", "1"), ("withdraw", "1")]
    assert counts_of(runner, "blocking") == {"applied": 1, "withdrawn": 1}


def test_a_change_that_could_not_be_taken_back_is_tried_again_at_the_end() -> None:
    class Stuck(Noting):
        def withdraw(self, jobs: object) -> dict[str, str]:
            super().withdraw(["1"])
            if len(self.asked) == 2:
                raise OSError("the batch system does not answer")
            return {}

    lever = Stuck()
    runner = at_a_pool(lever)
    runner.take([row("1")])
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 1)
    runner.take([row("1", "defer", None)])
    assert wait_until(lambda: counts_of(runner, "noting")["failed"] == 1)
    assert runner.close(10.0) == []
    assert lever.asked == [("apply", "1"), ("withdraw", "1"), ("withdraw", "1")]


def test_a_fault_of_our_own_is_told_and_the_next_round_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lever_thread, "RETRY_AFTER_S", 0.01)
    faults = [ZeroDivisionError("whatever")]

    def is_fresh() -> bool:
        if faults:
            raise faults.pop()
        return True

    lever = Noting()
    runner = at_a_pool(lever, is_fresh=is_fresh)
    runner.take([row("1")])
    assert lever.wait_for(1) == [("apply", "1")]
    assert runner.close(5.0) == []
    assert lever.asked == [("apply", "1"), ("withdraw", "1")]


def test_nothing_is_done_that_could_not_be_recorded() -> None:
    lever = Noting()
    runner = at_a_pool(lever)
    failed: Future[int] = Future()
    runner.take_when_recorded(failed, [row("1")])
    failed.set_exception(OSError("disk full"))
    recorded: Future[int] = Future()
    runner.take_when_recorded(recorded, [row("2")])
    time.sleep(0.05)
    assert lever.asked == []
    recorded.set_result(7)
    assert lever.wait_for(1) == [("apply", "2")]
    runner.close(5.0)


def test_a_lever_that_cannot_be_closed_ends_all_the_same() -> None:
    class Stays(Noting):
        def close(self) -> None:
            super().close()
            raise OSError("the connection is gone")

    lever = Stays()
    runner = at_a_pool(lever)
    assert runner.close(5.0) == []
    assert lever.closed


def test_what_could_not_be_taken_back_is_not_followed_by_new_changes_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lever_thread, "RETRY_AFTER_S", 60.0)

    class Silent(Noting):
        def withdraw(self, jobs: object) -> dict[str, str]:
            super().withdraw(["1"])
            raise OSError("the batch system does not answer")

    lever = Silent()
    runner = at_a_pool(lever)
    runner.take([row("1")])
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 1)
    runner.take([row("1", "defer", None), row("2")])
    assert wait_until(lambda: counts_of(runner, "noting")["failed"] == 1)
    time.sleep(0.05)
    assert lever.asked == [("apply", "1"), ("withdraw", "1")]
    runner.close(5.0)


def test_what_is_taken_back_does_not_hold_up_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lever_thread, "RETRY_AFTER_S", 60.0)
    lever = Noting()
    runner = at_a_pool(lever)
    runner.take([row("1")])
    assert wait_until(lambda: counts_of(runner, "noting")["applied"] == 1)
    runner.take([row("1", "defer", None), row("2")])
    assert lever.wait_for(3)[1:] == [("withdraw", "1"), ("apply", "2")]
    runner.close(5.0)


def test_two_levers_for_one_action_are_refused_by_name() -> None:
    class Other(Noting):
        name = "other"

    with pytest.raises(
        PluginError,
        match=r'"noting" and "other" of \[adapters.pool\] both execute "start"; expected',
    ):
        at_a_pool(Noting(), Other())


def test_each_job_reaches_the_levers_of_its_own_adapter_alone() -> None:
    pool, cluster = Noting(), Noting()
    runner = LeverRunner({"pool": [pool], "cluster": [cluster]}, {"1": "pool", "2": "cluster"}.get)
    runner.take([row("1"), row("2"), row("of a log that somebody follows")])
    assert pool.wait_for(1) == [("apply", "1")]
    assert cluster.wait_for(1) == [("apply", "2")]
    runner.close(5.0)
    assert pool.asked == [("apply", "1"), ("withdraw", "1")]
    assert cluster.asked == [("apply", "2"), ("withdraw", "2")]


def test_what_does_not_lapse_is_taken_back_when_its_job_starts() -> None:
    lasting, lapsing = Noting(), Noting()
    lasting.lasts = True
    runner = LeverRunner({"a": [lasting], "b": [lapsing]}, {"1": "a", "2": "b"}.get)
    runner.take([row("1"), row("2")])
    lasting.wait_for(1)
    lapsing.wait_for(1)
    started = [
        (label, (1.0, ev.STARTED, job, ("m1", 1))) for label, job in (("a", "1"), ("b", "2"))
    ]
    runner.take([], started)
    assert lasting.wait_for(2) == [("apply", "1"), ("withdraw", "1")]
    runner.close(5.0)
    assert lapsing.asked == [("apply", "2")], "it lapses by itself"
