"""Rows about Outrider: what it decides, records and costs."""

from typing import Final

from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import quantile, share
from tools.dashboard.panels import (
    EVER,
    MOMENT,
    NONE_IS_GOOD,
    NOW,
    SPAN,
    STEP,
    WINDOW,
    Query,
    Row,
    Steps,
    figures,
    lines,
)

WOULD: Final = (
    "In observe and shadow this is what Outrider would do; nothing of it reached the batch system."
)
ACTS: Final = "In observe and shadow nothing is changed, and this is 0."
ALWAYS: Final = "In every mode."

POLICIES: Final = '{policy=~"$policy"}'
DECISIONS: Final = f"outrider_decisions_total{POLICIES}"
LAG: Final[Steps] = ((None, "green"), (10, "yellow"), (60, "red"))
LOOP_LAG: Final[Steps] = ((None, "green"), (0.1, "yellow"), (1, "red"))
ROUND: Final[Steps] = ((None, "green"), (0.1, "yellow"), (1, "red"))
SNAPSHOT_AGE: Final[Steps] = ((None, "green"), (3_600, "yellow"), (86_400, "red"))


def daemon_rows() -> list[Row]:
    """The rows, in their order on the page."""
    return [_decisions(), _acting(), _ledger(), _itself()]


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


def _ledger() -> Row:
    return Row("Ledger", ALWAYS, [
        figures("Writes that failed", "While the journal cannot be written nothing is recorded "
                "and input is held back.", SPAN, "none",
                Query("increase(outrider_ledger_failures_total[$__range])", "failures"),
                steps=NONE_IS_GOOD),
        figures("Journal on disk", "Its size.", NOW, "bytes",
                Query("outrider_ledger_size_bytes", "journal")),
        figures("Age of the snapshot", "How old the last good one is: a restart replays what came "
                "after.", NOW, "s",
                Query("outrider_ledger_snapshot_age_seconds", "snapshot"), steps=SNAPSHOT_AGE),
        figures("Rows", "In the journal.", EVER, "none",
                Query("outrider_ledger_rows_total", "{{table}}")),
        lines("Lag", "How long the oldest unwritten entry has waited.", MOMENT, "s",
              Query("outrider_ledger_lag_seconds", "lag"), steps=LAG),
        lines("Rows a second", "Written to the journal.", STEP, "none",
              Query("rate(outrider_ledger_rows_total[$__rate_interval])", "{{table}}")),
    ])  # fmt: skip


def _itself() -> Row:
    uptime = "time() - outrider_process_start_time_seconds"
    # An adapter that rejected nothing has no series yet: zero, not a hole. Totals and no
    # rates: a series is born with its first record, and a rate would miss that one.
    rejected = (
        "sum by (adapter) (outrider_events_rejected_total) "
        "or 0 * sum by (adapter) (outrider_events_duplicate_total)"
    )
    repaired = "sum(outrider_repairs_total) or 0 * sum(outrider_events_late_total)"
    return Row("Outrider itself", ALWAYS, [
        lines("Events", "Taken in, a second.", STEP, "none",
              Query("sum by (adapter) (rate(outrider_events_total[$__rate_interval]))",
                    "{{adapter}}")),
        lines("Input that was not as it should be", "Records that could not be read, events "
              "too late for their time or told twice, impossible transitions that were mended. A "
              "step up is something new.", EVER, "none",
              Query(rejected, "{{adapter}} rejected"),
              Query("outrider_events_duplicate_total", "{{adapter}} duplicate"),
              Query("outrider_events_late_total", "late"),
              Query(repaired, "repaired")),
        lines("Memory", "Resident.", MOMENT, "bytes",
              Query("outrider_process_resident_memory_bytes", "resident"), width=8),
        lines("CPU", "Share of one core.", STEP, "percentunit",
              Query("rate(outrider_process_cpu_seconds_total[$__rate_interval])", "CPU"),
              width=8),
        lines("Lag of the event loop", "Longest since the scrape before.", MOMENT, "s",
              Query("outrider_loop_lag_seconds", "lag"), width=8, steps=LOOP_LAG),
        figures("Up for", "Since the process began.", NOW, "s", Query(uptime, "up")),
        figures("Version", "Outrider's version.", NOW, "none",
                Query("outrider_build_info", "{{version}}"), text=BigValueTextMode.NAME),
        figures("Metrics refused", "Label sets folded into other for being too many, and counters "
                "told to go backwards.", EVER, "none",
                Query("outrider_metrics_refused_total", "{{reason}}"), width=12,
                steps=NONE_IS_GOOD),
    ])  # fmt: skip
