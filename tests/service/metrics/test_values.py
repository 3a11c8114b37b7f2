"""Values of the metrics of a core, and a test that each declared metric is set."""

import asyncio
from typing import Any

import pytest

from outrider.api import JobSpec, MachineSpec
from outrider.model.events import JOINED, OWNER_CAME, POWER, STARTED, SUBMITTED
from outrider.service.core.core import Core
from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.metrics.exposition import expose
from outrider.service.metrics.store import MetricStore
from outrider.service.shapes.status import LeverStatus
from tests.fixtures.cores import RECORDING, T, core_of, tell
from tests.fixtures.small_figures import small_figures
from tests.service.running.watched_campus import small_campus, watched

BY_THE_STORE = {"build_info"}
PUBLISHING = {"connected": True, "published": {"decisions": 1}, "behind": 0, "lost": 0}


def test_running_and_queued_jobs_are_counted() -> None:
    """Show the way to test a metric: feed events to a core, and read the line."""
    core = core_of("log")
    events: list[Any] = [(T + n, SUBMITTED, f"{n}.0", JobSpec()) for n in range(3)]
    tell(core, "log", [*events, (T + 5, STARTED, "0.0", ("m1", 1))], T + 60)
    text = expose(MetricsExporter(core).take(RECORDING, 0.0), "text/plain")[0].decode()
    lines = text.splitlines()
    assert 'outrider_jobs{state="queued"} 2.0' in lines
    assert 'outrider_jobs{state="running"} 1.0' in lines


def test_with_one_of_two_adapters_down_only_figures_with_its_part_are_unknown() -> None:
    clusters = {"lab": {"match": ["m*"]}, "farm": {"match": ["n*"]}}
    core = core_of("pool", "cluster", clusters=clusters)
    tell(core, "pool", [(T, JOINED, "m1", MachineSpec("lab"))], T + 60)
    tell(core, "cluster", [(T, JOINED, "n1", MachineSpec("farm"))], T + 60)
    assert {'machines{cluster="lab",state="free"} 1.0', 'jobs{state="queued"} 0.0'} <= lines_of(
        core
    )
    core.sources["pool"].lose("no answer")
    lines = lines_of(core)
    assert {
        'machines{cluster="lab",state="free"} NaN', 'machines{cluster="farm",state="free"} 1.0',
        'jobs{state="queued"} NaN', 'power_watts{source="table"} NaN',
        'adapter_up{adapter="pool"} 0.0', 'adapter_up{adapter="cluster"} 1.0',
    } <= lines  # fmt: skip
    core.sources["cluster"].lose("no answer")
    assert 'machines{cluster="farm",state="free"} NaN' in lines_of(core)


def lines_of(core: Core, **told: Any) -> set[str]:
    """Return the lines of an exposition, without the prefix."""
    text = expose(MetricsExporter(core).take(RECORDING, 0.0, **told), "text/plain")[0].decode()
    return {line.removeprefix("outrider_") for line in text.splitlines()}


@pytest.mark.parametrize(("shares", "vos"), [({}, {"all"}), ({"a": 0.25, "b": 0.75}, {"a", "b"})])
def test_before_anything_happened_the_waits_of_every_declared_vo_are_shown(
    shares: dict[str, float], vos: set[str]
) -> None:
    lines = lines_of(core_of("log", shares=shares))
    counts = [line for line in lines if line.startswith("job_wait_seconds_count")]
    assert set(counts) == {
        f'job_wait_seconds_count{{class="{kind}",vo="{vo}"}} 0.0'
        for kind in ("interactive", "batch")
        for vo in vos
    }


def test_watts_are_those_of_the_table_but_where_a_meter_tells() -> None:
    core = core_of("log")
    lab = MachineSpec("lab", 2, active_w=100.0, idle_w=40.0)
    told: list[Any] = [(T, JOINED, f"m{n}", lab) for n in range(4)]
    told += [(T + 1, STARTED, "1", ("m0", 1)), (T + 1, STARTED, "2", ("m1", 2))]
    told += [(T + 2, POWER, "m2", 55.5), (T + 3, OWNER_CAME, "m3", None)]
    tell(core, "log", told, T + 60)
    lines = lines_of(core)
    assert 'power_watts{source="table"} 270.0' in lines, "70, 100, and 100 of the owner's"
    assert 'power_watts{source="measured"} 55.5' in lines
    tell(core, "log", [(T + 70, JOINED, "m9", MachineSpec("lab"))], T + 80)
    assert 'power_watts{source="table"} NaN' in lines_of(core), "of one nothing is known"


def test_decisions_are_counted_by_action_and_none_twice() -> None:
    core = core_of("log", policies={"fifo": {}})
    tell(core, "log", [(T + n, SUBMITTED, f"{n}.0", JobSpec()) for n in range(7)], T + 60)
    [runner] = core.runners
    runner.starts, runner.moves["preempt"], runner.moves["shrink"] = 3, 2, 1
    runner.decisions = 10
    lines = lines_of(core)
    for action, n in (("start", 3), ("preempt", 2), ("shrink", 1), ("defer", 4)):
        assert f'decisions_total{{action="{action}",mode="shadow",policy="fifo"}} {n}.0' in lines


