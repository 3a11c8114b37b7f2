"""Status, metrics and the sentence say how much of the energy meters measured."""

from typing import Any

import msgspec
import pytest

from outrider.model.events import COMPLETED, JOINED, POWER, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.service.core.core import Core
from outrider.service.metrics import expose
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.views.status import status, utility
from tests.fixtures.cores import T, core_of, tell
from tests.fixtures.plain import plain

RECORDING = {
    "rows": {}, "failures": 0, "lag_s": 0.0, "size_bytes": 0, "last_seq": 0,
    "snapshot_age_s": None,
}  # fmt: skip
DECLARED = MachineSpec("lab", active_w=100.0, idle_w=50.0, sleep_w=5.0)


def site_of(spec: MachineSpec, told: list[NamedEvent], until_s: float) -> Core:
    """Return a core with two equal machines, a job on the first, and other events."""
    core = core_of("log", timezone="UTC")
    events = [
        (T, JOINED, "m1", spec),
        (T, JOINED, "m2", spec),
        (T, SUBMITTED, "1", JobSpec()),
        (T, STARTED, "1", ("m1", 1)),
        *told,
    ]
    tell(core, "log", events, until_s)
    return core


def samples(core: Core) -> dict[str, float]:
    """The metrics as a plain client reads them."""
    text = expose(MetricsExporter(core).take(RECORDING, 0.0))[0].decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name.removeprefix("outrider_"): float(value) for name, _, value in lines}


def test_power_now_is_measured_where_a_reading_holds_and_the_tables_elsewhere() -> None:
    core = site_of(DECLARED, [(T + 60, POWER, "m1", 83.0), (T + 61, POWER, "m2", 41.0)], T + 100)
    shown = samples(core)
    assert shown['power_watts{source="measured"}'] == 83.0 + 41.0
    assert shown['power_watts{source="table"}'] == 0.0


def test_power_of_a_machine_whose_meter_fell_silent_is_the_tables() -> None:
    later: NamedEvent = (T + 1000, POWER, "m2", 41.0)
    core = site_of(DECLARED, [(T + 60, POWER, "m1", 83.0), later], T + 1000)
    shown = samples(core)
    assert shown['power_watts{source="measured"}'] == 41.0
    assert shown['power_watts{source="table"}'] == 100.0


def test_what_meters_measured_stands_beside_the_whole_in_every_figure() -> None:
    told: list[NamedEvent] = [(T + 300, POWER, "m1", 80.0), (T + 600, COMPLETED, "1", None)]
    core = site_of(DECLARED, told, T + 600)
    shown = samples(core)
    place = '{cluster="lab",purpose="goodput"}'
    assert shown["energy_joules_total" + place] == pytest.approx(300 * 100.0 + 300 * 80.0)
    assert shown["energy_measured_joules_total" + place] == pytest.approx(300 * 80.0)
    said = status(core, {})
    asked = plain(utility(core))["site_utility"]
    assert asked["energy_measured_wh"] == said["energy_measured_wh"]
    whole_wh, measured_wh = said["energy_wh"]["goodput"], said["energy_measured_wh"]["goodput"]
    assert (whole_wh, measured_wh) == pytest.approx((54_000 / 3600, 24_000 / 3600))
    idle_j = 600 * 50.0  # of the other machine, by the table
    assert said["energy_measured_ratio"] == pytest.approx(24_000 / (54_000 + idle_j))
    assert said["power_source"] == "mixed"
    assert "(of it measured: 29%)" in said["sentence"]


@pytest.mark.parametrize(
    ("spec", "told", "source", "ratio"),
    [
        (DECLARED, [], "table", 0.0),
        (DECLARED, [(T, POWER, "m1", 80.0), (T, POWER, "m2", 41.0)], "measured", 1.0),
        (MachineSpec("lab"), [], "unknown", None),
    ],
    ids=["without meters", "with a meter all along", "without watts"],
)
def test_the_source_of_the_figures_is_told(
    spec: MachineSpec, told: list[NamedEvent], source: str, ratio: float | None
) -> None:
    core = site_of(spec, [*told, (T + 600, COMPLETED, "1", None)], T + 600)
    said = status(core, {})
    assert (said["power_source"], said["energy_measured_ratio"]) == (source, ratio)


def test_without_a_table_the_energy_a_meter_saw_is_known() -> None:
    told: list[NamedEvent] = [(T, POWER, "m1", 80.0), (T + 600, COMPLETED, "1", None)]
    said = status(site_of(MachineSpec("lab"), told, T + 700), {})
    assert said["energy_wh"]["goodput"] == pytest.approx(600 * 80.0 / 3600)
    assert said["power_source"] == "measured"


def test_readings_are_not_lost_by_a_restart() -> None:
    told: list[NamedEvent] = [(T + 300, POWER, "m1", 80.0), (T + 300, POWER, "m2", 45.0)]
    whole, broken = (site_of(DECLARED, told, T + 310) for _ in range(2))
    restored = core_of("log", timezone="UTC")
    restored.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(broken.save())))
    rest: list[NamedEvent] = [(T + 600, COMPLETED, "1", None)]
    for core in (whole, restored):
        tell(core, "log", rest, T + 700)
    assert _energy(restored) == _energy(whole)
    assert _energy(whole)["measured"]["goodput"] == [300 * 80.0]


def _energy(core: Core) -> dict[str, Any]:
    saved: dict[str, Any] = core.accounting.energy.save()
    return saved
