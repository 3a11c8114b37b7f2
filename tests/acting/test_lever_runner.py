"""What becomes of decisions that the gate let through; no lever hurts another."""

import time
from concurrent.futures import Future

import pytest

from outrider.acting.lever_runner import LeverRunner
from outrider.acting.lever_thread import LATEST_S, MOST_WAITING
from outrider.model.errors import PluginError
from tests.acting.levers import Blocking, Noting, Raising, row, wait_until


def test_only_what_the_gate_let_through_reaches_the_lever_that_carries_it() -> None:
    starts, preempts = Noting(), Blocking()
    preempts.let_go.set()
    runner = LeverRunner([starts, preempts])
    runner.take(
        [
            row("1", gate="would"), row("2", gate="refused: budget"), row("3", gate=None),
            row("4"), row("5", action="preempt"),
        ]
    )  # fmt: skip
    assert starts.wait_for(1) == [("apply", "4")]
    assert preempts.wait_for(1) == [("apply", "5")]
    assert wait_until(lambda: runner.counts["noting"]["applied"] == 1)
    assert runner.close(5.0) == []
    assert starts.asked == [("apply", "4"), ("withdraw", "4")]


def test_a_lever_that_raises_is_counted_and_asked_for_the_next_job() -> None:
    lever = Raising()
    runner = LeverRunner([lever])
    runner.take([row("1"), row("2"), row("3")])
    assert lever.wait_for(3) == [("apply", "1"), ("apply", "2"), ("apply", "3")]
    assert wait_until(lambda: runner.counts["noting"] == {"applied": 2, "failed": 1})
    assert runner.threads[0].failure == "KeyError: 'no such job'"
    runner.close(5.0)
    assert ("withdraw", "2") in lever.asked, "what failed half-way may have changed something"


def test_a_lever_that_blocks_holds_up_neither_the_caller_nor_other_levers() -> None:
    blocked, other = Blocking(), Noting()
    runner = LeverRunner([blocked, other])
    began_s = time.monotonic()
    runner.take(row(str(n), action="preempt") for n in range(MOST_WAITING + 11))
    runner.take([row("free")])
    assert time.monotonic() - began_s < 5.0
    assert other.wait_for(1) == [("apply", "free")]
    assert blocked.wait_for(1) == [("apply", "0")]
    assert runner.counts["blocking"]["dropped"] in (10, 11)  # whether it had taken the first yet
    assert runner.close(0.1) == ["blocking"]
    assert other.asked[-1] == ("withdraw", "free")
    blocked.let_go.set()


def test_a_change_that_waited_too_long_is_not_made() -> None:
    now_s = 0.0
    lever = Blocking()
    runner = LeverRunner([lever], lambda: now_s)
    runner.take([row("1", action="preempt"), row("2", action="preempt")])
    lever.wait_for(1)
    now_s = LATEST_S + 1.0
    runner.take([row("3", action="preempt")])
    lever.let_go.set()
    assert lever.wait_for(2) == [("apply", "1"), ("apply", "3")]
    assert runner.counts["blocking"]["late"] == 1
    runner.close(5.0)


def test_a_deferral_withdraws_what_lasts_for_its_job_and_nothing_else() -> None:
    lever = Noting()
    runner = LeverRunner([lever])
    runner.take([row("1"), row("2"), row("3", "defer", None), row("1", "defer", None)])
    assert lever.wait_for(3) == [("apply", "1"), ("apply", "2"), ("withdraw", "1")]
    assert wait_until(lambda: runner.counts["noting"]["withdrawn"] == 1)
    runner.take([row("1", "defer", None)])
    runner.close(5.0)
    assert lever.asked[3:] == [("withdraw", "2")]


def test_what_has_lapsed_is_not_withdrawn() -> None:
    now_s = 0.0
    lever = Noting()
    runner = LeverRunner([lever], lambda: now_s)
    runner.take([row("1")])
    lever.wait_for(1)
    now_s = LATEST_S + lever.lease_s
    runner.take([row("2")])
    lever.wait_for(2)
    runner.close(5.0)
    assert lever.asked[2:] == [("withdraw", "2")]


def test_what_waits_behind_a_change_that_hangs_is_not_made_any_more_once_the_daemon_ends() -> None:
    lever = Blocking()
    runner = LeverRunner([lever])
    runner.take([row("1", action="preempt"), row("2", action="preempt")])
    lever.wait_for(1)
    assert runner.close(0.0) == ["blocking"]
    lever.let_go.set()
    assert runner.close(10.0) == []
    assert lever.asked[0] == ("apply", "1")
    assert sorted(lever.asked[1:]) == [("withdraw", "1"), ("withdraw", "2")]
    assert runner.counts["blocking"] == {"applied": 1, "withdrawn": 2}


def test_a_change_that_could_not_be_taken_back_is_taken_back_at_the_end() -> None:
    class Stuck(Noting):
        def withdraw(self, job: str) -> None:
            super().withdraw(job)
            if len(self.asked) == 2:
                raise OSError("the batch system does not answer")

    lever = Stuck()
    runner = LeverRunner([lever])
    runner.take([row("1"), row("1", "defer", None)])
    assert wait_until(lambda: runner.counts["noting"]["failed"] == 1)
    assert runner.close(10.0) == []
    assert lever.asked == [("apply", "1"), ("withdraw", "1"), ("withdraw", "1")]


def test_nothing_is_done_that_could_not_be_recorded() -> None:
    lever = Noting()
    runner = LeverRunner([lever])
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


def test_two_levers_for_one_action_are_refused_by_name() -> None:
    class Other(Noting):
        name = "other"

    with pytest.raises(PluginError, match='"noting" and "other" both carry "start"; right would'):
        LeverRunner([Noting(), Other()])
