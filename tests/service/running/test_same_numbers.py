"""Same run, same numbers: what replay reports is what the daemon and its metrics show."""

import asyncio
from typing import Any

import pytest

from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun
from outrider.service.metrics import expose
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.views.status import status
from tests.fixtures.cores import RECORDING
from tests.service.running.small_site import SAMPLE
from tests.service.running.watched_campus import campus_of, small_campus, watched

SEED = 5
CAMPUS = small_campus(30, SEED)
CLOSE = 1e-9
"""Relative: the campus's clock counts from 0, the daemon's from 1970."""


def replayed() -> dict[str, Any]:
    """The report of the same campus under the same incumbent."""
    policy = make_policy("random_match", {}, SEED, "test")
    return CampusRun(campus_of(CAMPUS), [policy], lambda *_: None, exact=False).run()


@pytest.mark.parametrize("mode", ["observe", "shadow"])
def test_the_daemon_reports_what_a_replay_of_the_same_campus_reports(mode: str) -> None:
    core, report = asyncio.run(watched(CAMPUS, mode)), replayed()
    core.engine.finish(core.site.now)  # settle the machines, as the end of a replay does
    shown = status(core, {})
    assert report["starts"] > 100
    assert sum(report["evictions"].values()) > 10
    for key in ("submitted", "completed", "removed"):
        assert shown["jobs"][key] == report["jobs"][key]
    assert shown["starts"] == report["starts"]
    assert shown["evictions"] == report["evictions"]
    for key in ("goodput_s", "badput_s"):
        assert shown[key] == pytest.approx(report[key], rel=CLOSE)
    for key in ("mean", "n", "censored_n"):
        assert shown["wait_s"]["all"][key] == pytest.approx(report["wait_s"]["all"][key], rel=1e-6)
    assert shown["energy_wh"] == pytest.approx(report["energy_wh"], rel=1e-6)
    for key in ("utility", "time_mean", "windowed"):
        assert shown["fairness"][key] == pytest.approx(report["fairness"][key], rel=1e-6)


def test_the_metrics_show_what_the_status_shows() -> None:
    core = asyncio.run(watched(CAMPUS))
    shown = status(core, {})
    text, _ = expose(MetricsExporter(core).take(RECORDING, 0.0))
    metrics = {name: float(value) for name, value in SAMPLE.findall(text.decode())}

    def summed(name: str, *parts: str) -> float:
        return sum(
            value
            for key, value in metrics.items()
            if key.partition("{")[0] == f"outrider_{name}" and all(part in key for part in parts)
        )

    assert summed("goodput_seconds_total") == shown["goodput_s"]
    assert summed("job_utility_total") == shown["utility"]["total"] > 0
    assert summed("badput_seconds_total") == shown["badput_s"]
    for reason, n in shown["evictions"].items():
        assert summed("evictions_total", f'reason="{reason}"') == n
    for purpose in ("goodput", "badput", "idle", "sleep", "owner"):
        joules = summed("energy_joules_total", f'purpose="{purpose}"')
        assert joules == pytest.approx(shown["energy_wh"][purpose] * 3_600.0)
    waits = shown["wait_s"]["all"]
    assert summed("job_wait_seconds_count") == waits["n"]
    assert summed("job_wait_seconds_sum") == pytest.approx(waits["mean"] * waits["n"])
    bandit = shown["policies"][0]
    for action, n in bandit["by_action"].items():
        assert summed("decisions_total", f'action="{action}"') == n > 0
    assert summed("agreement_total", 'agrees="true"') == bandit["agreed"] > 0
    assert summed("fairness_utility_ratio") == shown["fairness"]["utility"]
    for state, n in shown["machines"].items():
        assert summed("machines", f'state="{state}"') == n
    for kind, n in shown["adapters"][0]["events"].items():
        assert summed("events_total", f'kind="{kind}"') == n
