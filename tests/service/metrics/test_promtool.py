"""Prometheus' own linter reads what we expose."""

import subprocess

import pytest

from outrider.service.metrics import expose
from tests.peers.presence import require_program
from tests.service.metrics.sites import small_site


@pytest.mark.prometheus
def test_promtool_finds_nothing_to_say_about_the_classic_text() -> None:
    promtool = require_program("promtool", "Prometheus")
    store = small_site()
    store.choose_state("mode", "shadow")
    store.set_observations("reward", (1,), -1.5, "bandit")
    store.set("vo_share_ratio", 0.5, 'a "quoted"\nname\\')
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=expose(store.snapshot())[0],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
