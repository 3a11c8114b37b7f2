"""Complete path of an alert: a daemon, Prometheus with the rules, Alertmanager, a webhook."""

import re
from pathlib import Path

import pytest

from tests.peers.alertmanager import Alertmanager, require_alertmanager
from tests.peers.prometheus import Prometheus
from tests.service.running.small_site import LOG_TABLE, SmallSite

pytestmark = pytest.mark.prometheus

NO_TWIN = """
[twin]
every_s = 0
"""
"""The first twin result takes longer than these rules wait."""


def impatient(shipped: Path, folder: Path) -> Path:
    """Write a copy of the shipped rules, with every `for` of one second."""
    text, replaced = re.subn(r"(?m)^( +for:) \d+[smhdw]$", r"\1 1s", shipped.read_text())
    assert replaced == text.count(" for:") > 0
    copy = folder / "outrider.rules.yml"
    copy.write_text(text)
    return copy


def test_the_person_on_call_hears_of_a_lost_log_of_its_return_and_of_a_dead_daemon(
    repository: Path, prometheus_program: Path, tmp_path: Path
) -> None:
    alertmanager_program = require_alertmanager()
    rules = impatient(repository / "dashboards/prometheus/outrider.rules.yml", tmp_path)
    site = SmallSite(tmp_path, head="stale_after_s = 1.0\n", tables=LOG_TABLE + NO_TWIN)
    site.log.run([1, 2])
    with site.daemon as daemon, Alertmanager(alertmanager_program, tmp_path / "am") as alertmanager:
        site.wait_until_applied()
        target = daemon.url.removeprefix("http://")
        with Prometheus(
            prometheus_program, tmp_path / "prometheus", target,
            rules=[rules], alertmanager=alertmanager.address,
        ) as prometheus:  # fmt: skip
            prometheus.wait_for('outrider_adapter_up{adapter="log"} == 1')
            prometheus.wait_for("count_over_time(up[1m]) > 5")  # rules were asked meanwhile
            assert alertmanager.arrived == []

            away = site.log.path.rename(tmp_path / "taken-away")
            lost = alertmanager.wait_for({"alertname": "OutriderAdapterDown"})
            assert lost["labels"]["adapter"] == "log"
            assert lost["labels"]["instance"] == target
            assert lost["annotations"]["summary"] == "Outrider cannot reach log"
            assert "`outrider status` shows the reason" in lost["annotations"]["runbook"]
            assert [a["labels"]["alertname"] for a in alertmanager.arrived] == [
                "OutriderAdapterDown"
            ]

            away.rename(site.log.path)
            alertmanager.wait_for({"alertname": "OutriderAdapterDown"}, "resolved")

            daemon.kill()
            dead = alertmanager.wait_for({"alertname": "OutriderDown"})
            summary = f"Prometheus gets no metrics from Outrider at {target}"
            assert dead["annotations"]["summary"] == summary
