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
"""Purposes without "open": energy of open runs shrinks when they end, so it is no counter."""

SITE_METRICS: Final[tuple[Metric, ...]] = (
    # -- jobs and machines -----------------------------------------------------------------------
    Metric(
        "job_wait_seconds",
        Kind.HISTOGRAM,
        "Wait of jobs in seconds: from submission, or from becoming eligible, to the first start.",
        {"class": SITE, "vo": SITE},
        WAIT_BOUNDS_S,
    ),
    gauge("jobs", "Jobs now, by state.", state=JOB_STATE_NAMES),
    gauge(
        "machines",
        "Machines now, each in one state; closed means on, without owner, not open to jobs.",
        state=MACHINE_STATES,
        cluster=SITE,
    ),
    gauge("vo_jobs", "Jobs now, by VO and state.", vo=SITE, state=JOB_STATE_NAMES),
    gauge(
        "vo_longest_wait_seconds",
        "Longest wait in seconds of this VO's jobs that have not started yet; 0: none waits.",
        vo=SITE,
    ),
    gauge(
        "black_hole_machines",
        "Machines on which far more starts failed within minutes than elsewhere, in the last day.",
        cluster=SITE,
    ),
    counter(
        "goodput_seconds_total",
        "CPU-seconds of runs that completed their job.",
        of=lambda core: core.accounting.goodput_s,
    ),
    counter(
        "badput_seconds_total",
        "CPU-seconds wasted by runs that did not complete their job.",
        of=lambda core: core.accounting.badput_s,
    ),
    counter(
        "job_utility_total",
        "Utility of completed jobs: unit utility of the class x requested CPUs x seconds of work.",
        of=lambda core: core.accounting.utility.total,
    ),
    counter(
        "evictions_total",
        "Runs that ended before their job was done, by reason.",
        reason=EVICTION_REASONS,
        cluster=SITE,
    ),
    # -- energy ----------------------------------------------------------------------------------
    counter(
        "energy_joules_total",
        "Joules used, measured or from configured watts, by purpose; NaN if a machine's watts are "
        "unknown.",
        UNKNOWN,
        purpose=ENERGY_PURPOSES,
        cluster=SITE,
    ),
    counter(
        "energy_measured_joules_total",
        "Part of energy_joules_total that meters measured, in joules.",
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
        "Watts drawn now. measured: machines with a current meter reading; table: configured watts "
        "of all others. The two add up to the site's power.",
        source=("table", "measured"),
    ),
    gauge("metered_machines", "Machines with a current meter reading."),
    gauge(
        "metered_table_watts",
        "Configured watts of those machines in their current state; NaN if one has none.",
    ),
    # -- fairness --------------------------------------------------------------------------------
    gauge("fairness_utility_ratio", "Fairness since the beginning; 1: on target (ratio)."),
    gauge(
        "fairness_windowed_ratio",
        "Fairness of recent use, with a half-life; 1: on target (ratio).",
    ),
    gauge("vo_share_ratio", "Share of all CPU-seconds that this VO received (ratio).", vo=SITE),
    gauge("vo_target_ratio", "Target share of all CPU-seconds of this VO (ratio).", vo=SITE),
)
