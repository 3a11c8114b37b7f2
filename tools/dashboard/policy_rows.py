"""Rows about policies: decisions, accuracy of predictions, and applied changes."""

from typing import Final

from tools.dashboard.expressions import known, quantile, share
from tools.dashboard.now_rows import ALWAYS, HOURLY, mode
from tools.dashboard.panels import (
    EVER,
    MOMENT,
    NONE_IS_GOOD,
    SPAN,
    STEP,
    WINDOW,
    Query,
    Row,
    Steps,
    bars,
    figures,
    lines,
)

WOULD: Final = (
    "In observe and shadow this is what Outrider would do; none of it reached the batch system."
)
ACTS: Final = "In observe and shadow Outrider changes nothing, and this is 0."

POLICIES: Final = '{policy=~"$policy"}'
DECISIONS: Final = f"outrider_decisions_total{POLICIES}"
ROUND: Final[Steps] = ((None, "green"), (0.1, "yellow"), (1, "red"))


def policy_rows() -> list[Row]:
    """Return the rows in their order on the dashboard."""
    return [Row("Outrider", ALWAYS, [mode()]), _decisions(), _predictions(), _acting()]


def _decisions() -> Row:
    labels = "policy, action, mode"
    agreed, starts = (
        f"sum by (policy) (increase(outrider_agreement_total{{{agrees}{POLICIES[1:]}[$window]))"
        for agrees in ('agrees="true", ', "")
    )
    # Rewards may be negative, so their sum is not a counter. Both use delta, with the same ends.
    reward, rewards = (
        f"delta(outrider_reward_{part}{POLICIES}[$window])" for part in ("sum", "count")
    )
    return Row("Decisions (in shadow: what Outrider would do)", WOULD, [
        lines("Decisions per minute", "By policy, action and mode; only those that occurred.",
              STEP, "none",
              Query(f"sum by ({labels}) (rate({DECISIONS}[$__rate_interval])) * 60 "
                    f"and sum by ({labels}) ({DECISIONS}) > 0",
                    "{{policy}}: {{action}} ({{mode}})")),
        lines("Agreement", "Share of the batch system's starts for which the policy chose the "
              "same cluster.", WINDOW, "percentunit",
              Query(share(agreed, starts), "{{policy}}")),
        lines("Mean reward", "Rewards of learning policies. Scales differ, so do not compare "
              "policies with each other.", WINDOW, "none",
              Query(share(reward, rewards), "{{policy}}"), from_zero=False),
        lines("Duration of a round", "One round of decisions of all policies: 50th, 90th and 99th "
              "percentile.", WINDOW, "s",
              *(Query(quantile(q, "outrider_decision_seconds_bucket", "$window"), f"{q:.0%}")
                for q in (0.5, 0.9, 0.99)),
              width=8, steps=ROUND),
        figures("Failed policies", "A failed policy decides nothing; the others continue. See the "
                "log.", EVER, "none",
                Query(f"outrider_policy_failures_total{POLICIES}", "{{policy}}"),
                width=4, steps=NONE_IS_GOOD),
    ])  # fmt: skip


def _predictions() -> Row:
    def of(metric: str) -> str:
        return known(f'outrider_prediction_{metric}{{window="recent", policy=~"$policy"}}')

    recent = "Recent runs, with a half-life of two weeks."
    evicted = 'outrider_prediction_runs_total{ending="evicted", policy=~"$policy"}'
    expected = f"outrider_prediction_expected_evictions_total{POLICIES}"
    return Row("Accuracy of predictions, and deferrals", WOULD, [
        lines("Skill of predicted evictions", "Brier score against always predicting the observed "
              f"rate; below 0: worse. {recent}", MOMENT, "percentunit",
              Query(of("skill_ratio"), "{{policy}}"), width=8, from_zero=False),
        lines("Error of predicted run lengths", f"Mean absolute error. {recent}", MOMENT, "s",
              Query(of("run_error_seconds"), "{{policy}}"), width=8),
        bars("Evictions: predicted and seen", "Of runs with a prediction: the sum of the "
             "probabilities, and the evictions. Equal: calibrated on average.", EVER,
             "none",
             Query(f"sum by (policy) ({expected})", "{{policy}} predicted"),
             Query(f"sum by (policy) ({evicted})", "{{policy}} seen"), width=8),
        lines("Deferred jobs per hour", "Jobs that a policy kept in the queue although a machine "
              "was free. They count when they leave, by outcome.", WINDOW, "none",
              Query(f"sum by (policy, later) (rate(outrider_deferred_jobs_total{POLICIES}[$window])"
                    f") * {HOURLY}", "{{policy}}: {{later}}"), width=8),
        bars("Hours deferred", "Total for those jobs.", SPAN, "s",
             Query(f"sum by (policy) (increase(outrider_deferred_seconds_total{POLICIES}"
                   "[$__range]))", "{{policy}}"), width=8),
        bars("Impossible starts", "Starts chosen by a policy that were refused; the job stayed "
             "queued.", EVER, "none",
             Query(f"sum by (policy) (outrider_placements_refused_total{POLICIES})",
                   "{{policy}}"), width=8),
    ])  # fmt: skip


def _acting() -> Row:
    none = "or 0 * sum(outrider_mode)"  # in observe and shadow there is no lever and no series

    def leases(action: str) -> str:
        return f'sum(outrider_leases{{action="{action}"}}) {none}'

    def changes(outcomes: str) -> str:
        chosen = f'outrider_lever_changes_total{{outcome=~"{outcomes}"}}'
        return f"sum(rate({chosen}[$__rate_interval])) * 60 {none}"

    return Row("Acting (in the modes canary and active)", ACTS, [
        lines("Jobs with a lease", "Jobs with an active decision in the batch system, by action.",
              MOMENT, "none",
              Query(leases("defer"), "kept in the queue"),
              Query(leases("start"), "sent to a machine group")),
        lines("Changes per minute", "Jobs changed by levers, and refused or failed calls.",
              STEP, "none",
              Query(changes("applied|renewed|withdrawn"), "done"),
              Query(changes("refused|failed"), "refused or failed")),
    ])  # fmt: skip
