"""Configured watts belong to a cluster, independent of the source of its machines."""

from pathlib import Path
from typing import Any

from outrider.model import events as ev
from outrider.model.machines import MachineSpec
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.views.status import status
from tests.fixtures.cores import T, core_of, tell

CONFIG: dict[str, Any] = {
    "adapters": {"logtail": {"paths": ["EventLog"]}},
    "clusters": {"lab": {"match": ["lab-*"], "active_w": 80.0, "idle_w": 40.0}},
}


def joined(reported: MachineSpec, folder: Path) -> MachineSpec:
    """Return the site's specification of a machine that an adapter reported."""
    core = Core(check_config(CONFIG, str(folder)), [])
    core.merger.arrive("pool", [(1.0, ev.JOINED, "pc7", reported)])
    core.engine.feed(core.merger.seen("pool", 2.0))
    spec = core.site.specs[0]
    assert spec is not None
    return spec


def test_a_machine_that_an_adapter_declares_gets_its_clusters_watts(tmp_path: Path) -> None:
    spec = joined(MachineSpec(cluster="lab", cpus=4), tmp_path)
    assert (spec.active_w, spec.idle_w, spec.sleep_w, spec.cpus) == (80.0, 40.0, None, 4)


def test_what_the_adapter_knows_itself_stands(tmp_path: Path) -> None:
    spec = joined(MachineSpec(cluster="lab", active_w=95.0), tmp_path)
    assert (spec.active_w, spec.idle_w) == (95.0, 40.0)


def test_a_machine_known_from_its_jobs_alone_has_watts_for_them_and_none_for_its_idleness() -> None:
    """Check that an inferred machine without a job is not counted as idle."""
    spec = check_config(CONFIG, "test").describe_machine("lab-3")
    assert spec == MachineSpec(cluster="lab", active_w=80.0, idle_w=40.0, inferred=True)
    core = core_of("log", clusters=CONFIG["clusters"])
    tell(core, "log", [(T, ev.STARTED, "1", ("lab-3", 1))], T + 10)
    tell(core, "log", [(T + 3600, ev.COMPLETED, "1", None)], T + 7210)
    energy = status(core, {})["energy_wh"]
    assert (energy["goodput"], energy["idle"]) == (80.0, None)


def test_a_machine_of_a_cluster_that_nobody_configured_stays_unknown(tmp_path: Path) -> None:
    assert joined(MachineSpec(cluster="attic"), tmp_path).active_w is None
