"""Metrics of the daemon: its input, the journal, publishing, and the process itself."""

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
    # -- input -----------------------------------------------------------------------------------
    gauge(
        "input_age_seconds",
        "Age of the newest information from this adapter, in seconds.",
        adapter=SITE,
    ),
    gauge(
        "adapter_up", "Set to 1 if the adapter reads all of its source now, else 0.", adapter=SITE
    ),
    counter("events_total", "Events received, without duplicates.", adapter=SITE, kind=KIND_NAMES),
    counter(
        "events_duplicate_total",
        "Duplicate events, which changed nothing.",
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
        "Events rejected because they could not be applied, by reason; they changed nothing.",
        reason=tuple(REASONS),
    ),
    counter("events_late_total", "Events that arrived after decisions for their time were made."),
    counter(
        "repairs_total",
        "Impossible state transitions that were repaired, by kind.",
        kind=SITE,
    ),
    gauge(
        "names",
        "Names that are tracked, by kind; each kind has a limit, see names_folded_total.",
        kind=KINDS,
    ),
    counter(
        "names_folded_total",
        "Events with a name beyond the limit of its kind (user, VO, machine), counted as other.",
        kind=KINDS,
    ),
    # -- the journal -----------------------------------------------------------------------------
    counter("ledger_rows_total", "Rows written to the journal.", table=LEDGER_TABLES),
    counter("ledger_failures_total", "Writes to the journal or a snapshot that failed."),
    gauge("ledger_lag_seconds", "Age in seconds of the oldest entry not yet written."),
    gauge("ledger_size_bytes", "Bytes of the journal on disk."),
    gauge(
        "ledger_budget_bytes", "Most bytes that the journal may take; NaN before the first check."
    ),
    counter(
        "ledger_dropped_rows_total",
        "Journal rows dropped before their retention time, to keep the size limit.",
    ),
    gauge("ledger_last_seq", "Last sequence number in the journal."),
    gauge("ledger_snapshot_age_seconds", "Seconds since the last good snapshot."),
    # -- publishing ------------------------------------------------------------------------------
    gauge(
        "mqtt_connected", "Set to 1 if the MQTT broker is connected, else 0; NaN without [mqtt]."
    ),
    counter(
        "mqtt_published_total",
        "Journal rows that the MQTT broker confirmed; rows sent again count again.",
        kind=("decisions", "evictions"),
    ),
    gauge("mqtt_behind_rows", "Journal rows that are not yet read for publishing."),
    counter(
        "mqtt_lost_rows_total",
        "Journal rows that retention removed before they could be published (upper bound).",
    ),
    # -- the daemon itself -----------------------------------------------------------------------
    Metric(
        "mode",
        Kind.STATE_SET,
        "Current mode of Outrider: 1 for that mode, 0 for the others.",
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
        "Ratio of the journal that is read at the start: below 1 while the daemon is starting.",
    ),
    gauge("start_seconds", "Seconds that the daemon's start took, or has taken so far."),
    gauge(
        "loop_lag_seconds",
        "Longest delay of the event loop since the previous scrape, in seconds.",
    ),
    counter(
        "requests_failed_total",
        "Requests answered with status 500: internal errors (please report).",
    ),
    counter(
        REFUSED,
        "Label sets beyond the limit, counted as other, and rejected decreases of counters.",
        reason=(FOLDED, DECREASED),
    ),
    gauge("process_resident_memory_bytes", "Bytes of resident memory."),
    counter("process_cpu_seconds_total", "CPU-seconds used since the process started."),
    gauge("process_start_time_seconds", "Unix time in seconds at which the process started."),
)
