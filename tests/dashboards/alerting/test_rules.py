"""The alert rules: valid, firing when they should, and about metrics that exist."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards import promql
from tests.peers.presence import require_program
from tools.dashboard.building import DOCS, MODE_CHANGED

pytestmark = pytest.mark.prometheus

ABOUT_THE_SITE = {
    "OutriderBadputRising",
    "OutriderHoldSpike",
    "OutriderNothingStarts",
    "OutriderVoStarves",
    "OutriderBlackHole",
    "OutriderPowerUnknown",
    "OutriderPowerImplausible",
    "OutriderMetersSilent",
}
ALERTS = ABOUT_THE_SITE | {
    "OutriderDown",
    "OutriderInputStale",
    "OutriderAdapterDown",
    "OutriderEventsRejected",
    "OutriderPolicyFailed",
    "OutriderFellBack",
    "OutriderNotRecording",
    "OutriderTwinRefuses",
    "OutriderTwinFails",
    "OutriderTwinStale",
    "OutriderStartsMiss",
}


TRIALS = (
    "outrider.rules_test.yml",
    "outrider.badput_test.yml",
    "outrider.evidence_test.yml",
    "outrider.power_test.yml",
    "outrider.site_test.yml",
)
ANNOTATIONS = {"summary", "description", "runbook"}


@pytest.fixture
def folder(repository: Path) -> Path:
    """Return the folder of the Prometheus rules."""
    return repository / "dashboards" / "prometheus"


@pytest.fixture
def rules(folder: Path) -> list[dict[str, Any]]:
    """Return all rules of the file."""
    loaded = yaml.safe_load((folder / "outrider.rules.yml").read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def promtool(*words: str, cwd: Path) -> str:
    """Run promtool; its error fails the test."""
    program = require_program("promtool", "promtool")
    done = subprocess.run(
        [program, *words],
        cwd=cwd, capture_output=True, text=True, check=False,
        env={**os.environ, "GOGC": "400"},  # it has memory enough to look for garbage less often
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_and_the_example_configuration_are_valid(folder: Path) -> None:
    output = promtool("check", "rules", "outrider.rules.yml", cwd=folder)
    assert f"{len(ALERTS)} rules found" in output
    assert "SUCCESS" in promtool("check", "config", "scrape.example.yml", cwd=folder)


@pytest.mark.parametrize("trial", TRIALS)
def test_each_alert_fires_when_it_should_and_not_before(folder: Path, trial: str) -> None:
    assert "SUCCESS" in promtool("test", "rules", trial, cwd=folder)


def test_of_each_alert_both_are_tried(folder: Path) -> None:
    tried: set[tuple[str, bool]] = set()
    for trial in TRIALS:
        for case in yaml.safe_load((folder / trial).read_text())["tests"]:
            tried |= {(t["alertname"], bool(t["exp_alerts"])) for t in case["alert_rule_test"]}
    assert tried == {(alert, fires) for alert in ALERTS for fires in (True, False)}


def test_who_is_called_reads_what_happened_and_what_to_do(rules: list[dict[str, Any]]) -> None:
    assert {rule["alert"] for rule in rules} == ALERTS
    for rule in rules:
        annotations = rule["annotations"].keys() - {"runbook_url"}
        assert annotations == ANNOTATIONS, rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}, rule["alert"]


def test_each_alert_about_the_site_has_a_part_of_the_page(
    repository: Path, rules: list[dict[str, Any]]
) -> None:
    page = (repository / "docs" / "alerts.md").read_text()
    addresses = {rule["alert"]: rule["annotations"].get("runbook_url") for rule in rules}
    linked = {alert: url for alert, url in addresses.items() if url is not None}
    assert linked == {alert: f"{DOCS}/alerts.html#{alert.lower()}" for alert in ABOUT_THE_SITE}
    for alert in ABOUT_THE_SITE:
        part = page.partition(f"\n### {alert}\n")[2].partition("\n##")[0]
        for heading in ("**Means.**", "**Look first.**", "**Harmless when.**", "**Thresholds.**"):
            assert heading in part, f"{alert}: {heading}"
        assert "```sh" in part, f"{alert}: nothing to type"
    assert all(f"`{alert}`" in page for alert in ALERTS)


def test_the_rules_ask_only_for_metrics_and_labels_that_exist(rules: list[dict[str, Any]]) -> None:
    named = {use.name for rule in rules for use in promql.uses(rule["expr"])}
    assert len(named) >= len(ALERTS) - 1  # all but whether Outrider answers at all
    assert [error for rule in rules for error in promql.errors(rule["expr"])] == []


def test_a_change_of_the_mode_is_marked_also_over_a_restart(folder: Path, tmp_path: Path) -> None:
    """The note on all dashboards lasts five minutes, in any mode."""
    asked = MODE_CHANGED.replace("$instance", "head:9690")
    labels = 'instance="head:9690"'
    trial = {
        "rule_files": [str(folder / "outrider.rules.yml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [  # it is gone while it restarts, in the tenth and eleventh minute
                    {
                        "series": f'outrider_mode{{outrider_mode="shadow", {labels}}}',
                        "values": "1x9 stale stale 0x20",
                    },
                    {
                        "series": f'outrider_mode{{outrider_mode="canary", {labels}}}',
                        "values": "0x9 stale stale 1x20",
                    },
                ],
                "promql_expr_test": [
                    {
                        "expr": asked,
                        "eval_time": f"{minute}m",
                        "exp_samples": [
                            {
                                "labels": f'outrider_mode{{outrider_mode="canary", {labels}}}',
                                "value": 1,
                            }
                        ]
                        if is_marked
                        else [],
                    }
                    for minute, is_marked in ((9, False), (12, True), (16, True), (17, False))
                ],
            }
        ],
    }
    (tmp_path / "trial.yml").write_text(yaml.safe_dump(trial))
    assert "SUCCESS" in promtool("test", "rules", "trial.yml", cwd=tmp_path)
