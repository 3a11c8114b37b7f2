"""Scores of predictions when runs end; figures counted by hand."""

import math

import msgspec
import pytest

from outrider.api import PolicySettings, Prediction
from outrider.model import events as ev
from outrider.model.errors import PolicyError
from outrider.testing.fixtures import chance
from outrider.testing.hand_campus import HOUR_S, Session, Work, make_campus
from tests.engine.accounting.forecasters import (
    REASONS_OF_EVICTIONS,
    Drawing,
    Forecast,
    Forecaster,
    deferring,
    forecaster,
)
from tests.fixtures.plays import MAKERS, Play, Shadow


def test_brier_score_reference_and_skill_are_those_counted_by_hand() -> None:
    site = Forecast()
    for probability, evicted in ((0.8, True), (0.8, False), (0.2, False), (0.2, False)):
        site.chance(probability, evicted)
    scored = site.report()["evictions"]["all"]
    assert scored["n"] == 4
    assert scored["predicted"] == pytest.approx(0.5)
    assert scored["observed"] == pytest.approx(0.25)
    assert scored["brier"] == pytest.approx((0.04 + 0.64 + 0.04 + 0.04) / 4)
    assert scored["reference"] == pytest.approx(0.25 * 0.75)
    assert scored["skill"] == pytest.approx(1 - 0.19 / 0.1875)


def test_the_reliability_curve_has_count_mean_and_rate_of_each_tenth() -> None:
    site = Forecast()
    said = ((0.0, False), (0.05, True), (0.3, True), (0.39, False), (0.31, True), (1.0, True))
    for probability, evicted in said:
        site.chance(probability, evicted)
    bins = {row["bin"]: row for row in site.report()["evictions"]["all"]["bins"]}
    assert list(bins) == [f"{n / 10:.1f}-{n / 10 + 0.1:.1f}" for n in range(10)]
    assert {name: row["n"] for name, row in bins.items() if row["n"]} == {
        "0.0-0.1": 2, "0.3-0.4": 3, "0.9-1.0": 1,
    }  # fmt: skip
    assert bins["0.0-0.1"]["predicted"] == pytest.approx(0.025)
    assert bins["0.0-0.1"]["observed"] == pytest.approx(0.5)
    assert bins["0.3-0.4"]["predicted"] == pytest.approx(1.0 / 3)
    assert bins["0.3-0.4"]["observed"] == pytest.approx(2.0 / 3)
    assert bins["0.5-0.6"] == {"bin": "0.5-0.6", "n": 0, "predicted": None, "observed": None}


def test_run_lengths_are_compared_for_completed_runs_only() -> None:
    site = Forecast()
    site.run(Prediction(None, 600.0), ev.COMPLETED, run_s=900.0)
    site.run(Prediction(None, 300.0), ev.COMPLETED, run_s=120.0)
    site.run(Prediction(None, 7200.0), ev.COMPLETED, run_s=3600.0)
    site.run(Prediction(None, 7200.0), ev.EVICTED, "owner", run_s=60.0)
    report = site.report()
    scored = report["run_s"]["all"]
    bins = {row["bin"]: row for row in scored["bins"] if row["n"]}
    assert scored["n"] == 3
    assert scored["mean_absolute_error"] == pytest.approx((300 + 180 + 3600) / 3)
    assert scored["predicted"] == pytest.approx(2700.0)
    assert scored["observed"] == pytest.approx(1540.0)
    assert list(bins) == ["0-0.25 h", "2-4 h"]
    assert bins["0-0.25 h"]["observed"] == pytest.approx(510.0)
    assert report["evictions"]["all"]["n"] == 0
    assert report["evictions"]["all"]["brier"] is None


@pytest.mark.parametrize("reason", REASONS_OF_EVICTIONS)
def test_every_ending_that_nobody_wanted_is_an_eviction(reason: str) -> None:
    site = Forecast()
    site.run(Prediction(0.75), ev.EVICTED, reason)
    site.run(Prediction(0.75), ev.REMOVED, "failed_start")  # and it is not tried again
    assert site.report()["evictions"]["all"]["observed"] == 1.0
    assert site.report()["evictions"]["all"]["n"] == 2


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (ev.REMOVED, "removed"),
        (ev.REMOVED, "killed"),
        (ev.REMOVED, "unknown"),
        (ev.EVICTED, "held"),
        (ev.EVICTED, "removed"),
        (ev.EVICTED, "killed"),
    ],
)
def test_a_run_that_somebody_ended_is_neither_evicted_nor_completed(
    ending: int, reason: str
) -> None:
    site = Forecast()
    site.run(Prediction(0.75, 100.0), ending, reason)
    report = site.report()
    assert report["neither"] == 1
    assert report["open"] == report["evictions"]["all"]["n"] == report["run_s"]["all"]["n"] == 0


