"""Polling interval of a lever's thread, and the work done without another poll."""

import threading
import time
from collections.abc import Callable

import pytest

from outrider.acting import leases, lever_thread
from outrider.acting.leases import LeaseBounds
from outrider.acting.lever_thread import LeverThread
from tests.acting.levers import Noting, row, wait_until


def thread_of(lever: Noting, is_fresh: Callable[[], bool] = lambda: True) -> LeverThread:
    return LeverThread("pool", lever, LeaseBounds(), is_fresh, time.monotonic)


def test_what_is_due_in_several_calls_is_done_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lever_thread, "_POLL_INTERVAL_S", 3_600.0)
    monkeypatch.setattr(leases, "MAX_BATCH", 2)
    lever = Noting()
    thread = thread_of(lever)
    thread.want(row(str(n)) for n in range(5))
    assert [job for _, job in lever.wait_for(5)] == ["0", "1", "2", "3", "4"]
    thread.give_back(map(str, range(5)))
    assert [what for what, _ in lever.wait_for(10)[5:]] == ["withdraw"] * 5
    assert thread.close(5.0)


def test_while_nothing_is_due_it_looks_now_and_then_and_no_oftener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lever_thread, "_POLL_INTERVAL_S", 0.05)
    looks: list[float] = []

    def is_fresh() -> bool:
        looks.append(time.monotonic())
        return True

    thread = thread_of(Noting(), is_fresh)
    assert wait_until(lambda: len(looks) >= 4)
    assert thread.close(5.0)
    assert looks[3] - looks[0] >= 3 * 0.05, "a thread that never rests would take a core"


def test_a_thread_whose_lever_hangs_keeps_no_process_from_ending() -> None:
    thread = thread_of(Noting())
    [found] = [one for one in threading.enumerate() if one.name == "lever-pool-noting"]
    assert found.daemon
    assert thread.close(5.0)


def test_what_lasts_is_taken_back_as_soon_as_its_job_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lever_thread, "_POLL_INTERVAL_S", 3_600.0)
    lever, made = Noting(), threading.Event()
    lever.lasts = True
    applied: list[int] = []

    def is_fresh() -> bool:
        made.wait(10.0)
        applied.append(thread.counts["applied"])
        return True

    thread = thread_of(lever, is_fresh)
    made.set()
    thread.want([row("1")])
    assert wait_until(lambda: 1 in applied), "it looks once more, and nothing is due"
    thread.forget(["1"])
    assert lever.wait_for(2) == [("apply", "1"), ("withdraw", "1")]
    assert thread.close(5.0)
