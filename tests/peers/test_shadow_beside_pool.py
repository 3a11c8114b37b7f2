"""The whole of it: a real pool, owners that return, Outrider in shadow, a real Prometheus."""

import re
from collections import Counter
from pathlib import Path

import pytest

from outrider.api import ReaderOptions, Reading
from outrider.journal import Journal
from outrider.model.events import KIND_NAMES, TICK, NamedEvent
from outrider.plugins.finding import load_reader
from tests.peers.pool import HTCondorPool
from tests.peers.prometheus import Prometheus
from tests.service.running.process import DaemonProcess

pytestmark = [pytest.mark.htcondor, pytest.mark.prometheus]

JOBS = 12
KINDS = {0: "submitted", 1: "started", 4: "evicted", 5: "completed"}
CONFIG = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0

[adapters.pool]
type = "logtail"
paths = ["{log}"]

[clusters.A]
match = ["m1@*", "m2@*"]
active_w = 57.0

[clusters.B]
match = ["m3@*", "m4@*"]
active_w = 114.0
"""


def write_config(folder: Path, log: Path) -> Path:
    """Outrider beside this log, with the pool's two clusters."""
    path = folder / "outrider.toml"
    path.write_text(CONFIG.format(state=folder / "state", log=log))
    return path


def counted(log: Path, clusters: set[int]) -> Counter[str]:
    """Events of these job clusters in a text event log, by a scanner that knows nothing else."""
    heads = re.findall(r"^(\d{3}) \((\d+)\.\d+\.\d+\) ", log.read_text(), re.MULTILINE)
    return Counter(
        KINDS[int(code)]
        for code, cluster in heads
        if int(code) in KINDS and int(cluster) in clusters
    )


def read_all(path: Path) -> list[NamedEvent]:
    """A whole log through the reader that ingest and logtail use."""
    reader = load_reader("htcondor")(ReaderOptions())
    reading: Reading = reader.read(path.read_bytes(), final=True)
    assert reading.rejected == {}
    return reading.events


def told(events: list[NamedEvent], clusters: set[int]) -> Counter[tuple[object, ...]]:
    """Count events by kind, job, whole second and extra, like `events_sha256`."""
    return Counter(
        (KIND_NAMES[kind], job, int(time_s), extra if isinstance(extra, tuple | str) else None)
        for time_s, kind, job, extra in events
        if int(job.rpartition("#")[2].split(".")[0]) in clusters
    )


def test_outrider_sees_every_event_of_a_real_pool_once_and_prometheus_sees_outrider(
    htcondor_pool: HTCondorPool, prometheus_program: Path, tmp_path: Path
) -> None:
    config = write_config(tmp_path, htcondor_pool.event_log)
    with DaemonProcess(config) as daemon:
        target = daemon.url.removeprefix("http://")
        with Prometheus(prometheus_program, tmp_path / "prometheus", target) as prometheus:
            clusters = {
                htcondor_pool.submit_sleepers(JOBS, 6, user="alice", xml_log="alice.xml"),
                htcondor_pool.submit_sleepers(JOBS, 4, user="bob", xml_log="bob.xml"),
            }
            first = min(clusters)
            for machine in ("m1", "m3"):
                htcondor_pool.evict(machine, lambda: len(htcondor_pool.events(4)))
            for machine in ("m1", "m3"):
                htcondor_pool.owner_leaves(machine)
            htcondor_pool.wait_until(
                "all jobs completed",
                lambda: counted(htcondor_pool.event_log, clusters)["completed"] == 2 * JOBS,
                within_s=180,
            )
            status = daemon.wait_until(
                "all jobs completed", lambda s: s["jobs"]["completed"] == 2 * JOBS, within_s=30
            )

            expected = counted(htcondor_pool.event_log, clusters)
            seen = status["adapters"][0]
            assert {kind: seen["events"].get(kind, 0) for kind in KINDS.values()} == dict(expected)
            assert seen["duplicates"] == 0
            assert seen["rejected"] == {}
            assert status["repairs"] == {}
            assert seen["inferred"] is True
            assert status["evictions"]["unknown"] == expected["evicted"]
            assert status["energy_wh"]["goodput"] > 0
            assert status["energy_wh"]["idle"] is None
            assert status["jobs"]["queued"] == status["jobs"]["running"] == 0
            bandit = status["policies"][0]
            assert (bandit["name"], bandit["role"]) == ("bandit", "shadow")
            assert bandit["reward_n"] >= expected["completed"] + expected["evicted"]
            assert bandit["agreed"] + bandit["disagreed"] > 0
            assert {c["name"] for c in status["clusters"]} >= {"A", "B"}

            explained = daemon.get(f"/api/v1/explain/{first}.0")
            assert explained["source"] == "ledger"

            for kind, n in expected.items():
                prometheus.wait_for(f'outrider_events_total{{adapter="pool",kind="{kind}"}} == {n}')
            prometheus.wait_for('outrider_mode{outrider_mode="shadow"} == 1')
            assert daemon.stop() == 0

    with Journal(tmp_path / "state" / "journal.sqlite", read_only=True) as journal:
        inputs = [event for _, _, event in journal.inputs_after(0) if event[1] != TICK]
    kept = Counter(KIND_NAMES[event[1]] for event in inputs)
    assert {kind: kept[kind] for kind in KINDS.values()} == dict(expected)

    text = told(read_all(htcondor_pool.event_log), clusters)
    users = [read_all(htcondor_pool.work_dir / name) for name in ("alice.xml", "bob.xml")]
    assert sum((told(events, clusters) for events in users), Counter()) == text
    assert told(inputs, clusters) == text
