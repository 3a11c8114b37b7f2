"""The alert rules: valid, firing when they should, and about metrics that exist."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards import promql
from tests.peers.presence import require_program

pytestmark = pytest.mark.prometheus

ALERTS = {
    "OutriderDown",
    "OutriderInputStale",
    "OutriderAdapterDown",
    "OutriderEventsRejected",
    "OutriderPolicyFailed",
    "OutriderFellBack",
    "OutriderNotRecording",
    "OutriderBadputRising",
    "OutriderTwinRefuses",
    "OutriderTwinFails",
    "OutriderTwinStale",
    "OutriderStartsMiss",
}


TRIALS = ("outrider.rules_test.yml", "outrider.badput_test.yml", "outrider.evidence_test.yml")


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "dashboards" / "prometheus"


@pytest.fixture
def rules(folder: Path) -> list[dict[str, Any]]:
    loaded = yaml.safe_load((folder / "outrider.rules.yml").read_text())
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def promtool(*words: str, cwd: Path) -> str:
    """Run promtool; its complaint fails the test."""
    program = require_program("promtool", "promtool")
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_and_the_example_configuration_are_valid(folder: Path) -> None:
    said = promtool("check", "rules", "outrider.rules.yml", cwd=folder)
    assert f"{len(ALERTS)} rules found" in said
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
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}, rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}, rule["alert"]


def test_the_rules_ask_only_for_metrics_and_labels_that_exist(rules: list[dict[str, Any]]) -> None:
    named = {use.name for rule in rules for use in promql.uses(rule["expr"])}
    assert len(named) >= len(ALERTS) - 1  # all but whether Outrider answers at all
    assert [error for rule in rules for error in promql.errors(rule["expr"])] == []
