"""Panels of the evidence, with a real Prometheus and a daemon with results in its folder."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.service.metrics.declarations.evidence import MEASURES
from outrider.service.twin import starts_file
from outrider.service.twin.twin_file import write_plain
from tests.dashboards.asking import ask, holes
from tests.dashboards.lint import panels_of
from tests.dashboards.watched_sites import (
    chosen_of,
    dashboards,
    tell_evidence,
    wait_for_evidence,
)
from tests.fixtures.evidence import starts_told, twin_answered
from tests.peers.prometheus import Prometheus
from tests.service.running.small_site import LOG_TABLE, SmallSite

pytestmark = pytest.mark.prometheus

TABLES = f"""{LOG_TABLE}
[clusters.told]
match = ["10.0.0.1*"]
active_w = 3.6e6

[twin]
every_s = 0

[policies.survival]
[policies.fifo]
[policies.sjf]
"""
"""Settings without a twin process: the result in the folder stays as it is."""
NO_LONGER = ("Candidates in the next window", "Next window: $measure, $policy")


class Evidence:
    """A daemon, a Prometheus that scrapes it, and the dashboards that show evidence.

    Args:
        site: whose daemon runs.
        prometheus: it scrapes the daemon each second.
    """

    def __init__(self, site: SmallSite, prometheus: Prometheus) -> None:
        self.site = site
        self.prometheus = prometheus
        shown = dashboards("grafana")
        self.dashboard = shown["outrider-evidence"]
        self._panels = panels_of(self.dashboard) + panels_of(shown["outrider-waiting"])

    def answer(self, asked_s: float, **changed: Any) -> None:
        """Replace the twin's result by another one."""
        write_plain(self.site.state, twin_answered(asked_s, **changed))

    def wait_for_state(self, name: str, state: str) -> None:
        """Wait until a state set has this state, and so has it in the next scrape, too."""
        self.prometheus.wait_for(f'{name}{{{name}="{state}"}} == 1')

    def now(self, title: str) -> dict[str, list[float]]:
        """Return the values of a panel of figures or a table, by legend."""
        panel = next(panel for panel in self._panels if panel["title"] == title)
        chosen = chosen_of(self.prometheus, measure="energy")
        shown: dict[str, list[float]] = {}
        for target in panel["targets"]:
            for labels, values in ask(self.prometheus, target | {"instant": True}, chosen):
                legend = target["legendFormat"]
                for name, value in labels.items():
                    legend = legend.replace(f"{{{{{name}}}}}", value)
                shown.setdefault(legend, []).extend(values)
        return shown


@pytest.fixture
def evidence(prometheus_program: Path, tmp_path: Path) -> Iterator[Evidence]:
    """Start a site with a complete twin result, expected starts, and work of known watts."""
    site = SmallSite(tmp_path, tables=TABLES)
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        target = daemon.url.removeprefix("http://")
        with Prometheus(prometheus_program, tmp_path / "prometheus", target) as prometheus:
            prometheus.wait_for("outrider_energy_joules_total > 0")
            tell_evidence(site.state)
            site.log.run(range(2, 200))
            prometheus.wait_for("increase((outrider_energy_joules_total > -Inf)[40s:]) > 0")
            wait_for_evidence(prometheus)
            yield Evidence(site, prometheus)


def test_no_panel_is_empty_and_all_figures_are_those_of_the_answer(evidence: Evidence) -> None:
    for measure in MEASURES:
        chosen = chosen_of(evidence.prometheus, measure=measure)
        assert list(holes(evidence.dashboard, evidence.prometheus, chosen)) == []
    one = chosen_of(evidence.prometheus, policy="survival", measure="energy")
    assert list(holes(evidence.dashboard, evidence.prometheus, one)) == []

    states = evidence.now("Candidates")
    assert set(states) == {"survival: answered", "fifo: answered", "sjf: refused"}
    changes = evidence.now("Past window: $measure, $policy")
    assert changes == {
        "low": pytest.approx([-0.28] * 2), "estimate": pytest.approx([-0.24] * 2),
        "high": pytest.approx([-0.2] * 2),
    }  # fmt: skip
    assert evidence.now("Next window: $measure, $policy")["high"] == pytest.approx([0.1])
    assert len(evidence.now("Candidates in the past window")["low"]) == 2 * len(MEASURES)
    kwh = evidence.now("Energy of runs, and at each candidate's ratio")
    assert kwh["survival estimate"][0] / kwh["batch system"][0] == pytest.approx(0.76, rel=0.05)
    [(age_s,), (delay,)] = (
        evidence.now("Age of the answer")["age"],
        evidence.now("Fidelity and its bounds")["start delay"],
    )
    assert 0 < age_s < 120
    assert delay == pytest.approx(0.05)
    change = evidence.now("Change since the forecast's past")
    assert change["load"] == pytest.approx([math.log(9.0 / 8.0)])
    assert change["wasted share"] == pytest.approx([math.log(0.45 / 0.5)])
    assert evidence.now("Coverage of 80 % intervals") == {
        "submission": [0.78], "hourly": [0.5], "80 %": [0.8]
    }  # fmt: skip


def test_what_holds_no_more_is_shown_as_such_and_without_a_figure(evidence: Evidence) -> None:
    expired = twin_answered(time.time())
    expired["present"]["load_cpus"] = 20.0
    write_plain(evidence.site.state, expired)
    evidence.wait_for_state("outrider_twin_forecast_state", "expired")
    assert evidence.now("Forecast") == {"expired": [1.0]}
    for title in NO_LONGER:
        assert evidence.now(title) == {}, title
    assert evidence.now("Past window: $measure, $policy")["low"] == pytest.approx([-0.28])

    evidence.answer(time.time(), refused="evictions are off", past={}, next=None)
    evidence.wait_for_state("outrider_twin_state", "refused")
    assert evidence.now("Answer") == {"refused": [1.0]}
    assert evidence.now("Fidelity and its bounds")["evictions"] == pytest.approx([5 / 3])
    evidence.answer(time.time() - 4 * 86_400.0)
    evidence.wait_for_state("outrider_twin_state", "off")
    assert evidence.now("Age of the answer")["age"][0] > 4 * 86_400.0
    starts_file.write(evidence.site.state, starts_told(time.time(), problem="damaged"))
    evidence.wait_for_state("outrider_starts_state", "failed")
    nothing = (
        "Candidates in the past window", "Past window: $measure, $policy",
        "Fidelity and its bounds", "Scored starts", "Pinball loss",
        "Waiting jobs by expected start", *NO_LONGER,
    )  # fmt: skip
    assert [title for title in nothing if evidence.now(title)] == []
    states = evidence.now("Candidates")
    assert set(states) == {"survival: none", "fifo: none", "sjf: none"}
