"""Faults in the event loop are logged, and not once a second."""

import asyncio

from structlog.testing import capture_logs

from outrider.service.host.logs import RateLimit
from outrider.service.process.app import LoopFaults
from tests.fixtures.clocks import SetClock

NO_DESCRIPTOR = {
    "message": "socket.accept() out of system resource",
    "exception": OSError(24, "Too many open files"),
}


async def test_the_same_fault_is_logged_once_a_minute_with_how_often_it_came() -> None:
    clock = SetClock()
    faults, loop = LoopFaults(clock), asyncio.get_running_loop()
    with capture_logs() as logs:
        for second in range(100):
            clock.now_s = float(second)
            faults(loop, NO_DESCRIPTOR)
    assert [line["more_since"] for line in logs] == [0, int(RateLimit.EVERY_S) - 1]
    assert "out of system resource: OSError" in logs[0]["kind"]
    assert "Too many open files" in logs[0]["error"]


async def test_faults_of_ever_new_kinds_fill_no_memory_and_are_still_told() -> None:
    faults, loop = LoopFaults(SetClock()), asyncio.get_running_loop()
    with capture_logs() as logs:
        for n in range(2 * RateLimit.MAX_KINDS):
            faults(loop, {"message": f"fault {n}"})
    assert len(logs) == RateLimit.MAX_KINDS + 1
    assert logs[-1]["kind"] == "further kinds"
