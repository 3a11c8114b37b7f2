"""Prometheus' own linter reads what we expose."""

import subprocess

import pytest

from outrider.service.metrics import render
from tests.peers.presence import require_program
from tests.service.metrics.sites import small_site


@pytest.mark.prometheus
def test_promtool_finds_nothing_to_say_about_the_classic_text() -> None:
    promtool = require_program("promtool", "Prometheus")
    registry = small_site()
    registry.choose_state("mode", "shadow")
    registry.spread("reward", "bandit").observe(-1.5)
    registry.number("vo_share_ratio", 'a "quoted"\nname\\').set(0.5)
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=render(registry),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
