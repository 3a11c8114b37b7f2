"""Every panel of every dashboard, with a real Prometheus that scrapes a real daemon."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.dashboards.asking import ask, filled, holes
from tests.dashboards.lint import panels_of
from tests.dashboards.watched_sites import (
    chosen_of,
    dashboards,
    made_campus,
    watched_campus,
    watched_log,
)
from tests.peers.prometheus import Prometheus
from tests.service.running.small_site import LOG_TABLE, SmallSite
from tools.dashboard.previews import Site, preview

pytestmark = pytest.mark.prometheus

MAY_BE_EMPTY: Final[dict[tuple[str, str], str]] = {
    ("Active alerts", "A"): "no rules are loaded here, and nothing is wrong",
    ("MQTT backlog", "A"): "nothing is published by MQTT here",
    ("Meters / table", "A"): "no machine here has a meter; the alert with the same query "
    "is tried by promtool",
    ("Journal on disk", "B"): "the journal's size is looked at first after a minute",
}
"""Queries without data on any site, by panel and refId, with the reason."""
EMPTY_OF_SURVIVAL: Final = MAY_BE_EMPTY | {
    ("Mean reward", "A"): "survival learns from runs, not from rewards",
}
"""Queries without data where only that policy is chosen."""
FULL: Final = dashboards("grafana")
BESIDE_A_LOG: Final = dashboards("grafana-event-log")

WATTS_OF_ONE = """
[clusters.told]
match = ["10.0.0.1*"]
active_w = 57.0

[clusters.untold]
match = ["10.0.0.2*"]

[policies.bandit]
"""


@pytest.fixture(scope="module")
def prometheus(
    prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Start a Prometheus for a campus whose machines' watts are all known."""
    folder = tmp_path_factory.mktemp("watched")
    campus = made_campus(folder / "campus")
    with watched_campus(prometheus_program, campus, folder) as running:
        yield running


@pytest.fixture(scope="module")
def beside_a_log(
    prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Start a Prometheus for HTCondor's event log alone, without watts."""
    with watched_log(prometheus_program, tmp_path_factory.mktemp("log")) as running:
        yield running


@pytest.mark.parametrize("name", sorted(FULL))
def test_no_panel_is_empty_beside_a_campus(name: str, prometheus: Prometheus) -> None:
    everything = chosen_of(prometheus)
    assert list(holes(FULL[name], prometheus, everything, MAY_BE_EMPTY)) == []


@pytest.mark.parametrize("name", sorted(FULL))
def test_no_panel_is_empty_when_one_cluster_vo_and_policy_are_chosen(
    name: str, prometheus: Prometheus
) -> None:
    busiest = {
        "cluster": "topk(1, sum by (cluster) (increase(outrider_evictions_total[1m])))",
        "vo": "topk(1, sum by (vo) (increase(outrider_job_wait_seconds_count[1m])))",
    }
    found = {label: prometheus.query(top)[0][0][label] for label, top in busiest.items()}
    chosen = chosen_of(prometheus, policy="survival", measure="energy", **found)
    assert list(holes(FULL[name], prometheus, chosen, EMPTY_OF_SURVIVAL)) == []


@pytest.mark.parametrize("name", sorted(BESIDE_A_LOG))
def test_no_panel_is_empty_beside_an_event_log(name: str, beside_a_log: Prometheus) -> None:
    everything = chosen_of(beside_a_log)
    found = holes(BESIDE_A_LOG[name], beside_a_log, everything, MAY_BE_EMPTY)
    assert list(found) == []


def test_what_may_be_empty_is_there() -> None:
    """Every listed reason still has its panel."""
    queries = {
        (panel["title"], target["refId"])
        for dashboard in FULL.values()
        for panel in panels_of(dashboard)
        for target in panel["targets"]
    }
    assert set(MAY_BE_EMPTY) <= queries


@pytest.mark.parametrize("name", sorted(FULL))
def test_a_preview_shows_what_was_answered(name: str, prometheus: Prometheus) -> None:
    text, _ = preview(FULL[name], Site(prometheus.url, 40.0))
    assert "<h3>Mode</h3>shadow</section>" in text
    charts = [panel for panel in panels_of(FULL[name]) if panel["type"] == "timeseries"]
    assert text.count("<svg") == len(charts)


def test_an_empty_panel_would_be_told(prometheus: Prometheus) -> None:
    chosen = chosen_of(prometheus, cluster="no-such-cluster")
    lines = list(holes(FULL["outrider-site"], prometheus, chosen))
    assert any(line.startswith("Machines by state A shows nothing") for line in lines)
    assert not any(line.startswith("Jobs by state") for line in lines)
    lines = list(holes(FULL["outrider-energy"], prometheus, chosen))
    assert any(line.startswith("Energy by purpose A shows nothing") for line in lines)
    chosen = chosen_of(prometheus, instance="another:9690")
    lines = list(holes(FULL["outrider-site"], prometheus, chosen))
    assert any(line.startswith("Mode A shows nothing") for line in lines)


def test_every_variable_has_values_to_choose_from(prometheus: Prometheus) -> None:
    asked = {}
    site = chosen_of(prometheus)["instance"]
    for dashboard in FULL.values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                query = variable["query"]["query"].replace("$instance", site)
                found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
                assert found, query
                asked[variable["name"]] = set(prometheus.label_values(found[1], found[2]))
    assert asked["instance"] == {site}
    assert len(asked["cluster"]) == 4
    assert {"vo0", "vo1", "vo2", "vo3"} <= asked["vo"]
    assert asked["class"] == {"interactive", "batch"}
    assert asked["policy"] == {"bandit", "survival", "fifo", "sjf"}


def test_a_cluster_of_unknown_watts_makes_no_hole_and_is_told(
    prometheus_program: Path, tmp_path: Path
) -> None:
    dashboard = FULL["outrider-energy"]
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

            everything = chosen_of(prometheus)
            shown = {panel["title"]: panel["targets"][0] for panel in panels_of(dashboard)}
            for title in ("Energy by purpose", "Mean power by purpose"):
                found = prometheus.wait_for(f"{filled(shown[title]['expr'], everything)} > 0")
                assert [labels for labels, _ in found] == [{"purpose": "goodput"}]
            by_cluster = ask(prometheus, shown["Energy by cluster"], everything)
            assert "told" in {labels["cluster"] for labels, values in by_cluster if values[0] > 0}
            ((_, (unknown,)),) = ask(prometheus, shown["Unknown energies"], everything)
            assert unknown >= 1
            hidden = [hole for hole in holes(dashboard, prometheus, everything) if "number" in hole]
            assert hidden == []
