"""A user makes up VOs, users, machines, machine groups and classes without end."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outrider.engine.ingest.bounded_names import OTHER, NameLimits
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.service.core.core import Core
from outrider.service.metrics import expose
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.views.status import status
from tests.fixtures.cores import RECORDING, T, core_of, packed, tell
from tests.fixtures.counted import instructions

DAY_S = 86_400.0
Told = Callable[[int], list[NamedEvent]]


def a_job(n: int, at_s: float, **spec: str) -> list[NamedEvent]:
    job = f"j{n}.{at_s:.0f}"
    machine = spec.pop("machine", "m")
    return [
        (at_s, ev.SUBMITTED, job, JobSpec(**spec)),  # type: ignore[arg-type]
        (at_s + 1, ev.STARTED, job, (machine, 1, "slot1")),
        (at_s + 2, ev.COMPLETED, job, None),
    ]


KINDS: dict[str, Callable[[int, float], list[NamedEvent]]] = {
    "vo": lambda n, at_s: a_job(n, at_s, vo=f"vo{n}"),
    "user": lambda n, at_s: a_job(n, at_s, user=f"user{n}"),
    "class": lambda n, at_s: a_job(n, at_s, job_class=f"class{n}"),
    "machine": lambda n, at_s: a_job(n, at_s, machine=f"m{n}"),
    "cluster": lambda n, at_s: [(at_s, ev.JOINED, "m", MachineSpec(cluster=f"c{n}"))],
    "eligible": lambda n, at_s: [(at_s, ev.ELIGIBLE, f"e{n}", ("m",))],
}


def fed(kind: str, names: range, core: Core | None = None, from_s: float = T) -> Core:
    """Return a core that has seen so many names of a kind."""
    core = core or core_of("log", policies={"bandit": {}})
    events = [event for n in names for event in KINDS[kind](n, from_s + 5 * n)]
    tell(core, "log", events, from_s + 5 * names.stop)
    return core


def small(**most: int) -> Core:
    """Return a core that follows few names."""
    core = core_of("log", policies={"bandit": {}})
    bounds = core.names.by_kind
    for kind, n in most.items():
        bounds[kind].most = n
    return core


@pytest.mark.parametrize("kind", KINDS)
def test_four_times_the_names_are_four_times_the_work(kind: str) -> None:
    few, many = (core_of("log", policies={"bandit": {}}) for _ in range(2))
    few_n = instructions(lambda: fed(kind, range(40), few))
    many_n = instructions(lambda: fed(kind, range(160), many))
    assert many_n < 6 * few_n
    for shown in (partial(status, extra={}), exposed):
        few_n, many_n = (instructions(partial(shown, core)) for core in (few, many))
        assert many_n < 6 * few_n


def exposed(core: Core) -> str:
    """Return the metrics of a core as text."""
    return expose(MetricsExporter(core).take(RECORDING, 0.0))[0].decode()


@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_bound_nothing_grows(kind: str) -> None:
    core, few = small(**{kind: 8}), small(**{kind: 8})
    fed(kind, range(160), core)
    for n in range(160):  # as many events, but of eight names
        tell(few, "log", KINDS[kind](n % 8, T + 5 * n), T + 5 * n + 5)
    assert len(core.names.by_kind[kind]) == 8
    assert core.names.by_kind[kind].folded >= 120
    assert len(json.dumps(status(core, {}))) < len(json.dumps(status(few, {}))) + 1_000
    assert len(packed(core.save()["engine"])) < len(packed(few.save()["engine"])) + 1_000


def test_the_bounds_are_generous_and_the_status_stays_small() -> None:
    """The most that a site names in the status: VOs and machine groups, all at their bound."""
    core = fed("vo", range(1_200))
    fed("cluster", range(1_200), core, from_s=T + 10_000.0)
    told = status(core, {})
    assert len(told["wait_s"]["by_vo"]) == 1_001
    assert told["names"]["vo"] == {"named": 1_000, "most": 1_000, "folded": 200}
    assert len(json.dumps(told)) < 1_000_000
    assert NameLimits().user == 10_000
    assert NameLimits().machine == 50_000


def test_what_is_beyond_the_bound_is_counted_as_other_and_said() -> None:
    core = small(vo=3)
    fed("vo", range(10), core)
    told = status(core, {})
    assert set(told["wait_s"]["by_vo"]) == {"vo0", "vo1", "vo2", OTHER}
    assert told["wait_s"]["by_vo"][OTHER]["n"] == 7
    assert told["wait_s"]["all"]["n"] == 10, "totals stay whole"
    assert sum(told["fairness"]["share"].values()) == pytest.approx(1.0)
    assert core.notes() == ['7 events named VOs beyond the limit of 3: they are counted as "other"']
    text = exposed(core)
    assert 'outrider_names_folded_total{kind="vo"} 7.0' in text
    assert 'outrider_names{kind="vo"} 3.0' in text
    assert 'outrider_vo_share_ratio{vo="other"}' in text


def test_declared_vos_are_named_however_late_they_come() -> None:
    core = core_of("log", shares={"late": 1.0}, policies={"bandit": {}})
    core.names.vo.most = 3
    fed("vo", range(10), core)
    tell(core, "log", a_job(1, T + 100, vo="late"), T + 200)
    assert "late" in status(core, {})["wait_s"]["by_vo"]


def test_a_name_not_seen_for_the_retention_time_makes_room_when_room_is_needed() -> None:
    core = small(vo=3)
    fed("vo", range(3), core)
    totals = status(core, {})
    fed("vo", range(1, 4), core, from_s=T + 91 * DAY_S)
    told = status(core, {})
    assert set(told["wait_s"]["by_vo"]) == {"vo1", "vo2", "vo3", OTHER}, "vo0 was not seen"
    assert told["wait_s"]["by_vo"][OTHER]["n"] == 1
    assert told["wait_s"]["all"]["n"] == totals["wait_s"]["all"]["n"] + 3
    assert told["goodput_s"] == totals["goodput_s"] + 3.0
    assert sum(told["fairness"]["share"].values()) == pytest.approx(1.0)
    assert sum(told["fairness"]["target"].values()) == pytest.approx(1.0)


def test_the_metrics_of_a_forgotten_vo_go_into_those_of_other() -> None:
    core = small(vo=3)
    exporter = MetricsExporter(core)
    fed("vo", range(3), core)
    exporter.take(RECORDING, 0.0)
    fed("vo", range(1, 4), core, from_s=T + 91 * DAY_S)
    text = expose(exporter.take(RECORDING, 0.0))[0].decode()
    assert 'job_wait_seconds_count{class="batch",vo="other"} 1.0' in text
    assert 'vo="vo0"' not in text
    assert 'job_wait_seconds_count{class="batch",vo="vo1"} 2.0' in text
    assert 'outrider_metrics_refused_total{reason="decreased"} 0.0' in text


def test_a_vo_with_a_job_here_is_not_forgotten() -> None:
    core = small(vo=2)
    tell(core, "log", [(T, ev.SUBMITTED, "waits", JobSpec(vo="slow"))], T + 1)
    fed("vo", range(2), core)
    fed("vo", range(5, 6), core, from_s=T + 91 * DAY_S)
    assert "slow" in status(core, {})["wait_s"]["by_vo"]


def test_the_number_of_a_forgotten_machine_is_another_s() -> None:
    core = small(machine=3)
    fed("machine", range(3), core)
    fed("machine", range(10, 11), core)
    assert core.site.machines_n == 4, "three, and the one that stands for others"
    fed("machine", range(20, 23), core, from_s=T + 91 * DAY_S)
    names = core.merger.normaliser.machine_names
    assert core.site.machines_n == 4
    assert sorted(names) == ["m20", "m21", "m22", OTHER]
    assert not core.merger.set_aside["fault"]


def test_runs_on_machines_beyond_the_bound_are_counted_and_never_chosen() -> None:
    core = small(machine=1)
    fed("machine", range(5), core)
    other = core.merger.normaliser.machine_names.index(OTHER)
    assert core.site.cpus_of(other) == 0, "no policy may start anything there"
    assert core.accounting.completed == 5
    running = [event for event in a_job(9, T + 100, machine="m9") if event[1] != ev.COMPLETED]
    tell(core, "log", running, T + 200)
    assert status(core, {})["jobs"]["running"] == 1
    assert not core.merger.set_aside["fault"]


def test_names_are_the_same_after_a_restart(tmp_path: Path) -> None:
    core, twin = small(vo=3, machine=2, user=2), small(vo=3, machine=2, user=2)
    for kind in ("vo", "machine", "user"):
        fed(kind, range(6), core, from_s=T + 100 * len(kind))
    twin.restore(core.save())
    assert packed(twin.save()) == packed(core.save())
    for each in (core, twin):
        fed("vo", range(2, 9), each, from_s=T + 95 * DAY_S)
        fed("machine", range(4, 9), each, from_s=T + 96 * DAY_S)
    assert packed(twin.save()) == packed(core.save())
    assert status(core, {})["names"] == status(twin, {})["names"]


def test_a_snapshot_from_before_the_bound_is_taken_over_and_shrinks() -> None:
    old, new = small(vo=50, machine=50), small(vo=3, machine=3)
    fed("vo", range(20), old)
    fed("machine", range(20), old, from_s=T + 1_000.0)
    tell(old, "log", [(T + 2_000.0, ev.SUBMITTED, "waits", JobSpec(vo="vo7"))], T + 2_001.0)
    saved = old.save()
    saved["merger"]["tracker"]["names"] = None
    new.restore(saved)
    assert len(status(new, {})["wait_s"]["by_vo"]) == 21, "all that is known stays at first"
    fed("vo", range(30, 32), new, from_s=T + 3_000.0)
    fed("machine", range(30, 32), new, from_s=T + 4_000.0)
    told = status(new, {})
    assert set(told["wait_s"]["by_vo"]) == {"vo7", "vo30", "vo31", "all", OTHER}
    assert told["wait_s"]["all"]["n"] == old.accounting.starts + 4
    assert told["names"]["machine"]["named"] <= 3
    assert not new.merger.set_aside["fault"]
