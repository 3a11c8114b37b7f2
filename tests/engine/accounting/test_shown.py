"""The daemon shows what a replay reports: status, metrics and page read the same scores."""

import asyncio
import re
from typing import Any

import msgspec
import pytest

from outrider.engine import PolicyRunner
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun
from outrider.service.core.core import Core
from outrider.service.metrics import expose
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.shapes.status import Calibration, Status
from outrider.service.views.status import status
from tests.engine.accounting.forecasters import Deferring, deferring, forecaster
from tests.fixtures.cores import RECORDING
from tests.service.running.watched_campus import campus_of, small_campus, watched
from tests.service.web.shapes import undeclared
from tests.service.web.small_site import SmallSite, open_site

SEED = 5
CAMPUS = small_campus(20, SEED)
SAMPLE = re.compile(r"^outrider_([a-z_]+)\{([^}]*)\} (\S+)$", re.MULTILINE)


def runners() -> list[PolicyRunner]:
    """A forecaster, one that holds, and one that predicts nothing."""
    fifo = make_policy("fifo", {}, SEED, "test")
    return [
        PolicyRunner(policy, False, 3600.0, strict=False)
        for policy in (forecaster(), patient(), fifo)
    ]


def patient() -> Deferring:
    """Would defer every job for five hours."""
    policy = deferring()
    policy.until_s = lambda job: (job.submit_s or 0.0) + 5 * 3600.0
    return policy


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    """Return a core whose policies are installed without a package of their own."""
    monkeypatch.setattr("outrider.service.core.core.make_runners", lambda loaded: runners())
    return asyncio.run(watched(CAMPUS))


def samples(core: Core) -> dict[tuple[str, str], float]:
    """Metrics by name and labels."""
    text, _ = expose(MetricsExporter(core).take(RECORDING, 0.0))
    return {(name, labels): float(v) for name, labels, v in SAMPLE.findall(text.decode())}


def test_the_status_has_the_calibration_that_a_replay_of_the_same_campus_has(core: Core) -> None:
    incumbent = make_policy("random_match", {}, SEED, "test")
    run = CampusRun(campus_of(CAMPUS), [incumbent, forecaster(), patient()], lambda *_: None)
    run.run()
    live, deferring_policy, silent = status(core, {})["policies"]
    replayed = run.runners[1].calibration(run.site.now)
    assert replayed is not None
    assert replayed["evictions"]["all"]["n"] > 200
    assert 0.02 < replayed["evictions"]["all"]["observed"] < 0.9
    for kind, error in (("evictions", "brier"), ("run_s", "mean_absolute_error")):
        for key in ("n", "predicted", "observed", error):
            expected = replayed[kind]["all"][key]
            assert live["calibration"][kind]["all"][key] == pytest.approx(expected, rel=1e-6), key
    assert live["calibration"]["neither"] == replayed["neither"] > 0
    assert deferring_policy["deferred"]["jobs"] == run.runners[2].deferrals.report()["jobs"]
    assert deferring_policy["deferred"]["jobs"]["completed"] > 0
    assert silent["calibration"] is None


def test_what_the_status_shows_has_its_declared_shape(core: Core) -> None:
    for policy in status(core, {})["policies"]:
        served = msgspec.json.decode(msgspec.json.encode(policy))
        kept = msgspec.convert(served, Status.__annotations__["policies"].__args__[0])
        assert undeclared(served, msgspec.to_builtins(kept)) == []
    calibration = status(core, {})["policies"][0]["calibration"]
    assert msgspec.convert(calibration, Calibration, strict=True).evictions.all.n > 0


def test_the_metrics_show_what_the_status_shows(core: Core) -> None:
    found = samples(core)
    policy = status(core, {})["policies"][0]
    calibration = policy["calibration"]
    for row in calibration["evictions"]["all"]["bins"]:
        place = f'bin="{row["bin"]}"'
        ends = [
            found["prediction_runs_total", f'{place},ending="{ending}",policy="forecaster"']
            for ending in ("completed", "evicted")
        ]
        assert sum(ends) == row["n"]
        expected = found["prediction_expected_evictions_total", f'{place},policy="forecaster"']
        if row["n"]:
            assert ends[1] / row["n"] == pytest.approx(row["observed"])
            assert expected / row["n"] == pytest.approx(row["predicted"])
    for window in ("all", "recent"):
        labels = f'policy="forecaster",window="{window}"'
        shown = calibration["evictions"][window]
        assert found["prediction_brier_ratio", labels] == shown["brier"]
        assert found["prediction_skill_ratio", labels] == shown["skill"]
        error_s = calibration["run_s"][window]["mean_absolute_error"]
        assert found["prediction_run_error_seconds", labels] == error_s
    for later, n in status(core, {})["policies"][1]["deferred"]["jobs"].items():
        assert found["deferred_jobs_total", f'later="{later}",policy="deferring"'] == n


def test_a_policy_that_predicts_nothing_has_no_series_of_predictions(core: Core) -> None:
    names = {name for name, labels in samples(core) if 'policy="fifo"' in labels}
    assert not {name for name in names if name.startswith("prediction_")}
    assert {"deferred_jobs_total", "deferred_seconds_total", "agreement_total"} <= names


@pytest.mark.chromium
async def test_the_page_draws_the_reliability_of_those_that_predict(core: Core, tab: Any) -> None:
    site = SmallSite()
    live, _, silent = msgspec.json.decode(msgspec.json.encode(status(core, {})["policies"]))
    site.status_answer["policies"] = [live, silent]
    scored = live["calibration"]["evictions"]["all"]
    drawn = "document.querySelectorAll('#calibration .calibration').length === 1"
    async with open_site(site) as address:
        await tab.look(360, 900, "dark")
        await tab.open(f"{address}/#/policies")
        await tab.wait_for(drawn)
        told = await tab.text_of("#calibration")
        assert "forecaster: predictions and outcomes" in told
        assert f"Skill {100 * scored['skill']:.1f} %" in told.replace("−", "-")
        dots = await tab.run(
            "[...document.querySelectorAll('#calibration .all circle')].map("
            "dot => [dot.cx.baseVal.value, dot.cy.baseVal.value])"
        )
        rows = [row for row in scored["bins"] if row["n"]]
        assert [x for x, _ in dots] == pytest.approx([100 * r["predicted"] for r in rows], abs=0.01)
        assert [y for _, y in dots] == pytest.approx(
            [100 - 100 * r["observed"] for r in rows], abs=0.01
        )
        assert await tab.run("document.documentElement.scrollWidth <= innerWidth")
        site.status_answer["policies"] = [silent]
        await tab.wait_for("document.getElementById('calibration').children.length === 0")
        assert tab.complaints == []
