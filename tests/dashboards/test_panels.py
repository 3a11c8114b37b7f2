"""Every panel beside a real Prometheus that scrapes a real daemon: no error, no hole."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import outrider
from tests.dashboards.asking import ask, filled, holes
from tests.dashboards.lint import panels_of
from tests.peers.prometheus import Prometheus
from tests.service.running.process import DaemonProcess
from tests.service.running.small_site import LOG_TABLE, SmallSite

pytestmark = pytest.mark.prometheus

CONFIG = """\
mode = "shadow"
state_dir = "{folder}/state"
listen = "127.0.0.1:0"

[adapters.campus]
type = "simulated"
campus = "{campus}"
speed = 21_600
head_start_s = 1_209_600

[policies.bandit]
[policies.lowest_watts]
"""
"""After two weeks at once, a day of the campus takes four seconds."""

WATTS_OF_ONE = """
[clusters.told]
match = ["10.0.0.1*"]
active_w = 57.0

[clusters.untold]
match = ["10.0.0.2*"]

[policies.bandit]
"""

EVERYTHING = {"cluster": ".*", "vo": ".*", "policy": ".*"}
LIVELY = (
    'count(increase(outrider_job_wait_seconds_count{vo!="all"}[1m]) > 0) >= 3',
    "sum(increase(outrider_evictions_total[1m])) > 0",
    "count(increase(outrider_energy_joules_total[1m]) > 0) >= 10",
    "min(increase(outrider_agreement_total[1m])) > 0",
    "delta(outrider_reward_count[1m]) > 0",
    "increase(outrider_goodput_seconds_total[1m]) > 0",
    "increase(outrider_badput_seconds_total[1m]) > 0",
)
"""What the campus must have shown before its panels are judged."""


@pytest.fixture(scope="module")
def dashboard(repository: Path) -> dict[str, Any]:
    path = repository / "dashboards" / "grafana" / "outrider-site.json"
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


@contextmanager
def watched(program: Path, campus: Path, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that has watched a daemon beside a campus until all of it was lively."""
    config = folder / "outrider.toml"
    config.write_text(CONFIG.format(folder=folder, campus=campus))
    with DaemonProcess(config) as daemon:
        target = daemon.url.removeprefix("http://")
        with Prometheus(program, folder / "prometheus", target) as prometheus:
            for expression in LIVELY:
                prometheus.wait_for(expression, within_s=40)
            yield prometheus


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campus") / "made"
    done = outrider(
        "generate", "campus", "--seed", 1, "--weeks", 10, "--machines", 60, "--clusters", 4,
        "--start", "2010-02-01", "--out", folder,
    )  # fmt: skip
    assert done.code == 0, done
    return folder


@pytest.fixture(scope="module")
def prometheus(
    prometheus_program: Path, campus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """A Prometheus beside a campus whose machines' watts are all known."""
    folder = tmp_path_factory.mktemp("watched")
    with watched(prometheus_program, campus, folder) as running:
        yield running


def test_no_panel_is_empty_beside_a_campus(
    dashboard: dict[str, Any], prometheus: Prometheus
) -> None:
    assert list(holes(dashboard, prometheus, EVERYTHING)) == []


def test_no_panel_is_empty_when_one_cluster_vo_and_policy_are_chosen(
    dashboard: dict[str, Any], prometheus: Prometheus
) -> None:
    busiest = {
        "cluster": "topk(1, sum by (cluster) (increase(outrider_evictions_total[1m])))",
        "vo": "topk(1, sum by (vo) (increase(outrider_job_wait_seconds_count[1m])))",
        "policy": "topk(1, delta(outrider_reward_count[1m]))",
    }
    chosen = {name: prometheus.query(top)[0][0][name] for name, top in busiest.items()}
    assert list(holes(dashboard, prometheus, chosen)) == []


def test_an_empty_panel_would_be_told(dashboard: dict[str, Any], prometheus: Prometheus) -> None:
    told = list(holes(dashboard, prometheus, EVERYTHING | {"cluster": "no-such-cluster"}))
    assert any(line.startswith("Machines by state A shows nothing") for line in told)
    assert any(line.startswith("Energy by purpose A shows nothing") for line in told)
    assert not any(line.startswith("Jobs by state") for line in told)


def test_every_variable_has_values_to_choose_from(
    dashboard: dict[str, Any], prometheus: Prometheus
) -> None:
    asked = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert found, variable["query"]
            asked[variable["name"]] = prometheus.label_values(found[1], found[2])
    assert len(asked["cluster"]) == 4
    assert {"vo0", "vo1", "vo2", "vo3"} <= set(asked["vo"])
    assert asked["policy"] == ["bandit", "lowest_watts"]


def test_a_cluster_of_unknown_watts_makes_no_hole_and_is_told(
    dashboard: dict[str, Any], prometheus_program: Path, tmp_path: Path
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + WATTS_OF_ONE)
    site.log.run([1], machine=1)
    site.log.run([2], machine=2)
    with site.daemon as daemon:
        site.wait_until_applied()
        target = daemon.url.removeprefix("http://")
        with Prometheus(prometheus_program, tmp_path / "prometheus", target) as prometheus:
            prometheus.wait_for("count_over_time(up[1m]) > 1")
            site.log.run(range(3, 100), machine=1)
            site.log.run(range(100, 200), machine=2)
            prometheus.wait_for("increase(outrider_goodput_seconds_total[1m]) > 0")
            ((_, joules),) = prometheus.query("sum(outrider_energy_joules_total)")
            assert math.isnan(joules), "nothing is unknown here: the rest would show nothing"

            shown = {panel["title"]: panel["targets"][0] for panel in panels_of(dashboard)}
            for title in ("Energy by purpose", "Mean power by purpose"):
                found = prometheus.wait_for(f"{filled(shown[title]['expr'], EVERYTHING)} > 0")
                assert [labels for labels, _ in found] == [{"purpose": "goodput"}]
            by_cluster = ask(prometheus, shown["Energy by cluster"], EVERYTHING)
            assert "told" in {labels["cluster"] for labels, values in by_cluster if values[0] > 0}
            ((_, (unknown,)),) = ask(prometheus, shown["Unknown energies"], EVERYTHING)
            assert unknown >= 1
            hidden = [hole for hole in holes(dashboard, prometheus, EVERYTHING) if "number" in hole]
            assert hidden == []
