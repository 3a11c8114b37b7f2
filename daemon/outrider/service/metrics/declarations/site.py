"""Metrics of the site: jobs, machines, energy, fairness."""

from typing import Final

from outrider.engine.accounting.distribution import WAIT_BOUNDS_S
from outrider.engine.accounting.energy import PURPOSES
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import JOB_STATE_NAMES
from outrider.service.metrics.declarations.metric import (
    SITE,
    UNKNOWN,
    Kind,
    Metric,
    counter,
    gauge,
)

MACHINE_STATES: Final = ("busy", "free", "owner", "asleep", "closed")
ENERGY_PURPOSES: Final = tuple(purpose for purpose in PURPOSES if purpose != "open")
"""Energy of open runs shrinks when they end, so it cannot be part of a counter."""

SITE_METRICS: Final[tuple[Metric, ...]] = (
    # -- jobs and machines -----------------------------------------------------------------------
    Metric(
        "job_wait_seconds",
        Kind.HISTOGRAM,
        "Seconds from a job's submission, or from when it became eligible, to its first start.",
        {"class": SITE, "vo": SITE},
        WAIT_BOUNDS_S,
    ),
    gauge("jobs", "Jobs known now.", state=JOB_STATE_NAMES),
    gauge(
        "machines",
        "Machines known now, each in one state; closed means on, without owner, not open to jobs.",
        state=MACHINE_STATES,
        cluster=SITE,
    ),
    gauge("vo_jobs", "Jobs known now, by VO.", vo=SITE, state=JOB_STATE_NAMES),
    gauge(
        "vo_longest_wait_seconds",
        "Seconds that the job of this VO has waited which waits longest for its first start; 0: "
        "none waits.",
        vo=SITE,
    ),
    gauge(
        "black_hole_machines",
        "Machines on which in the last day far more starts failed within minutes than elsewhere.",
        cluster=SITE,
    ),
    counter(
        "goodput_seconds_total",
        "CPU-seconds of runs that completed their job.",
        of=lambda core: core.accounting.goodput_s,
    ),
    counter(
        "badput_seconds_total",
        "CPU-seconds of runs that were thrown away.",
        of=lambda core: core.accounting.badput_s,
    ),
    counter(
        "job_utility_total",
        "Utility of completed jobs: unit utility of the class x CPUs asked for x seconds of work.",
        of=lambda core: core.accounting.utility.total,
    ),
    counter(
        "evictions_total",
        "Runs that ended before their job was done.",
        reason=EVICTION_REASONS,
        cluster=SITE,
    ),
    # -- energy ----------------------------------------------------------------------------------
    counter(
        "energy_joules_total",
        "Joules used, measured or by the table, each for one purpose; NaN where a machine's "
        "watts are unknown.",
        UNKNOWN,
        purpose=ENERGY_PURPOSES,
        cluster=SITE,
    ),
    counter(
        "energy_measured_joules_total",
        "The part of energy_joules_total that meters measured, in joules.",
        purpose=ENERGY_PURPOSES,
        cluster=SITE,
    ),
    gauge(
        "energy_open_joules",
        "Joules used so far by runs that have not ended; they move to goodput or badput.",
        cluster=SITE,
    ),
    gauge(
        "power_watts",
        "Watts drawn now: measured, of machines whose meter's reading holds; table, of all others. "
        "The two add up to the site's.",
        source=("table", "measured"),
    ),
    gauge("metered_machines", "Machines whose meter's reading holds now."),
    gauge(
        "metered_table_watts",
        "Watts that the table has for those machines as they are now; NaN where it lacks one of "
        "them.",
    ),
    # -- fairness --------------------------------------------------------------------------------
    gauge("fairness_utility_ratio", "Fairness since the beginning, 1 at the targets (ratio)."),
    gauge(
        "fairness_windowed_ratio", "Fairness of recent use, older use fading by half-life (ratio)."
    ),
    gauge("vo_share_ratio", "Share of all CPU-seconds that this VO got (ratio).", vo=SITE),
    gauge("vo_target_ratio", "Share of all CPU-seconds that this VO is owed (ratio).", vo=SITE),
)
