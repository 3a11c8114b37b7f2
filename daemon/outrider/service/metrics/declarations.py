"""Every metric, declared once: the registry, the reference page and the dashboards read this.

A new metric is one more entry of `METRICS`. Label values must be few: a job's name is never one.
"""

import enum
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from outrider.engine.accounting.deferrals import LATER
from outrider.engine.accounting.distribution import DECISION_BOUNDS_S, WAIT_BOUNDS_S
from outrider.engine.accounting.energy import PURPOSES
from outrider.engine.accounting.predictions import CHANCE_BINS, WINDOWS
from outrider.engine.ingest.set_aside import REASONS
from outrider.engine.scheduling.placement import WHYS
from outrider.model.decisions import ACTIONS, MODES
from outrider.model.events import EVICTION_REASONS, KIND_NAMES
from outrider.model.jobs import JOB_STATE_NAMES

PREFIX: Final = "outrider_"
SITE: Final[tuple[str, ...]] = ()
"""The values of a label that only the site knows: its clusters, VOs, policies, adapters."""

MACHINE_STATES: Final = ("busy", "free", "owner", "asleep", "closed")
ENERGY_PURPOSES: Final = tuple(purpose for purpose in PURPOSES if purpose != "open")
"""Energy of open runs shrinks when they end, so it cannot be part of a counter."""
LEDGER_TABLES: Final = ("inputs", "decisions", "outcomes", "set_aside")
REFUSED: Final = "metrics_refused_total"
FOLDED: Final = "folded"
DECREASED: Final = "decreased"

_UNITS: Final = ("seconds", "joules", "watts", "bytes", "ratio")
_UNKNOWN: Final = math.nan


