"""Metrics of the daemon: what comes in, the ledger, publishing, and the process itself."""

from typing import Final

from outrider.engine.ingest.bounded_names import KINDS
from outrider.engine.ingest.set_aside import REASONS
from outrider.model.events import KIND_NAMES
from outrider.model.modes import MODES
from outrider.service.metrics.declarations.metric import SITE, Kind, Metric, counter, gauge

LEDGER_TABLES: Final = ("inputs", "decisions", "outcomes", "set_aside")
REFUSED: Final = "metrics_refused_total"
FOLDED: Final = "folded"
DECREASED: Final = "decreased"

DAEMON_METRICS: Final[tuple[Metric, ...]] = (
    # -- what comes in ---------------------------------------------------------------------------
    gauge(
        "input_age_seconds",
        "Seconds since the newest information from this adapter was true.",
        adapter=SITE,
    ),
    gauge(
        "adapter_up", "Whether the adapter reads all of its source, lately: 1 or 0.", adapter=SITE
    ),
    counter("events_total", "Events taken in.", adapter=SITE, kind=KIND_NAMES),
    counter(
        "events_duplicate_total",
        "Events that told nothing new and changed nothing.",
        adapter=SITE,
    ),
    counter(
        "events_rejected_total",
        "Records of the source that could not be read.",
        adapter=SITE,
        reason=SITE,
    ),
    counter(
        "events_set_aside_total",
        "Events that could not be applied and changed nothing, by the reason.",
        reason=tuple(REASONS),
    ),
    counter("events_late_total", "Events that arrived after their time had been decided."),
    counter(
        "repairs_total",
        "Impossible transitions that were repaired, by what was repaired.",
        kind=SITE,
    ),
    gauge(
        "names",
        "Names that are followed: there is a bound of each kind, see names_folded_total.",
        kind=KINDS,
    ),
    counter(
        "names_folded_total",
        "Events that named a user, VO, machine and so on beyond the bound, counted as other.",
        kind=KINDS,
    ),
    # -- the ledger ------------------------------------------------------------------------------
    counter("ledger_rows_total", "Rows written to the journal.", table=LEDGER_TABLES),
    counter("ledger_failures_total", "Writes to the journal or a snapshot that failed."),
    gauge("ledger_lag_seconds", "Seconds that the oldest unwritten entry has waited."),
    gauge("ledger_size_bytes", "Bytes of the journal on disk."),
    gauge(
        "ledger_budget_bytes", "Most bytes that the journal may take; NaN before the first check."
    ),
    counter("ledger_dropped_rows_total", "Rows dropped before their time, to keep the budget."),
    gauge("ledger_last_seq", "Last sequence number in the journal."),
    gauge("ledger_snapshot_age_seconds", "Seconds since the last good snapshot."),
    # -- publishing ------------------------------------------------------------------------------
    gauge("mqtt_connected", "Whether the MQTT broker is connected: 1 or 0; NaN without [mqtt]."),
    counter(
        "mqtt_published_total",
        "Rows of the journal that the MQTT broker confirmed; those sent again count again.",
        kind=("decisions", "evictions"),
    ),
    gauge("mqtt_behind_rows", "Rows of the journal that wait to be looked through and published."),
    counter(
        "mqtt_lost_rows_total",
        "Rows of the journal, at most, that retention removed before they could be published.",
    ),
    # -- the daemon itself -----------------------------------------------------------------------
    Metric(
        "mode",
        Kind.STATE_SET,
        "The mode Outrider is in: 1 for that one, 0 for the others.",
        {"outrider_mode": MODES},
    ),
    Metric(
        "build_info",
        Kind.INFO,
        "Versions of Outrider and of the Python that runs it.",
        {"version": SITE, "python": SITE},
        begin=1.0,
    ),
    gauge(
        "start_ratio",
        "Ratio of the journal that the start has read: below 1 while the daemon is starting.",
    ),
    gauge("start_seconds", "Seconds that the start took, or has taken so far."),
    gauge(
        "loop_lag_seconds", "Longest delay of the event loop since the scrape before, in seconds."
    ),
    counter(
        "requests_failed_total",
        "Requests answered with 500: a fault of Outrider's own in making the answer.",
    ),
    counter(
        REFUSED,
        "Label sets folded into other for being too many, and counters told to go backwards.",
        reason=(FOLDED, DECREASED),
    ),
    gauge("process_resident_memory_bytes", "Bytes of resident memory."),
    counter("process_cpu_seconds_total", "CPU-seconds used since the process began."),
    gauge("process_start_time_seconds", "Unix time in seconds at which the process began."),
)
