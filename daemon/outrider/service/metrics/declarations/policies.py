"""Metrics of the policies: decisions, rewards, applied changes, accuracy of predictions."""

from typing import Final

from outrider.acting.lever_thread import OUTCOMES
from outrider.engine.accounting.deferrals import LATER
from outrider.engine.accounting.distribution import DECISION_BOUNDS_S
from outrider.engine.accounting.predictions import CHANCE_BINS, WINDOWS
from outrider.engine.scheduling.placement import WHYS
from outrider.model.decisions import ACTIONS
from outrider.model.modes import MODES
from outrider.service.metrics.declarations.metric import SITE, Kind, Metric, counter, gauge

POLICY_METRICS: Final[tuple[Metric, ...]] = (
    # -- decisions and learning ------------------------------------------------------------------
    counter(
        "decisions_total",
        "Decisions in the journal; the mode label shows whether they were applied.",
        policy=SITE,
        action=ACTIONS,
        mode=MODES,
    ),
    Metric(
        "decision_seconds",
        Kind.HISTOGRAM,
        "Duration in seconds of one round of decisions, all policies together.",
        bounds=DECISION_BOUNDS_S,
    ),
    counter(
        "agreement_total",
        "Starts by the batch system, by whether the policy chose the same cluster.",
        policy=SITE,
        agrees=("true", "false"),
    ),
    Metric(
        "reward",
        Kind.SUMMARY,
        "Rewards that a policy learned from; each policy has its own scale.",
        {"policy": SITE},
    ),
    counter(
        "policy_failures_total",
        "Set to 1 if a policy failed or could not be created, and so decides nothing.",
        policy=SITE,
    ),
    counter(
        "placements_refused_total",
        "Starts chosen by a policy that were impossible, by cause; the job stayed queued.",
        policy=SITE,
        why=WHYS,
    ),
    # -- applied decisions, in the modes canary and active ---------------------------------------
    gauge(
        "leases",
        "Jobs with an active change in the batch system, which expires unless it is renewed.",
        adapter=SITE,
        lever=SITE,
        action=ACTIONS,
    ),
    counter(
        "lever_changes_total",
        "Changes of jobs by a lever, by outcome; for failed: calls that failed.",
        adapter=SITE,
        lever=SITE,
        outcome=OUTCOMES,
    ),
    # -- predictions and deferrals, judged afterwards --------------------------------------------
    counter(
        "prediction_runs_total",
        "Runs whose eviction a policy predicted, by the probability it gave and by their end.",
        policy=SITE,
        bin=CHANCE_BINS,
        ending=("completed", "evicted"),
    ),
    counter(
        "prediction_expected_evictions_total",
        "Expected evictions of those runs: the sum of their predicted probabilities.",
        policy=SITE,
        bin=CHANCE_BINS,
    ),
    gauge(
        "prediction_brier_ratio",
        "Brier score of predicted evictions, 0 is best (ratio). recent: older runs count half as "
        "much after two weeks.",
        policy=SITE,
        window=WINDOWS,
    ),
    gauge(
        "prediction_skill_ratio",
        "Brier skill score: improvement over always predicting the observed rate (ratio).",
        policy=SITE,
        window=WINDOWS,
    ),
    gauge(
        "prediction_run_error_seconds",
        "Mean absolute error in seconds of the predicted length of runs that completed.",
        policy=SITE,
        window=WINDOWS,
    ),
    counter(
        "deferred_jobs_total",
        "Jobs that a policy deferred, or in shadow would have deferred, by their later outcome.",
        policy=SITE,
        later=LATER,
    ),
    counter(
        "deferred_seconds_total",
        "Seconds for which those jobs were deferred.",
        policy=SITE,
        later=LATER,
    ),
)
