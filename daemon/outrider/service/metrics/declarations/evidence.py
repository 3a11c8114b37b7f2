"""Metrics of the evidence: what the shadow twin answers, and when jobs are expected to start.

A figure is NaN unless it holds: an answer that is stale or refused, a forecast that has expired, a
policy that is configured otherwise by now have none. The state sets say which of these it is, and
a server keeps what was said before.
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
"""Those of the twin, without ``_ratio``."""
BOUNDS: Final = ("estimate", "low", "high")
FIDELITY_RATIOS: Final = ("energy", "evictions", "waste", "overhead", "machine_share_l1")
"""Parts of the fidelity that are ratios."""
TIMES: Final = ("past", "now")
EXPECTED: Final = ("now", "known", "not_known")
ASKED: Final = ("submission", "hourly")


def _states(name: str, text: str, states: tuple[str, ...]) -> Metric:
    return Metric(name, Kind.STATE_SET, text, {f"outrider_{name}": states})


EVIDENCE_METRICS: Final[tuple[Metric, ...]] = (
    # -- the twin's answer -----------------------------------------------------------------------
    _states(
        "twin_state",
        "State of the twin's last answer: 1 for that one, 0 for the others; refused: it cannot "
        "know, failed: it could not be asked.",
        ANSWER_STATES,
    ),
    gauge(
        "twin_asked_timestamp_seconds",
        "Unix time in seconds at which the asking began that gave the last answer.",
    ),
    gauge(
        "twin_failed_askings",
        "Askings in a row, up to now, that could not be done at all.",
    ),
    gauge(
        "twin_window_timestamp_seconds",
        "Unix time in seconds at which the past begins and ends that the last answer is about.",
        edge=("begin", "end"),
    ),
    gauge(
        "twin_ratio",
        "How many times as much a policy takes as the batch system, both simulated (ratio), with "
        "its 90 % interval: in the past, what would have been; next, a forecast.",
        policy=SITE,
        answer=ANSWERS,
        measure=MEASURES,
        bound=BOUNDS,
    ),
    gauge(
        "twin_candidate_state",
        "Whether a policy is in this state in the last answer: 1 or 0; changed: it is configured "
        "otherwise since.",
        policy=SITE,
        state=CANDIDATE_STATES,
    ),
    # -- the forecast ----------------------------------------------------------------------------
    _states(
        "twin_forecast_state",
        "State of the forecast in the last answer: 1 for that one, 0 for the others.",
        FORECAST_STATES,
    ),
    gauge("twin_forecast_window_seconds", "Length in seconds of the window that was forecast."),
    gauge(
        "twin_load_cpus",
        "CPUs at work in the mean: in the past of the forecast, and in the last two weeks.",
        when=TIMES,
    ),
    gauge(
        "twin_waste_ratio",
        "Part of the CPU time that was thrown away (ratio), over the same times as the load.",
        when=TIMES,
    ),
    # -- whether the twin is like the site -------------------------------------------------------
    gauge(
        "twin_fidelity_passed",
        "Whether the batch system, simulated anew, agrees with what happened: 1 or 0.",
    ),
    gauge(
        "twin_fidelity_ratio",
        "How far the simulated batch system is off what happened, by part (ratio).",
        part=FIDELITY_RATIOS,
    ),
    gauge(
        "twin_fidelity_bound_ratio",
        "How far it may be off, by part (ratio): beyond, the twin refuses.",
        part=FIDELITY_RATIOS,
    ),
    gauge(
        "twin_fidelity_start_delay_seconds",
        "How far it is off in the mean delay from a job's having room to its start, in seconds.",
    ),
    gauge(
        "twin_fidelity_start_delay_bound_seconds",
        "How far it may be off in that delay, in seconds.",
    ),
    # -- expected starts -------------------------------------------------------------------------
    _states(
        "starts_state",
        "State of the expected starts of waiting jobs: 1 for that one, 0 for the others.",
        STARTS_STATES,
    ),
    gauge(
        "starts_age_seconds",
        "Seconds since waiting jobs were last asked about, by the site's clock; of a simulated "
        "site, by this host's.",
    ),
    gauge(
        "starts_jobs",
        "Waiting jobs by their expected start: in the next pass, later within an interval of 80 %, "
        "or not known.",
        expected=EXPECTED,
    ),
    gauge(
        "starts_scored",
        "Starts that were foretold and have come, of those lately asked about.",
        asked=ASKED,
    ),
    gauge(
        "starts_coverage_ratio",
        "Part of those that came within their interval of 80 % (ratio).",
        asked=ASKED,
    ),
    gauge(
        "starts_pinball_seconds",
        "Mean pinball loss in seconds of the three quantiles that were foretold of them.",
        asked=ASKED,
    ),
)