class Kind(enum.Enum):
    """What a metric is; the value is its OpenMetrics type."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    STATE_SET = "stateset"
    INFO = "info"


class Metric(msgspec.Struct, frozen=True):
    """The declaration of one metric.

    Attributes:
        name: without the prefix; with its unit, and ``_total`` or ``_info`` where the kind has it.
        kind: what it is.
        help: one sentence that says what is measured, and its unit where it has one.
        labels: label names, in order, each with its closed list of values or `SITE`.
        bounds: upper bounds of a histogram's buckets, ascending, without infinity.
        begin: value of a series before it is first set; nan where nothing is known yet.
    """

    name: str
    kind: Kind
    help: str
    labels: Mapping[str, tuple[str, ...]] = {}
    bounds: tuple[float, ...] = ()
    begin: float = 0.0

    @property
    def full_name(self) -> str:
        """The name with its prefix, as queries spell it."""
        return PREFIX + self.name

    @property
    def family_name(self) -> str:
        """The full name as OpenMetrics spells it: without ``_total`` or ``_info``."""
        if self.kind is Kind.COUNTER:
            return self.full_name.removesuffix("_total")
        if self.kind is Kind.INFO:
            return self.full_name.removesuffix("_info")
        return self.full_name

    @property
    def unit(self) -> str:
        """The base unit the name ends with, or an empty string."""
        last = self.family_name.rpartition("_")[2]
        return last if last in _UNITS else ""


def _counter(name: str, text: str, begin: float = 0.0, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, Kind.COUNTER, text, labels, begin=begin)


def _gauge(name: str, text: str, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, Kind.GAUGE, text, labels, begin=_UNKNOWN)


METRICS: Final[tuple[Metric, ...]] = (
    # -- jobs and machines --------------------------------------------------------------------
    Metric(
        "job_wait_seconds",
        Kind.HISTOGRAM,
        "Seconds from a job's submission, or from when it became eligible, to its first start.",
        {"class": SITE, "vo": SITE},
        WAIT_BOUNDS_S,
    ),
    _gauge("jobs", "Jobs known now.", state=JOB_STATE_NAMES),
    _gauge(
        "machines",
        "Machines known now, each in one state; closed means on, without owner, not open to jobs.",
        state=MACHINE_STATES,
        cluster=SITE,
    ),
    _counter("goodput_seconds_total", "CPU-seconds of runs that completed their job."),
    _counter("badput_seconds_total", "CPU-seconds of runs that were thrown away."),
    _counter(
        "job_utility_total",
        "Utility of completed jobs: unit utility of the class x CPUs asked for x seconds of work.",
    ),
    _counter(
        "evictions_total",
        "Runs that ended before their job was done.",
        reason=EVICTION_REASONS,
        cluster=SITE,
    ),
    # -- energy -------------------------------------------------------------------------------
    _counter(
        "energy_joules_total",
        "Joules used, measured or by the table, each for one purpose; NaN where a machine's "
        "watts are unknown.",
        _UNKNOWN,
        purpose=ENERGY_PURPOSES,
        cluster=SITE,
    ),
    _counter(
        "energy_measured_joules_total",
        "The part of energy_joules_total that meters measured, in joules.",
        purpose=ENERGY_PURPOSES,
        cluster=SITE,
    ),
    _gauge(
        "energy_open_joules",
        "Joules used so far by runs that have not ended; they move to goodput or badput.",
        cluster=SITE,
    ),
    _gauge(
        "power_watts",
        "Watts drawn now: measured, of machines whose meter's reading holds; table, of all others. "
        "The two add up to the site's.",
        source=("table", "measured"),
    ),
    # -- fairness -----------------------------------------------------------------------------
    _gauge("fairness_utility_ratio", "Fairness since the beginning, 1 at the targets (ratio)."),
    _gauge(
        "fairness_windowed_ratio", "Fairness of recent use, older use fading by half-life (ratio)."
    ),
    _gauge("vo_share_ratio", "Share of all CPU-seconds that this VO got (ratio).", vo=SITE),
    _gauge("vo_target_ratio", "Share of all CPU-seconds that this VO is owed (ratio).", vo=SITE),
    # -- decisions and learning ---------------------------------------------------------------
    _counter(
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
    _counter(
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
    _counter(
        "policy_failures_total",
        "Whether a policy raised an error: 1 from then on, for it is asked no more; else 0.",
        policy=SITE,
    ),
    _counter(
        "placements_refused_total",
        "Starts that a policy chose and that were impossible, by why; the job stayed queued.",
        policy=SITE,
        why=WHYS,
    ),
    # -- predictions and deferrals, judged afterwards ---------------------------------------------
    _counter(
        "prediction_runs_total",
        "Runs whose eviction a policy predicted, by the probability it gave and by their end.",
        policy=SITE,
        bin=CHANCE_BINS,
        ending=("completed", "evicted"),
    ),
    _counter(
        "prediction_expected_evictions_total",
        "Evictions to be expected of those runs: the sum of the probabilities that were predicted.",
        policy=SITE,
        bin=CHANCE_BINS,
    ),
    _gauge(
        "prediction_brier_ratio",
        "Brier score of predicted evictions, 0 is best (ratio): of all runs, or recent ones, "
        "older runs fading by half in two weeks.",
        policy=SITE,
        window=WINDOWS,
    ),
    _gauge(
        "prediction_skill_ratio",
        "How much better the Brier score is than that of always saying the observed rate (ratio).",
        policy=SITE,
        window=WINDOWS,
    ),
    _gauge(
        "prediction_run_error_seconds",
        "Mean absolute error in seconds of the predicted length of runs that completed.",
        policy=SITE,
        window=WINDOWS,
    ),
    _counter(
        "deferred_jobs_total",
        "Jobs that a policy kept queued by choice, or in shadow would have, by how they ended.",
        policy=SITE,
        later=LATER,
    ),
    _counter(
        "deferred_seconds_total",
        "Seconds for which those jobs were kept queued by choice.",
        policy=SITE,
        later=LATER,
    ),
    # -- what comes in ------------------------------------------------------------------------
    _gauge(
        "input_age_seconds",
        "Seconds since the newest information from this adapter was true.",
        adapter=SITE,
    ),
    _gauge("adapter_up", "Whether the adapter reaches its source: 1 or 0.", adapter=SITE),
    _counter("events_total", "Events taken in.", adapter=SITE, kind=KIND_NAMES),
    _counter(
        "events_duplicate_total",
        "Events that told nothing new and changed nothing.",
        adapter=SITE,
    ),
    _counter(
        "events_rejected_total",
        "Records of the source that could not be read.",
        adapter=SITE,
        reason=SITE,
    ),
    _counter(
        "events_set_aside_total",
        "Events that could not be applied and changed nothing, by the reason.",
        reason=tuple(REASONS),
    ),
    _counter("events_late_total", "Events that arrived after their time had been decided."),
    _counter(
        "repairs_total",
        "Impossible transitions that were repaired, by what was repaired.",
        kind=SITE,
    ),
    # -- the ledger ---------------------------------------------------------------------------
    _counter("ledger_rows_total", "Rows written to the journal.", table=LEDGER_TABLES),
    _counter("ledger_failures_total", "Writes to the journal or a snapshot that failed."),
    _gauge("ledger_lag_seconds", "Seconds that the oldest unwritten entry has waited."),
    _gauge("ledger_size_bytes", "Bytes of the journal on disk."),
    _gauge("ledger_last_seq", "Last sequence number in the journal."),
    _gauge("ledger_snapshot_age_seconds", "Seconds since the last good snapshot."),
    # -- publishing ---------------------------------------------------------------------------
    _gauge("mqtt_connected", "Whether the MQTT broker is connected: 1 or 0; NaN without [mqtt]."),
    _counter(
        "mqtt_published_total",
        "Rows of the journal that the MQTT broker confirmed.",
        kind=("decisions", "evictions"),
    ),
    _gauge("mqtt_behind_rows", "Rows of the journal that wait to be looked through and published."),
    _counter(
        "mqtt_lost_rows_total",
        "Rows of the journal, at most, that retention removed before they could be published.",
    ),
    # -- the daemon itself --------------------------------------------------------------------
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
    _gauge(
        "loop_lag_seconds", "Longest delay of the event loop since the scrape before, in seconds."
    ),
    _counter(
        REFUSED,
        "Label sets folded into other for being too many, and counters told to go backwards.",
        reason=(FOLDED, DECREASED),
    ),
    _gauge("process_resident_memory_bytes", "Bytes of resident memory."),
    _counter("process_cpu_seconds_total", "CPU-seconds used since the process began."),
    _gauge("process_start_time_seconds", "Unix time in seconds at which the process began."),
)
