"""Rows about Outrider's own health: input, journal, memory and CPU."""

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
    """Return the rows in their order on the dashboard."""
    now = Row("Outrider", ALWAYS, [mode(), *inputs()])
    return [now, _ledger(), _taken_in(), _itself()]


def _ledger() -> Row:
    return Row("Journal", ALWAYS, [
        figures("Failed writes", "While the journal cannot be written, nothing is recorded and "
                "input waits.", SPAN, "none",
                Query("increase(outrider_ledger_failures_total[$__range])", "failures"),
                steps=NONE_IS_GOOD),
        figures("Journal on disk", "Its size and its limit.", NOW, "bytes",
                Query("outrider_ledger_size_bytes", "journal"),
                Query(known("outrider_ledger_budget_bytes"), "at most")),
        figures("Age of the snapshot", "Age of the last valid snapshot; a restart replays the "
                "entries after it.", NOW, "s",
                Query("outrider_ledger_snapshot_age_seconds", "snapshot"), steps=SNAPSHOT_AGE),
        figures("Rows dropped", "Dropped early to keep the size limit.", SPAN, "none",
                Query("increase(outrider_ledger_dropped_rows_total[$__range])", "dropped"),
                steps=NONE_IS_GOOD),
        lines("Lag", "Age of the oldest unwritten entry.", MOMENT, "s",
              Query("outrider_ledger_lag_seconds", "lag"), steps=LAG),
        lines("Rows per second", "Rows written to the journal.", STEP, "none",
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
    return Row("Input", ALWAYS, [
        lines("Events per second", "Events received, by adapter.", STEP, "none",
              Query("sum by (adapter) (rate(outrider_events_total[$__rate_interval]))",
                    "{{adapter}}")),
        lines("Faulty input", "Unreadable records; events that were late, duplicate or could not "
              "be applied; impossible transitions that were repaired. A step up is a new problem.",
              EVER, "none",
              Query(rejected, "{{adapter}} rejected"),
              Query("outrider_events_duplicate_total", "{{adapter}} duplicate"),
              Query("outrider_events_late_total", "late"),
              Query("sum(outrider_events_set_aside_total)", "set aside"),
              Query(repaired, "repaired")),
        figures("Names over the limit", "Events with a user, VO, machine or other name over the "
                "limit, counted as other.", EVER, "none",
                Query("sum(outrider_names_folded_total)", "folded"), width=12,
                steps=NONE_IS_GOOD),
        figures("MQTT backlog", "Rows of the journal that wait to be published by MQTT.",
                NOW, "none", Query(known("outrider_mqtt_behind_rows"), "rows"),
                width=12).no_value("MQTT is off"),
    ])  # fmt: skip


def _itself() -> Row:
    uptime = "time() - outrider_process_start_time_seconds"
    return Row("The process", ALWAYS, [
        lines("Memory", "Resident memory.", MOMENT, "bytes",
              Query("outrider_process_resident_memory_bytes", "resident"), width=8),
        lines("CPU", "Share of one core.", STEP, "percentunit",
              Query("rate(outrider_process_cpu_seconds_total[$__rate_interval])", "CPU"),
              width=8),
        lines("Event loop lag", "Longest lag since the previous scrape.", MOMENT, "s",
              Query("outrider_loop_lag_seconds", "lag"), width=8, steps=LOOP_LAG),
        figures("Uptime", "Time since the process started, and duration of the start.", NOW, "s",
                Query(uptime, "up"), Query("outrider_start_seconds", "start took")),
        figures("Version", "Outrider's version.", NOW, "none",
                Query("outrider_build_info", "{{version}}"), text=BigValueTextMode.NAME),
        figures("Internal errors", "Policies that failed, and requests that ended in an internal "
                "error. See the log.", EVER, "none",
                Query("sum(outrider_policy_failures_total)", "policies"),
                Query("outrider_requests_failed_total", "requests"), steps=NONE_IS_GOOD),
        figures("Metrics refused", "Label sets merged into other because there were too many, and "
                "counters that would have decreased.", EVER, "none",
                Query("sum(outrider_metrics_refused_total)", "refused"), steps=NONE_IS_GOOD),
    ])  # fmt: skip
