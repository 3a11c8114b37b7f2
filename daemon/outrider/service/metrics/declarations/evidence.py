"""Metrics of the evidence: the shadow twin's results and the expected starts of jobs.

A figure is NaN unless it is valid: a stale or refused result, an expired forecast, or a policy
whose settings changed since have none. The state sets show which of these it is, and the metrics
server keeps the earlier values.
"""

from typing import Final

from outrider.model.quantities import RATIO_LABELS
from outrider.service.metrics.declarations.metric import SITE, Kind, Metric, gauge
from outrider.service.views.twin import (
    ANSWER_STATES,
    CANDIDATE_STATES,
    FORECAST_STATES,
    STARTS_STATES,
)

ANSWERS: Final = ("past", "next")
MEASURES: Final = tuple(name.removesuffix("_ratio") for name in RATIO_LABELS)
"""Ratios of the twin, without ``_ratio``."""
BOUNDS: Final = ("estimate", "low", "high")
FIDELITY_RATIOS: Final = ("energy", "evictions", "waste", "overhead", "machine_share_l1")
"""Parts of the fidelity that are ratios."""
TIMES: Final = ("past", "now")
EXPECTED: Final = ("now", "known", "not_known")
ASKED: Final = ("submission", "hourly")


def _states(name: str, text: str, states: tuple[str, ...]) -> Metric:
    return Metric(name, Kind.STATE_SET, text, {f"outrider_{name}": states})


EVIDENCE_METRICS: Final[tuple[Metric, ...]] = (
    # -- the twin's result -----------------------------------------------------------------------
    _states(
        "twin_state",
        "State of the twin's last result: 1 for that state, 0 for the others; refused: no reliable "
        "result is possible, failed: the twin could not run.",
        ANSWER_STATES,
    ),
    gauge(
        "twin_asked_timestamp_seconds",
        "Unix time in seconds at which the twin run began that gave the last result.",
    ),
    gauge(
        "twin_failed_askings",
        "Number of consecutive twin runs, up to now, that failed.",
    ),
    gauge(
        "twin_window_timestamp_seconds",
        "Unix time in seconds at which the past period of the last result begins and ends.",
        edge=("begin", "end"),
    ),
    gauge(
        "twin_ratio",
        "Ratio of a policy's measure to the current scheduler's, both simulated, with its 90 % "
        "interval. past: the simulated past period; next: a forecast.",
        policy=SITE,
        answer=ANSWERS,
        measure=MEASURES,
        bound=BOUNDS,
    ),
    gauge(
        "twin_candidate_state",
        "Set to 1 if a policy is in this state in the last result, else 0; changed: its settings "
        "changed since.",
        policy=SITE,
        state=CANDIDATE_STATES,
    ),
    # -- the forecast ----------------------------------------------------------------------------
    _states(
        "twin_forecast_state",
        "State of the forecast in the last result: 1 for that state, 0 for the others.",
        FORECAST_STATES,
    ),
    gauge("twin_forecast_window_seconds", "Length in seconds of the forecast window."),
    gauge(
        "twin_load_cpus",
        "CPUs in use on average. past: in the period the forecast is based on; now: in the last "
        "two weeks.",
        when=TIMES,
    ),
    gauge(
        "twin_waste_ratio",
        "Ratio of CPU time that was wasted, over the same periods as twin_load_cpus.",
        when=TIMES,
    ),
    # -- fidelity of the twin --------------------------------------------------------------------
    gauge(
        "twin_fidelity_passed",
        "Set to 1 if the simulated current scheduler agrees with the record, else 0.",
    ),
    gauge(
        "twin_fidelity_ratio",
        "Deviation of the simulated current scheduler from the record, by part (ratio).",
        part=FIDELITY_RATIOS,
    ),
    gauge(
        "twin_fidelity_bound_ratio",
        "Largest deviation that the twin accepts, by part (ratio); beyond it the twin refuses.",
        part=FIDELITY_RATIOS,
    ),
    gauge(
        "twin_fidelity_start_delay_seconds",
        "Deviation in seconds of the mean delay from when a job fits to its start.",
    ),
    gauge(
        "twin_fidelity_start_delay_bound_seconds",
        "Largest deviation of that delay that the twin accepts, in seconds.",
    ),
    # -- expected starts -------------------------------------------------------------------------
    _states(
        "starts_state",
        "State of the expected starts of waiting jobs: 1 for that state, 0 for the others.",
        STARTS_STATES,
    ),
    gauge(
        "starts_age_seconds",
        "Age of the expected starts in seconds, by the site's clock; for a simulated site, by "
        "this host's clock.",
    ),
    gauge(
        "starts_jobs",
        "Waiting jobs by their expected start. now: in the scheduler's next cycle; known: later, "
        "with an 80 % interval; not_known: unknown.",
        expected=EXPECTED,
    ),
    gauge(
        "starts_scored",
        "Recent predicted starts that have happened, by when the prediction was made.",
        asked=ASKED,
    ),
    gauge(
        "starts_coverage_ratio",
        "Ratio of those starts that fell within their 80 % interval.",
        asked=ASKED,
    ),
    gauge(
        "starts_pinball_seconds",
        "Mean pinball loss in seconds of the three predicted quantiles of those starts.",
        asked=ASKED,
    ),
)
