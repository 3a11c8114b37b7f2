"""Rows about policies: what they decide, how true they were, and what is carried out."""

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
    "In observe and shadow this is what Outrider would do; nothing of it reached the batch system."
)
ACTS: Final = "In observe and shadow nothing is changed, and this is 0."

POLICIES: Final = '{policy=~"$policy"}'
DECISIONS: Final = f"outrider_decisions_total{POLICIES}"
ROUND: Final[Steps] = ((None, "green"), (0.1, "yellow"), (1, "red"))


def policy_rows() -> list[Row]:
    """The rows, in their order on the page."""
    return [Row("Outrider", ALWAYS, [mode()]), _decisions(), _predictions(), _acting()]


def _decisions() -> Row:
    labels = "policy, action, mode"
    agreed, starts = (
        f"sum by (policy) (increase(outrider_agreement_total{{{agrees}{POLICIES[1:]}[$window]))"
        for agrees in ('agrees="true", ', "")
    )
    # Rewards may be negative, so their sum is no counter. Both by delta: ends are met alike.
    reward, rewards = (
        f"delta(outrider_reward_{part}{POLICIES}[$window])" for part in ("sum", "count")
    )
    return Row("Decisions (in shadow: what Outrider would do)", WOULD, [
        lines("Decisions a minute", "By policy, action and mode; only those that ever happened.",
              STEP, "none",
              Query(f"sum by ({labels}) (rate({DECISIONS}[$__rate_interval])) * 60 "
                    f"and sum by ({labels}) ({DECISIONS}) > 0",
                    "{{policy}}: {{action}} ({{mode}})")),
        lines("Agreement", "Share of the batch system's starts for which the policy had chosen "
              "the same cluster.", WINDOW, "percentunit",
              Query(share(agreed, starts), "{{policy}}")),
        lines("Mean reward", "What a learning policy learned from. Each has a scale of its own: "
              "compare a line with itself.", WINDOW, "none",
              Query(share(reward, rewards), "{{policy}}"), from_zero=False),
        lines("Duration of a round", "One round of decisions, all policies together: median, 90 "
              "and 99 %.", WINDOW, "s",
              *(Query(quantile(q, "outrider_decision_seconds_bucket", "$window"), f"{q:.0%}")
                for q in (0.5, 0.9, 0.99)),
              width=8, steps=ROUND),
        figures("Policies that failed", "Its runner stays empty and the others go on; the log has "
                "the error.", EVER, "none",
                Query(f"outrider_policy_failures_total{POLICIES}", "{{policy}}"),
                width=4, steps=NONE_IS_GOOD),
    ])  # fmt: skip


def _predictions() -> Row:
    def of(metric: str) -> str:
        return known(f'outrider_prediction_{metric}{{window="recent", policy=~"$policy"}}')

    recent = "Recent runs, older ones fading by half in two weeks."
    evicted = 'outrider_prediction_runs_total{ending="evicted", policy=~"$policy"}'
    expected = f"outrider_prediction_expected_evictions_total{POLICIES}"
    return Row("How true predictions were, and deferrals", WOULD, [
        lines("Skill of predicted evictions", "How much better the Brier score is than always "
              f"saying the observed rate; below 0: worse. {recent}", MOMENT, "percentunit",
              Query(of("skill_ratio"), "{{policy}}"), width=8, from_zero=False),
        lines("Error of predicted run lengths", f"Mean absolute error. {recent}", MOMENT, "s",
              Query(of("run_error_seconds"), "{{policy}}"), width=8),
        bars("Evictions: predicted and seen", "Of the runs whose eviction was predicted: the sum "
             "of the probabilities, and how many came. Alike: well calibrated in the mean.", EVER,
             "none",
             Query(f"sum by (policy) ({expected})", "{{policy}} predicted"),
             Query(f"sum by (policy) ({evicted})", "{{policy}} seen"), width=8),
        lines("Jobs deferred an hour", "Kept queued by choice although a machine was free, booked "
              "when they left, by how they ended.", WINDOW, "none",
              Query(f"sum by (policy, later) (rate(outrider_deferred_jobs_total{POLICIES}[$window])"
                    f") * {HOURLY}", "{{policy}}: {{later}}"), width=8),
        bars("Hours deferred", "Of those jobs together.", SPAN, "s",
             Query(f"sum by (policy) (increase(outrider_deferred_seconds_total{POLICIES}"
                   "[$__range]))", "{{policy}}"), width=8),
        bars("Impossible starts", "That a policy chose and that were refused; the job stayed "
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
        lines("Jobs with a lease", "For which a decision stands in the batch system, by what was "
              "decided.", MOMENT, "none",
              Query(leases("defer"), "kept in the queue"),
              Query(leases("start"), "sent to a machine group")),
        lines("Changes a minute", "Jobs that levers changed, and refusals and calls that failed.",
              STEP, "none",
              Query(changes("applied|renewed|withdrawn"), "done"),
              Query(changes("refused|failed"), "refused or failed")),
    ])  # fmt: skip
