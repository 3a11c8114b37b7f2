"""Retention while the clock or a record is wrong: it neither stops nor takes too much."""

from pathlib import Path

from outrider.journal import Entry
from outrider.model.decisions import DecisionRow
from outrider.model.events import SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.config.loaded import check_config
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.journal.recording import Recording
from outrider.service.process.supervisor import prune
from tests.fixtures.cores import tell

NOW_S = 1_795_255_200.0
DAY_S = 86_400.0
YEAR_S = 365.25 * DAY_S


class Clock:
    """Unix seconds that a test sets."""

    now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


def daemon(folder: Path, clock: Clock) -> DaemonState:
    log = {"type": "logtail", "paths": [str(folder / "EventLog")]}
    given = {"state_dir": str(folder), "retention_days": 30.0, "adapters": {"log": log}}
    state = DaemonState(check_config(given, "test"), Recording(folder), clock)
    state.history_read.set()
    return state


async def record(state: DaemonState, at_s: float) -> None:
    """One input and one decision of a time, and the site's time goes there."""
    row = DecisionRow(at_s, "1", "defer", None, 1, "hold", "bandit", "shadow")
    inputs = [("log", (at_s, SUBMITTED, f"{at_s:.0f}", JobSpec()))]
    await state.recording.submit(Entry(inputs=inputs, decisions=[row]))
    tell(state.core, "log", [], at_s)
    assert await state.snapshot()


def rows(state: DaemonState) -> int:
    return int(state.recording._writer.run(lambda j: len(list(j.inputs_after(0)))).result(10))


async def test_a_leap_of_ten_years_takes_nothing_away(tmp_path: Path) -> None:
    clock = Clock()
    state = daemon(tmp_path, clock)
    for n in range(5):
        clock.now_s = NOW_S + 300 * n
        await record(state, clock.now_s)
    clock.now_s += 10 * YEAR_S
    for _ in range(5):
        clock.now_s += 300
        await record(state, clock.now_s)
    assert state.core.site.now > NOW_S + 9 * YEAR_S
    await prune(state)
    assert rows(state) == 10
    assert state.recording.snapshots.dated_until(NOW_S + 300 * 5)
    clock.now_s += 8 * DAY_S  # a clock that is believed for a week was right
    for _ in range(4):
        clock.now_s += 300
        await record(state, clock.now_s)
    await prune(state)
    assert rows(state) == 9
    state.recording.close()


async def test_a_row_of_2099_does_not_end_the_retention_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    state = daemon(tmp_path, clock)
    wrong = DecisionRow(NOW_S + 73 * YEAR_S, "1", "defer", None, 1, "hold", "bandit", "shadow")
    event = (NOW_S + 73 * YEAR_S, SUBMITTED, "2099", JobSpec())
    await state.recording.submit(Entry(inputs=[("log", event)], decisions=[wrong]))
    await record(state, NOW_S)
    for day in range(50):
        clock.now_s = NOW_S + day * DAY_S
        await record(state, clock.now_s)
    await prune(state)
    assert 30 <= rows(state) <= 35
    state.recording.close()
