"""The metrics as a mirror of the core: set from its totals at every scrape, never by events."""

import math
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider import __version__
from outrider.engine.accounting.deferrals import LATER
from outrider.engine.accounting.energy import PURPOSES
from outrider.engine.accounting.predictions import CHANCE_BINS, WINDOWS, Predictions
from outrider.engine.accounting.report import open_energy_j
from outrider.engine.scheduling.placement import WHYS
from outrider.model.events import KIND_NAMES
from outrider.model.jobs import RUNNING
from outrider.service.core import Core
from outrider.service.faces import job_counts, machine_counts
from outrider.service.metrics.declarations import MACHINE_STATES, METRICS
from outrider.service.metrics.registry import Registry
from outrider.service.metrics.render import negotiate, render

_PREDICTION_METRICS = [m.name for m in METRICS if m.name.startswith("prediction_")]
_PAGE_BYTES = resource.getpagesize()
_STARTED_S = time.time()


class Mirror:
    """Registry of one core.

    Args:
        core: whose totals are shown.
    """

    def __init__(self, core: Core) -> None:
        config = core.config
        self._core = core
        self.registry = Registry(
            {
                "adapter": list(core.sources),
                "class": ["interactive", "batch"],
                "cluster": core.site.cluster_names,
                "policy": [seat.name for seat in core.seats],
                "vo": list(config.shares) or ["all"],
                "version": [__version__],
                "python": [platform.python_version()],
            }
        )
        self.registry.choose_state("mode", config.mode)
        for seat in core.seats:
            if seat.predictions is None:
                for name in _PREDICTION_METRICS:
                    self.registry.numbers(name).leave_out("policy", seat.name)

    def page(
        self,
        accept: str,
        recording: Mapping[str, Any],
        loop_lag_s: float,
        publishing: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, str]:
        """The exposition and its content type.

        Args:
            accept: the client's Accept header.
            recording: ``rows``, ``failures``, ``lag_s``, ``size_bytes``, ``last_seq`` and
                ``snapshot_age_s`` of the ledger.
            loop_lag_s: longest delay of the event loop since the last scrape.
            publishing: ``connected``, ``published``, ``behind`` and ``lost`` of the publisher;
                None where nothing is published.
        """
        self._site()
        self._totals()
        self._seats()
        self._sources()
        number = self.registry.number
        for table, rows in recording["rows"].items():
            number("ledger_rows_total", table).set(rows)
        number("ledger_failures_total").set(recording["failures"])
        number("ledger_lag_seconds").set(recording["lag_s"])
        number("ledger_size_bytes").set(recording["size_bytes"])
        number("ledger_last_seq").set(recording["last_seq"])
        age_s = recording["snapshot_age_s"]
        number("ledger_snapshot_age_seconds").set(math.nan if age_s is None else age_s)
        if publishing is not None:
            self._publishing(publishing)
        number("loop_lag_seconds").set(loop_lag_s)
        self._process()
        style = negotiate(accept)
        return render(self.registry, style), style.value

    def _site(self) -> None:
        core, number = self._core, self.registry.number
        for state, n in job_counts(core).items():
            number("jobs", state).set(n)
        names = core.site.cluster_names
        counts = machine_counts(core)
        for cluster, name in enumerate(names):
            for state in MACHINE_STATES:
                number("machines", state, name).set(counts.get((state, cluster), 0))
        table_w, measured_w = _power_w(core)
        number("power_watts", "table").set(table_w)
        number("power_watts", "measured").set(measured_w)

    def _totals(self) -> None:
        core, number = self._core, self.registry.number
        accounting, names = core.accounting, core.site.cluster_names
        for (job_class, vo), waits in accounting.waits.items():
            spread = self.registry.spread("job_wait_seconds", job_class, vo)
            spread.set(waits.buckets, waits.total)
        number("goodput_seconds_total").set(accounting.goodput_s)
        number("job_utility_total").set(accounting.utility.total)
        number("badput_seconds_total").set(accounting.badput_s)
        for (reason, cluster), n in accounting.evictions.items():
            number("evictions_total", reason, names[cluster]).set(n)
        for purpose in PURPOSES:
            for cluster, joules in enumerate(accounting.energy.joules.get(purpose, ())):
                number("energy_joules_total", purpose, names[cluster]).set(joules)
            for cluster, joules in enumerate(accounting.energy.measured.get(purpose, ())):
                number("energy_measured_joules_total", purpose, names[cluster]).set(joules)
        open_j = open_energy_j(accounting, core.site)
        for cluster, name in enumerate(names):
            number("energy_open_joules", name).set(open_j.get(cluster, (0.0, 0.0))[0])
        rounds = core.rounds
        self.registry.spread("decision_seconds").set(rounds.buckets, rounds.total)
        fairness = accounting.fairness.report(core.site.now)
        number("fairness_utility_ratio").set(_known(fairness["utility"]))
        number("fairness_windowed_ratio").set(_known(fairness["windowed"]))
        for vo, share in fairness["share"].items():
            number("vo_share_ratio", vo).set(_known(share))
            number("vo_target_ratio", vo).set(fairness["target"][vo])

    def _seats(self) -> None:
        number, mode = self.registry.number, self._core.config.mode
        for seat in self._core.seats:
            number("decisions_total", seat.name, "start", mode).set(seat.starts)
            moved = seat.moves.total()
            number("decisions_total", seat.name, "defer", mode).set(
                seat.decisions - seat.starts - moved
            )
            for action, n in seat.moves.items():
                number("decisions_total", seat.name, action, mode).set(n)
            number("agreement_total", seat.name, "true").set(seat.agreed)
            number("agreement_total", seat.name, "false").set(seat.disagreed)
            self.registry.spread("reward", seat.name).set((seat.reward_n,), seat.reward_sum)
            number("policy_failures_total", seat.name).set(1 if seat.broken else 0)
            for why in WHYS:
                number("placements_refused_total", seat.name, why).set(seat.refused[why])
            for later in LATER:
                number("held_jobs_total", seat.name, later).set(seat.holds.jobs[later])
                number("hold_seconds_total", seat.name, later).set(seat.holds.seconds[later])
            if seat.predictions is not None:
                self._predictions(seat.name, seat.predictions)

    def _predictions(self, policy: str, predictions: Predictions) -> None:
        number, chances = self.registry.number, predictions.evictions.all
        for k, name in enumerate(CHANCE_BINS):
            evicted = chances.observed[k]
            number("prediction_runs_total", policy, name, "completed").set(chances.n[k] - evicted)
            number("prediction_runs_total", policy, name, "evicted").set(evicted)
            number("prediction_expected_evictions_total", policy, name).set(chances.predicted[k])
        report = predictions.report(self._core.site.now)
        for window in WINDOWS:
            evictions = report["evictions"][window]
            number("prediction_brier_ratio", policy, window).set(evictions["brier"])
            number("prediction_skill_ratio", policy, window).set(evictions["skill"])
            error_s = report["run_s"][window]["mean_absolute_error"]
            number("prediction_run_error_seconds", policy, window).set(error_s)

    def _sources(self) -> None:
        core, number = self._core, self.registry.number
        for label, source in core.sources.items():
            number("input_age_seconds", label).set(source.age_s)
            number("adapter_up", label).set(1 if source.up else 0)
            counts = core.intake.counts[label]
            for kind in KIND_NAMES:
                number("events_total", label, kind).set(counts[kind])
            number("events_duplicate_total", label).set(core.intake.duplicates[label])
            for reason, n in source.rejected.items():
                number("events_rejected_total", label, reason).set(n)
        number("events_late_total").set(core.intake.late)
        for kind, n in core.intake.tracker.repairs.items():
            number("repairs_total", kind).set(n)

    def _publishing(self, figures: Mapping[str, Any]) -> None:
        number = self.registry.number
        number("mqtt_connected").set(1 if figures["connected"] else 0)
        for kind, n in figures["published"].items():
            number("mqtt_published_total", kind).set(n)
        number("mqtt_behind_rows").set(figures["behind"])
        number("mqtt_lost_rows_total").set(figures["lost"])

    def _process(self) -> None:
        number = self.registry.number
        number("process_cpu_seconds_total").set(time.process_time())
        number("process_start_time_seconds").set(_STARTED_S)
        number("process_resident_memory_bytes").set(resident_bytes())


def resident_bytes() -> float:
    """Bytes of resident memory of this process; nan where the system does not tell."""
    if sys.platform != "linux":
        return math.nan
    pages = Path(f"/proc/{os.getpid()}/statm").read_text(encoding="ascii").split()[1]
    return float(int(pages) * _PAGE_BYTES)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _power_w(core: Core) -> tuple[float, float]:
    """Watts of all machines now, in two parts that add up.

    Returns:
        by the table, of machines without a reading that holds (nan where one is unknown), and
        measured, of the others.
    """
    energy, site = core.accounting.energy, core.site
    working = [0] * len(site.specs)
    for job in site.jobs.values():
        if job.state == RUNNING:
            working[job.machine] += job.cpus
    table_w = measured_w = 0.0
    for m, spec in enumerate(site.specs):
        if spec is None:
            continue
        power = energy.machine(m)
        watts = power.measured_w(site.now)
        if watts is None:
            table_w += power.table_w(working[m], site.now)
        else:
            measured_w += watts
    return table_w, measured_w
