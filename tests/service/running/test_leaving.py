"""The end of the process: it waits a moment for its threads, and for none that hangs."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from outrider.service.process import app
from outrider.service.process.app import LeavingExecutor, leave, leave_after_error, threads


@pytest.fixture
def hangs() -> Iterator[threading.Event]:
    """Lets a thread go that waits for it, at the end of the test."""
    let_go = threading.Event()
    yield let_go
    let_go.set()


@pytest.fixture(autouse=True)
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the exit codes with which the process would have ended."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(app, "_ENDS_WITHIN_S", 0.1)
    monkeypatch.setattr(app, "_ERROR_GRACE_S", 0.02)
    return codes


def begin(name: str, until: threading.Event, within_s: float = 30.0) -> threading.Thread:
    thread = threading.Thread(target=until.wait, args=(within_s,), name=name)
    thread.start()
    return thread


def test_where_all_threads_end_in_time_the_process_ends_as_usual(
    hangs: threading.Event, left: list[int]
) -> None:
    others = begin("of somebody else", hangs)
    before = threads()
    assert others in before
    begin("ours", hangs, within_s=0.02)
    with capture_logs() as lines:
        assert leave(3, before) == 3
        leave_after_error(before)
    time.sleep(0.05)
    assert (left, lines) == ([], [])


def test_a_thread_that_hangs_is_named_and_the_process_ends_with_its_code(
    hangs: threading.Event, left: list[int]
) -> None:
    before = threads()
    begin("asyncio_7", hangs)
    begin("quick", hangs, within_s=0.0)
    began_s = time.monotonic()
    with capture_logs() as lines:
        leave(3, before)
    assert left == [3]
    assert time.monotonic() - began_s >= 0.1
    assert [(line["event"], line["threads"]) for line in lines] == [
        ("threads_abandoned", ["asyncio_7"])
    ]


def test_several_that_hang_are_waited_for_together(hangs: threading.Event, left: list[int]) -> None:
    before = threads()
    for name in ("asyncio_7", "asyncio_8"):
        begin(name, hangs, within_s=3.0)
    with capture_logs() as lines:
        leave(3, before)
    assert left == [3]
    [line] = lines
    assert sorted(line["threads"]) == ["asyncio_7", "asyncio_8"], "none had the time to end"


def test_after_an_error_there_is_time_to_tell_it_first(
    hangs: threading.Event, left: list[int]
) -> None:
    before = threads()
    begin("asyncio_7", hangs)
    leave_after_error(before)
    for _ in range(1_000):
        if left:
            break
        time.sleep(0.01)
    assert left == [70]


def test_the_loops_own_threads_are_not_waited_for(hangs: threading.Event) -> None:
    executor = LeavingExecutor()
    began = threading.Event()

    def hang() -> None:
        began.set()
        hangs.wait(30.0)

    future, waiting = executor.submit(hang), [executor.submit(hang) for _ in range(64)]
    assert began.wait(10.0)
    executor.shutdown(wait=True, cancel_futures=True)
    assert not future.done(), "it did not wait"
    assert any(each.cancelled() for each in waiting)
    [named, *_] = [t for t in threading.enumerate() if t.name.startswith("asyncio_")]
    assert not named.daemon
