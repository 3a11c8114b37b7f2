"""Daemons of a site, scraped by a real Prometheus until all expected data are there."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from outrider.service.metrics.declarations.evidence import MEASURES
from outrider.service.shapes.values import Score
from outrider.service.twin import starts_file
from outrider.service.twin.twin_file import write_plain
from tests.cli.running import outrider
from tests.fixtures.evidence import PARTS, RATIO, WIDER, starts_told, twin_answered
from tests.peers.prometheus import Prometheus
from tests.service.running.process import DaemonProcess
from tests.service.running.small_site import LOG_TABLE, SmallSite

ROOT: Final = Path(__file__).parents[2] / "dashboards"
CAMPUS: Final = """\
mode = "shadow"
state_dir = "{folder}/state"
listen = "127.0.0.1:0"

[adapters.campus]
type = "simulated"
campus = "{campus}"
speed = 21_600
head_start_s = 1_209_600

[twin]
every_s = 0

[policies.bandit]
[policies.survival]
[policies.fifo]
[policies.sjf]
"""
"""Time scale of the campus: two weeks immediately, then a day in four seconds."""
LIVELY: Final = (
    'count(increase(outrider_job_wait_seconds_count{vo!="all"}[1m]) > 0) >= 3',
    "sum(increase(outrider_evictions_total[1m])) > 0",
    "count(increase(outrider_energy_joules_total[1m]) > 0) >= 10",
    "min(increase(outrider_agreement_total[1m])) > 0",
    'delta(outrider_reward_count{policy="bandit"}[1m]) > 0',
    "increase(outrider_goodput_seconds_total[1m]) > 0",
    "increase(outrider_badput_seconds_total[1m]) > 0",
    'outrider_prediction_skill_ratio{window="recent"} > -Inf',
)
"""Metrics that a campus must have shown before its panels are tested."""
BESIDE_A_LOG: Final = f"""{LOG_TABLE}
[twin]
every_s = 0

[policies.bandit]
[policies.survival]
[policies.fifo]
[policies.sjf]
"""
EVERY_MEASURE: Final = {f"{measure}_ratio": RATIO for measure in MEASURES}


def dashboards(kind: str) -> dict[str, dict[str, Any]]:
    """Return the dashboards of a folder, by file name."""
    return {file.stem: json.loads(file.read_text()) for file in (ROOT / kind).glob("*.json")}


def chosen_of(prometheus: Prometheus, **changed: str) -> dict[str, str]:
    """Return the values of the variables: all of the one scraped site, with some choices."""
    ((site, _),) = prometheus.query("outrider_build_info")
    every = {
        "instance": site["instance"], "cluster": ".*", "vo": ".*", "class": ".*",
        "policy": ".*", "measure": "badput", "price": "0.30",
    }  # fmt: skip
    return every | changed


def tell_evidence(state: Path) -> None:
    """Write a complete twin result, and expected starts, with the present time."""
    parts = {"evictions": 0.02, "waste": 0.03, "overhead": 0.1, "machine_share_l1": 0.05}
    limits = {"evictions": 0.03, "waste": 0.05, "overhead": 0.1, "machine_share_l1": 0.07}
    answer = twin_answered(
        time.time(),
        past={"survival": EVERY_MEASURE, "fifo": EVERY_MEASURE},
        next={"survival": {f"{measure}_ratio": WIDER for measure in MEASURES}},
        fidelity={
            "passed": True, "parts": PARTS | parts,
            "bounds": {"energy": 0.03, "start_delay_s": 600.0} | limits,
        },
    )  # fmt: skip
    write_plain(state, answer)
    scores = {"submission": Score(250, 0.78, 42.5), "hourly": Score(90, 0.5, 99.0)}
    starts_file.write(state, starts_told(time.time(), scores=scores))


def wait_for_evidence(prometheus: Prometheus) -> None:
    """Wait until the data of `tell_evidence` are in a scrape."""
    for name in ("twin_state", "starts_state"):
        prometheus.wait_for(f'outrider_{name}{{outrider_{name}="answered"}} == 1')


def made_campus(folder: Path) -> Path:
    """Generate a campus of 60 machines in four clusters."""
    done = outrider(
        "generate", "campus", "--seed", 1, "--weeks", 10, "--machines", 60, "--clusters", 4,
        "--start", "2010-02-01", "--out", folder,
    )  # fmt: skip
    assert done.code == 0, done
    return folder


@contextmanager
def watched_campus(program: Path, campus: Path, folder: Path) -> Iterator[Prometheus]:
    """Start a Prometheus for the daemon of a campus; wait for all expected data."""
    config = folder / "outrider.toml"
    config.write_text(CAMPUS.format(folder=folder, campus=campus))
    with DaemonProcess(config) as daemon:
        target = daemon.url.removeprefix("http://")
        with Prometheus(program, folder / "prometheus", target) as prometheus:
            tell_evidence(folder / "state")
            wait_for_evidence(prometheus)
            for expression in LIVELY:
                prometheus.wait_for(expression, within_s=60)
            yield prometheus


def thrown_away(site: SmallSite, jobs: Iterable[int]) -> None:
    """Yield events of jobs that are submitted, start, are evicted and wait again."""
    for job in jobs:
        site.log.submit(job)
        site.log.start(job, 1)
        site.log.evict(job)


@contextmanager
def watched_log(program: Path, folder: Path) -> Iterator[Prometheus]:
    """Start a Prometheus for the daemon of an event log in which runs begin and end."""
    site = SmallSite(folder, tables=BESIDE_A_LOG)
    site.log.run([1])
    thrown_away(site, [2])  # its series is born with it; an increase begins with the next
    with site.daemon as daemon:
        site.wait_until_applied()
        target = daemon.url.removeprefix("http://")
        with Prometheus(program, folder / "prometheus", target) as prometheus:
            prometheus.wait_for("count_over_time(up[1m]) > 1")
            tell_evidence(site.state)
            wait_for_evidence(prometheus)
            site.log.run(range(10, 60))
            thrown_away(site, range(60, 70))
            prometheus.wait_for("increase(outrider_goodput_seconds_total[1m]) > 0")
            prometheus.wait_for("increase(outrider_badput_seconds_total[1m]) > 0")
            yield prometheus
