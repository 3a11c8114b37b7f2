"""Metrics of the policies: what they decide, what they learn, and how true they were."""

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
        "Decisions in the ledger, acted on or not as the mode says.",
        policy=SITE,
        action=ACTIONS,
        mode=MODES,
    ),
    Metric(
        "decision_seconds",
        Kind.HISTOGRAM,
        "Seconds that one round of decisions took, all policies together.",
        bounds=DECISION_BOUNDS_S,
    ),
    counter(
        "agreement_total",
        "Starts by the batch system, by whether the policy had chosen the same cluster.",
        policy=SITE,
        agrees=("true", "false"),
    ),
    Metric(
        "reward",
        Kind.SUMMARY,
        "Rewards that a policy learned from; each policy has a scale of its own.",
        {"policy": SITE},
    ),
    counter(
        "policy_failures_total",
        "Policies that failed or could not be made and are not asked, as 1.",
        policy=SITE,
    ),
    counter(
        "placements_refused_total",
        "Starts that a policy chose and that were impossible, by why; the job stayed queued.",
        policy=SITE,
        why=WHYS,
    ),
    # -- carrying decisions out, in the modes canary and active ----------------------------------
    gauge(
        "leases",
        "Jobs for which a decision stands in the batch system, for as long as it is renewed.",
        adapter=SITE,
        lever=SITE,
        action=ACTIONS,
    ),
    counter(
        "lever_changes_total",
        "Jobs that a lever changed, or was refused, by outcome; of failed: calls.",
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
        "Evictions to be expected of those runs: the sum of the probabilities that were predicted.",
        policy=SITE,
        bin=CHANCE_BINS,
    ),
    gauge(
        "prediction_brier_ratio",
        "Brier score of predicted evictions, 0 is best (ratio): of all runs, or recent ones, "
        "older runs fading by half in two weeks.",
        policy=SITE,
        window=WINDOWS,
    ),
    gauge(
        "prediction_skill_ratio",
        "How much better the Brier score is than that of always saying the observed rate (ratio).",
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
        "Jobs that a policy kept queued by choice, or in shadow would have, by how they ended.",
        policy=SITE,
        later=LATER,
    ),
    counter(
        "deferred_seconds_total",
        "Seconds for which those jobs were kept queued by choice.",
        policy=SITE,
        later=LATER,
    ),
)