def test_what_is_broken_is_a_one_and_what_is_not_known_no_number() -> None:
    core = core_of("log", policies={"fifo": {}, "sjf": {}})
    core.runners[0].broken = 'policy "fifo" failed'
    core.policies_without_runner = {"bandit": "it cannot be made"}
    lines = lines_of(core, publishing=PUBLISHING | {"connected": False, "behind": None})
    for policy, failed in (("fifo", 1), ("sjf", 0), ("bandit", 1)):
        assert f'policy_failures_total{{policy="{policy}"}} {failed}.0' in lines
    assert "mqtt_connected 0.0" in lines
    assert "mqtt_behind_rows NaN" in lines
    assert 'adapter_up{adapter="log"} 0.0' in lines
    assert "start_ratio 1.0" in lines


def test_every_metric_that_is_declared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that is never set would stay NaN or 0."""
    told: set[str] = set()
    for method in ("set", "set_observations", "choose_state"):
        inner = getattr(MetricStore, method)

        def noting(self: Any, name: str, *more: Any, inner: Any = inner, **named: Any) -> None:
            told.add(name)
            inner(self, name, *more, **named)

        monkeypatch.setattr(MetricStore, method, noting)
    core = asyncio.run(watched(small_campus(12, 3), policies={"survival": {}}))
    now_s = core.site.now
    tell(core, "campus", [(now_s, STARTED, "never submitted", ("m1", 1))], now_s + 60)
    core.sources["campus"].rejected["malformed"] += 1
    recording = RECORDING | {"rows": {"decisions": 1}}
    lever = LeverStatus("pool", "mark", ["start"], 60.0, {"start": 1}, {"applied": 1}, "")
    MetricsExporter(core).take(recording, 0.0, PUBLISHING, levers=[lever])
    assert [metric.name for metric in METRICS if metric.name not in told | BY_THE_STORE] == []


def test_the_figures_of_a_small_site_are_told_by_cluster_purpose_and_policy() -> None:
    """Worked out by hand in `tests.fixtures.small_figures`."""
    core = small_figures()
    recording = RECORDING | {
        "rows": {"inputs": 17, "decisions": 12}, "failures": 2, "lag_s": 0.5,
        "size_bytes": 4096, "last_seq": 29,
    }  # fmt: skip
    told = {
        "connected": True,
        "published": {"decisions": 3, "evictions": 1},
        "behind": 4,
        "lost": 5,
    }
    text = expose(MetricsExporter(core).take(recording, 0.25, told), "text/plain")[0].decode()
    lines = set(text.splitlines())
    expected = """\
jobs{state="queued"} 2
machines{cluster="lab",state="busy"} 1
machines{cluster="lab",state="free"} 1
machines{cluster="office",state="owner"} 1
machines{cluster="office",state="closed"} 1
machines{cluster="office",state="busy"} 0
job_wait_seconds_count{class="batch",vo="all"} 3
job_wait_seconds_sum{class="batch",vo="all"} 4
job_wait_seconds_bucket{class="batch",le="1.0",vo="all"} 2
job_wait_seconds_bucket{class="batch",le="5.0",vo="all"} 3
goodput_seconds_total 1
badput_seconds_total 30
evictions_total{cluster="lab",reason="owner"} 1
evictions_total{cluster="office",reason="owner"} 0
energy_joules_total{cluster="lab",purpose="goodput"} 50
energy_joules_total{cluster="lab",purpose="badput"} 3000
energy_open_joules{cluster="lab"} 3950
energy_open_joules{cluster="office"} 0
decisions_total{action="start",mode="shadow",policy="fifo"} 6
decisions_total{action="defer",mode="shadow",policy="fifo"} 0
agreement_total{agrees="true",policy="lowest_watts"} 3
agreement_total{agrees="false",policy="lowest_watts"} 0
input_age_seconds{adapter="meters"} 0
adapter_up{adapter="log"} 1
events_total{adapter="log",kind="submitted"} 5
events_total{adapter="log",kind="joined"} 5
events_total{adapter="meters",kind="submitted"} 0
names{kind="cluster"} 2
names{kind="machine"} 5
ledger_rows_total{table="inputs"} 17
ledger_rows_total{table="decisions"} 12
ledger_failures_total 2
ledger_lag_seconds 0.5
ledger_size_bytes 4096
ledger_last_seq 29
mqtt_connected 1
mqtt_published_total{kind="decisions"} 3
mqtt_published_total{kind="evictions"} 1
mqtt_behind_rows 4
mqtt_lost_rows_total 5
mode{outrider_mode="shadow"} 1
mode{outrider_mode="active"} 0
loop_lag_seconds 0.25
"""
    for line in expected.splitlines():
        name, _, value = line.rpartition(" ")
        assert f"outrider_{name} {float(value)}" in lines, line
