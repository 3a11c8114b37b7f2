"""The alert rules: valid, firing when they should, and about metrics that exist."""

import re
import subprocess
from pathlib import Path

import pytest

from outrider.service.metrics.declarations import METRICS
from peers.presence import require_program

pytestmark = pytest.mark.prometheus


def promtool(*words: str, cwd: Path) -> str:
    """Run promtool; its complaint fails the test."""
    program = require_program("promtool", "promtool")
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_and_the_example_configuration_are_valid(repository: Path) -> None:
    folder = repository / "dashboards" / "prometheus"
    assert "3 rules found" in promtool("check", "rules", "outrider.rules.yml", cwd=folder)
    assert "SUCCESS" in promtool("check", "config", "scrape.example.yml", cwd=folder)


def test_each_alert_fires_when_it_should_and_not_before(repository: Path) -> None:
    folder = repository / "dashboards" / "prometheus"
    assert "SUCCESS" in promtool("test", "rules", "outrider.rules_test.yml", cwd=folder)


def test_the_rules_only_name_metrics_that_exist(repository: Path) -> None:
    rules = (repository / "dashboards" / "prometheus" / "outrider.rules.yml").read_text()
    named = set(re.findall(r"\boutrider_[a-z_]+", rules))
    assert named
    assert named <= {metric.full_name for metric in METRICS}
