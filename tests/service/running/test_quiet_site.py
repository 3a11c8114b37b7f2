"""The clock of a quiet site with a live source advances."""

import time
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Adapter, Batch
from outrider.journal import Journal
from outrider.model.events import JOINED, STARTED, SUBMITTED, TICK, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import load_adapter
from outrider.service.core.core import CLOCK_EVERY_S, Core
from outrider.service.core.source_state import HANGS_AFTER_S, SourceState
from outrider.service.daemon.sources import seen_until
from outrider.service.journal.restart import replay_inputs
from outrider.service.metrics import expose
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.views import explanation, status
from outrider.service.views.status import utility
from outrider.service.web.endpoints.jobs import jobs
from outrider.service.web.endpoints.machines import machines
from tests.fixtures.cores import RECORDING, T, core_of, packed, tell
from tests.service.running.test_times import SteppedClock

HOUR_S = 3_600.0
WATTS = MachineSpec("lab", 2, active_w=100.0, idle_w=50.0, sleep_w=5.0)
BUSY: list[NamedEvent] = [
    (T, JOINED, "m1", WATTS),
    (T, SUBMITTED, "1", JobSpec()), (T + 1, STARTED, "1", ("m1", 1)),
    (T + 2, SUBMITTED, "2", JobSpec()),
]  # fmt: skip


def adapter_of() -> Adapter:
    """A tail of a log, 5 s late at most."""
    plugin: Any = load_adapter("logtail")
    adapter: Adapter = plugin("log", plugin.settings_type(paths=("/nowhere",)))
    return adapter


def quiet(core: Core, now_s: float, **batch: Any) -> None:
    """Read the source at a time, without new events."""
    empty = Batch(events=[], cursor=None, **batch)
    until_s = seen_until(adapter_of(), empty, now_s)
    feed = core.take("log", empty, until_s)
    while core.step(feed, 100):
        pass


@pytest.mark.parametrize("says", ["until when it was read", "nothing of the time"])
def test_now_and_waits_and_open_runs_go_on_while_the_source_is_quiet(says: str) -> None:
    core = core_of("log")
    tell(core, "log", BUSY, T + 10)
    seen = {"seen_until_s": T + HOUR_S} if says.startswith("until") else {}
    quiet(core, T + HOUR_S, **seen)
    now_s = T + HOUR_S - 5.0  # less the lateness of the adapter
    assert status.status(core, {})["now_s"] == now_s
    rows = {row.job: row for row in jobs(core, 10).jobs}
    assert rows["1"].run_s == now_s - (T + 1)
    assert rows["2"].waiting_s == now_s - (T + 2)
    explained = explanation.explain(core, "2", [])
    assert explained is not None
    assert explained["waiting_s"] == now_s - (T + 2)


def test_energy_of_runs_and_of_idle_machines_goes_on_in_status_and_metrics() -> None:
    core = core_of("log", clusters={"lab": {"open": "always"}})
    tell(core, "log", BUSY, T + 10)
    quiet(core, T + HOUR_S)
    before = status.status(core, {})["energy_wh"]
    quiet(core, T + 2 * HOUR_S)
    after = status.status(core, {})["energy_wh"]
    assert after["open"] - before["open"] == pytest.approx(50.0)
    rests = after["idle"] + after["sleep"] - before["idle"] - before["sleep"]
    assert rests == pytest.approx(25.0)  # half of the machine, idle: it does not sleep
    text = expose(MetricsExporter(core).take(RECORDING, 0.0, None), "text/plain")[0].decode()
    (joules,) = [
        float(line.split()[-1])
        for line in text.splitlines()
        if line.startswith('outrider_energy_joules_total{cluster="lab",purpose="idle"}')
    ]
    assert joules == pytest.approx(after["idle"] * 3600.0)


def test_a_source_whose_information_is_old_does_not_move_the_clock() -> None:
    core = core_of("log")
    tell(core, "log", BUSY, T + 10)
    before_s = core.now_s
    quiet(core, T + HOUR_S, age_s=2_000.0)
    assert core.now_s == before_s
    quiet(core, T + HOUR_S, age_s=1.0)
    assert core.now_s == T + HOUR_S - 5.0


def test_one_of_two_sources_that_hangs_holds_the_clock_where_it_was_seen_last() -> None:
    core = core_of("log", "other")
    tell(core, "log", BUSY, T + 10)
    tell(core, "other", [], T + 20)
    quiet(core, T + HOUR_S)
    assert core.now_s == T + 20


def test_a_source_that_gives_no_sign_of_life_grows_old_and_is_down_in_the_end() -> None:
    clock = SteppedClock()
    source = SourceState("log", "logtail", True, 5.0, clock)
    source.note_batch(Batch(events=[], cursor=None), stale_after_s=300.0)
    clock.now_s += HANGS_AFTER_S / 2
    assert (source.age_s, source.up) == (0.0, True)
    clock.now_s += 250.0
    assert source.age_s == 250.0 + HANGS_AFTER_S / 2
    clock.now_s += 50.0
    assert not source.up


def test_the_moves_of_the_clock_are_few_and_are_fed_again(tmp_path: Path) -> None:
    core = core_of("log")
    with Journal(tmp_path / "journal.sqlite") as journal:
        for n in range(2 * 1800):  # two hours, read every two seconds
            at_s = T + 20 + 2.0 * n
            batch = Batch(events=BUSY if n == 0 else [], cursor=n)
            feed = core.take("log", batch, at_s - 5.0)
            while core.step(feed, 100):
                pass
            entry = core.entry("log", batch)
            if entry is not None:
                journal.append(entry)
        kinds = [event[1] for _, _, event in journal.inputs_after(0)]
        assert kinds.count(TICK) <= 2 * HOUR_S / CLOCK_EVERY_S + 2
        again = core_of("log")
        replay_inputs(again, journal.inputs_after(0))
    assert core.now_s >= T + 2 * HOUR_S - CLOCK_EVERY_S
    assert packed(again.engine.save()) == packed(core.engine.save())


def test_before_the_first_event_now_is_the_wall_clock() -> None:
    core = core_of("log")
    earliest_s = time.time()
    for now_s in (
        core.now_s,
        status.status(core, {})["now_s"],
        jobs(core, 1).now_s,
        machines(core, 1).now_s,
        utility(core).now_s,
    ):
        assert earliest_s <= now_s <= time.time()


def test_a_site_where_nothing_ever_happened_has_the_time_at_which_it_was_read() -> None:
    core = core_of("log")
    quiet(core, T)
    assert core.now_s == T - 5.0
    assert status.status(core, {})["since_s"] == T - 5.0


def test_a_source_whose_clock_is_years_ahead_does_not_take_the_site_there() -> None:
    far = Batch(events=[], cursor=None, seen_until_s=T + 1e9)
    until_s = seen_until(adapter_of(), far, T)
    assert until_s is not None
    assert until_s <= T + HOUR_S
