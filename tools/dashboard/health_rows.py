"""Rows about Outrider's own health: what it takes in, records and costs."""

from typing import Final

from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import known
from tools.dashboard.now_rows import ALWAYS, inputs, mode
from tools.dashboard.panels import (
    EVER,
    MOMENT,
    NONE_IS_GOOD,
    NOW,
    SPAN,
    STEP,
    Query,
    Row,
    Steps,
    figures,
    lines,
)

LAG: Final[Steps] = ((None, "green"), (10, "yellow"), (60, "red"))
LOOP_LAG: Final[Steps] = ((None, "green"), (0.1, "yellow"), (1, "red"))
SNAPSHOT_AGE: Final[Steps] = ((None, "green"), (3_600, "yellow"), (86_400, "red"))


def health_rows() -> list[Row]:
    """The rows, in their order on the page."""
    now = Row("Outrider", ALWAYS, [mode(), *inputs()])
    return [now, _ledger(), _taken_in(), _itself()]


def _ledger() -> Row:
    return Row("Ledger", ALWAYS, [
        figures("Writes that failed", "While the journal cannot be written nothing is recorded "
                "and input is held back.", SPAN, "none",
                Query("increase(outrider_ledger_failures_total[$__range])", "failures"),
                steps=NONE_IS_GOOD),
        figures("Journal on disk", "Its size, and the most that it may take.", NOW, "bytes",
                Query("outrider_ledger_size_bytes", "journal"),
                Query(known("outrider_ledger_budget_bytes"), "at most")),
        figures("Age of the snapshot", "How old the last good one is: a restart replays what came "
                "after.", NOW, "s",
                Query("outrider_ledger_snapshot_age_seconds", "snapshot"), steps=SNAPSHOT_AGE),
        figures("Rows dropped", "Before their time, to keep that size.", SPAN, "none",
                Query("increase(outrider_ledger_dropped_rows_total[$__range])", "dropped"),
                steps=NONE_IS_GOOD),
        lines("Lag", "How long the oldest unwritten entry has waited.", MOMENT, "s",
              Query("outrider_ledger_lag_seconds", "lag"), steps=LAG),
        lines("Rows a second", "Written to the journal.", STEP, "none",
              Query("rate(outrider_ledger_rows_total[$__rate_interval])", "{{table}}")),
    ])  # fmt: skip


def _taken_in() -> Row:
    # An adapter that rejected nothing has no series yet: zero, not a hole. Totals and no
    # rates: a series is born with its first record, and a rate would miss that one.
    rejected = (
        "sum by (adapter) (outrider_events_rejected_total) "
        "or 0 * sum by (adapter) (outrider_events_duplicate_total)"
    )
    repaired = "sum(outrider_repairs_total) or 0 * sum(outrider_events_late_total)"
    return Row("What comes in", ALWAYS, [
        lines("Events", "Taken in, a second.", STEP, "none",
              Query("sum by (adapter) (rate(outrider_events_total[$__rate_interval]))",
                    "{{adapter}}")),
        lines("Input that was not as it should be", "Records that could not be read, events "
              "too late for their time, told twice or not to be applied, impossible transitions "
              "that were mended. A step up is something new.", EVER, "none",
              Query(rejected, "{{adapter}} rejected"),
              Query("outrider_events_duplicate_total", "{{adapter}} duplicate"),
              Query("outrider_events_late_total", "late"),
              Query("sum(outrider_events_set_aside_total)", "set aside"),
              Query(repaired, "repaired")),
        figures("Names beyond the bound", "Events that named a user, VO, machine and so on beyond "
                "the bound, counted as other.", EVER, "none",
                Query("sum(outrider_names_folded_total)", "folded"), width=12,
                steps=NONE_IS_GOOD),
        figures("Behind in publishing", "Rows of the journal that wait to be published by MQTT.",
                NOW, "none", Query(known("outrider_mqtt_behind_rows"), "rows"),
                width=12).no_value("does not publish by MQTT"),
    ])  # fmt: skip


def _itself() -> Row:
    uptime = "time() - outrider_process_start_time_seconds"
    return Row("The process", ALWAYS, [
        lines("Memory", "Resident.", MOMENT, "bytes",
              Query("outrider_process_resident_memory_bytes", "resident"), width=8),
        lines("CPU", "Share of one core.", STEP, "percentunit",
              Query("rate(outrider_process_cpu_seconds_total[$__rate_interval])", "CPU"),
              width=8),
        lines("Lag of the event loop", "Longest since the scrape before.", MOMENT, "s",
              Query("outrider_loop_lag_seconds", "lag"), width=8, steps=LOOP_LAG),
        figures("Up for", "Since the process began, and how long the start took.", NOW, "s",
                Query(uptime, "up"), Query("outrider_start_seconds", "start took")),
        figures("Version", "Outrider's version.", NOW, "none",
                Query("outrider_build_info", "{{version}}"), text=BigValueTextMode.NAME),
        figures("Faults", "Policies that failed, and requests that a fault of Outrider's own "
                "answered. The log has the errors.", EVER, "none",
                Query("sum(outrider_policy_failures_total)", "policies"),
                Query("outrider_requests_failed_total", "requests"), steps=NONE_IS_GOOD),
        figures("Metrics refused", "Label sets folded into other for being too many, and counters "
                "told to go backwards.", EVER, "none",
                Query("sum(outrider_metrics_refused_total)", "refused"), steps=NONE_IS_GOOD),
    ])  # fmt: skip