def test_a_run_that_goes_on_is_open_and_one_without_prediction_is_nothing() -> None:
    site = Forecast()
    site.run(None, ev.COMPLETED)
    assert (site.report()["open"], site.report()["evictions"]["all"]["n"]) == (0, 0)
    assert isinstance(site.policy, Forecaster)
    site.policy.says = lambda *_: Prediction(0.5)
    site.hand.submit(77)
    site.hand.tick()
    assert site.report()["open"] == 1


def test_in_shadow_the_prediction_is_for_the_machine_that_was_really_used() -> None:
    campus = make_campus([0, 1, 1], [Work(10.0 * n, 100.0) for n in range(6)], end_s=HOUR_S)
    play = Play(campus, [MAKERS["fifo"](), policy := forecaster()])
    used = [(job, extra[0]) for _, kind, job, extra in play.told if kind == ev.STARTED]
    assert len(used) == 6
    assert policy.asked == used
    report = play.runners[1].calibration(HOUR_S)
    assert report is not None
    assert report["evictions"]["all"]["n"] == 6


def test_predicting_changes_no_decision() -> None:
    campus = make_campus(
        [0, 1, 1],
        [Work(60.0 * n, 300.0) for n in range(40)],
        [Session(n % 3, 500.0 + 700 * n, 800.0 + 700 * n) for n in range(5)],
        end_s=2 * HOUR_S,
    )
    told = Play(campus, [forecaster()])
    silent = Play(campus, [Drawing(PolicySettings(), chance("forecaster"))])
    assert told.runners[0].predictions is not None
    assert silent.runners[0].predictions is None
    assert [row[:5] for row in told.rows] == [row[:5] for row in silent.rows]


def test_a_policy_that_predicts_nothing_has_no_calibration() -> None:
    campus = make_campus([0], [Work(0.0, 100.0)], end_s=HOUR_S)
    play = Play(campus, [MAKERS["fifo"]()])
    assert play.report["calibration"] is None
    assert Play(campus, [forecaster()]).report["calibration"]["evictions"]["all"]["n"] == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Prediction(1.2), r"eviction_probability = 1.2: expected 0 to 1, or None"),
        (Prediction(-0.1), "eviction_probability = -0.1"),
        (Prediction(math.nan), "eviction_probability = nan"),
        (Prediction(0.5, -1.0), "predicted run_s = -1.0: expected seconds >= 0, or None"),
        (Prediction(0.5, math.inf), "predicted run_s = inf"),
    ],
)
def test_a_prediction_that_cannot_be_is_an_error_of_the_policy(said: Prediction, told: str) -> None:
    with pytest.raises(PolicyError, match=f'policy "forecaster" failed: ValueError: {told}'):
        Forecast().run(said, ev.COMPLETED)


def test_beside_others_a_policy_that_fails_to_predict_loses_its_seat_alone() -> None:
    def fail(*_: object) -> Prediction:
        raise ZeroDivisionError("no hours seen")

    campus = make_campus([0], [Work(100.0 * n, 50.0) for n in range(3)], end_s=HOUR_S)
    told = Play(campus, [MAKERS["fifo"]()]).told
    broken = forecaster()
    broken.says = fail
    shadow = Shadow(campus, [forecaster(), broken], strict=False)
    shadow.engine.feed(told)
    sound, empty = shadow.runners
    assert empty.broken == 'policy "forecaster" failed: ZeroDivisionError: no hours seen'
    assert len(broken.asked) == 1
    report = sound.calibration(HOUR_S)
    assert report is not None
    assert report["evictions"]["all"]["n"] == 3


def test_what_was_predicted_before_a_restart_is_scored_after_it() -> None:
    jobs = [Work(500.0 * n, 1500.0, vo="bio" if n % 3 else "phys") for n in range(30)]
    sessions = [Session(n % 4, 900.0 * n, 900.0 * n + 600) for n in range(1, 14)]
    campus = make_campus([0, 0, 1, 1], jobs, sessions, end_s=6 * HOUR_S)
    told = Play(campus, [MAKERS["random_match"]()]).told
    cut = len(told) // 2

    def made() -> Shadow:
        return Shadow(campus, [deferring(bio=3)])

    through, stopped, resumed = made(), made(), made()
    through.engine.feed(told)
    stopped.engine.feed(told[:cut])
    scored, holds = stopped.runners[0].predictions, stopped.runners[0].deferrals.save()
    assert scored is not None
    assert scored.open, "no run was going on at the cut: nothing is tried"
    saved = msgspec.msgpack.decode(msgspec.msgpack.encode(stopped.engine.save()))
    assert resumed.engine.restore(saved) == []
    assert resumed.runners[0].deferrals.save() == holds
    resumed.engine.feed(told[cut:])
    now = through.site.now
    assert resumed.runners[0].calibration(now) == through.runners[0].calibration(now)
    assert resumed.runners[0].deferrals.report() == through.runners[0].deferrals.report()
    report = through.runners[0].calibration(now)
    assert report is not None
    assert 0 < report["evictions"]["all"]["observed"] < 1
