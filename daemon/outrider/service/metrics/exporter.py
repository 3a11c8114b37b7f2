"""The metrics exporter of a core: it reads totals at every scrape, and counts no events itself."""

import math
import os
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outrider import __version__
from outrider.engine.accounting.deferrals import LATER
from outrider.engine.accounting.energy import PURPOSES
from outrider.engine.accounting.predictions import CHANCE_BINS, WINDOWS, Predictions
from outrider.engine.accounting.report import open_energy_j
from outrider.engine.scheduling.placement import WHYS
from outrider.model.events import KIND_NAMES
from outrider.model.jobs import JOB_STATE_NAMES
from outrider.service.config.declarations import Config, policies_of
from outrider.service.core.core import Core
from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.evidence import (
    ANSWERS,
    ASKED,
    BOUNDS,
    EXPECTED,
    FIDELITY_RATIOS,
    MEASURES,
)
from outrider.service.metrics.declarations.site import MACHINE_STATES
from outrider.service.metrics.store import MetricStore, Snapshot
from outrider.service.shapes.status import LeverStatus
from outrider.service.twin.starts_file import StartsFile
from outrider.service.twin.twin_file import TwinFile
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.status import (
    NO_POWER,
    NO_QUEUE,
    job_counts,
    machine_counts,
    power_w,
    vo_queues,
)
from outrider.service.views.twin import (
    ANSWERED,
    CANDIDATE_STATES,
    HOLDS,
    REFUSED,
    answer_state,
    candidate_states,
    forecast_state,
    starts_state,
)
from outrider.twin.answer_file import Fidelity, Ratio

_PREDICTION_METRICS = [m.name for m in METRICS if m.name.startswith("prediction_")]
_PAGE_BYTES = resource.getpagesize()
_STARTED_S = time.time()
_SPARING = 100.0
"""Pause after a scan of all jobs by VO, as a multiple of its duration.

So scans take 1 % of the time at most; with 100,000 jobs the figures are some seconds old.
"""


class MetricsExporter:
    """Collector of the values of all metrics from one core.

    Args:
        core: the core whose totals are shown.
    """

    def __init__(self, core: Core) -> None:
        config = core.config
        self._core = core
        self._merged_vos_n = 0
        self._queues: dict[str, tuple[list[int], float]] = {}
        self._queues_due_s = 0.0
        self._gaps: frozenset[str] = frozenset()
        self._store = MetricStore(
            {
                "adapter": list(core.sources),
                "class": ["interactive", "batch"],
                "cluster": core.site.cluster_names,
                "policy": [runner.name for runner in core.runners],
                "vo": list(config.shares) or ["all"],
                "version": [__version__],
                "python": [platform.python_version()],
            }
        )
        self._store.choose_state("mode", config.mode)
        for runner in core.runners:
            if runner.predictions is None:
                for name in _PREDICTION_METRICS:
                    self._store.leave_out(name, "policy", runner.name)

    def take(
        self,
        recording: Mapping[str, Any],
        loop_lag_s: float,
        publishing: Mapping[str, Any] | None = None,
        failed_requests: int = 0,
        start_s: float = 0.0,
        levers: Sequence[LeverStatus] = (),
        twin: TwinWatch | None = None,
    ) -> Snapshot:
        """Return the values of all metrics now. Call it on the event loop, which owns the core.

        Args:
            recording: ``rows``, ``failures``, ``lag_s``, ``size_bytes``, ``last_seq`` and
                ``snapshot_age_s`` of the journal.
            loop_lag_s: longest delay of the event loop since the last scrape.
            publishing: ``connected``, ``published``, ``behind`` and ``lost`` of the publisher;
                None if nothing is published.
            failed_requests: requests that ended in an internal error.
            start_s: duration of the start, seconds.
            levers: the state of each.
            twin: the result files of the twin process; None: they are not watched.
        """
        for metric in METRICS:
            if metric.of is not None:
                self._store.set(metric.name, metric.of(self._core))
        self._site()
        self._totals()
        self._policies()
        self._sources()
        self._ledger(recording)
        if publishing is not None:
            self._publishing(publishing)
        for lever in levers:
            of = lever.adapter, lever.name
            for action, n in lever.standing.items():
                self._store.set("leases", n, *of, action)
            for outcome, n in lever.changes.items():
                self._store.set("lever_changes_total", n, *of, outcome)
        core = self._core
        put_evidence(self._store, twin, core.config, now_s=time.time(), seen_s=core.now_s)
        self._store.set("loop_lag_seconds", loop_lag_s)
        self._store.set("requests_failed_total", failed_requests)
        self._store.set("start_ratio", 1.0)
        self._store.set("start_seconds", start_s)
        self._process()
        return self._store.snapshot()

    def _site(self) -> None:
        core, put = self._core, self._store.set
        self._gaps = frozenset(gap.label for gap in core.gaps)
        for state, n in job_counts(core).items():
            put("jobs", None if self._gaps else n, state)
        names = core.site.cluster_names
        counts, unknown = machine_counts(core), self._unknown_clusters()
        for cluster, name in enumerate(names):
            for state in MACHINE_STATES:
                found = None if cluster in unknown else counts.get((state, cluster), 0)
                put("machines", found, state, name)
        holes = Counter(
            core.site.machine_cluster[hole.machine]
            for hole in core.accounting.failed_starts.black_holes(core.site.now)
        )
        for cluster, name in enumerate(names):
            put("black_hole_machines", None if cluster in unknown else holes[cluster], name)
        power = NO_POWER if self._gaps else power_w(core)
        put("power_watts", power.table_w, "table")
        put("power_watts", power.measured_w, "measured")
        put("metered_machines", power.metered_n)
        put("metered_table_watts", power.metered_table_w)

    def _unknown_clusters(self) -> frozenset[int]:
        """Return the clusters whose present state is unknown, as a source of theirs has no data.

        With one of several sources down, those of the others continue. A machine that was not
        reported since the daemon started may be of any source.
        """
        core, gaps = self._core, self._gaps
        clusters = core.site.machine_cluster
        if len(gaps) == len(core.sources):
            return frozenset(range(len(core.site.cluster_names)))
        if not gaps:
            return frozenset()
        label_of = core.machine_sources.label_of
        names = enumerate(core.merger.normaliser.machine_names)
        return frozenset(clusters[m] for m, name in names if label_of(name) in {*gaps, None})

    def _totals(self) -> None:
        core, put = self._core, self._store.set
        observe = self._store.set_observations
        accounting, names = core.accounting, core.site.cluster_names
        fairness = accounting.fairness.report(core.site.now)
        if accounting.merged_vos_n != self._merged_vos_n:
            self._merged_vos_n = accounting.merged_vos_n
            self._store.keep("job_wait_seconds", accounting.waits)
            for name in ("vo_share_ratio", "vo_target_ratio", "vo_longest_wait_seconds"):
                self._store.keep(name, [(vo,) for vo in fairness["share"]])
            in_states = [(vo, state) for vo in fairness["share"] for state in JOB_STATE_NAMES]
            self._store.keep("vo_jobs", in_states)
        for (job_class, vo), waits in accounting.waits.items():
            observe("job_wait_seconds", waits.buckets, waits.total, job_class, vo)
        for (reason, cluster), n in accounting.evictions.items():
            put("evictions_total", n, reason, names[cluster])
        for purpose in PURPOSES:
            for cluster, joules in enumerate(accounting.energy.joules.get(purpose, ())):
                put("energy_joules_total", joules, purpose, names[cluster])
            for cluster, joules in enumerate(accounting.energy.measured.get(purpose, ())):
                put("energy_measured_joules_total", joules, purpose, names[cluster])
        open_j, unknown = open_energy_j(accounting, core.site), self._unknown_clusters()
        for cluster, name in enumerate(names):
            known_j = None if cluster in unknown else open_j.get(cluster, (0.0, 0.0))[0]
            put("energy_open_joules", known_j, name)
        observe("decision_seconds", core.pass_times.buckets, core.pass_times.total)
        put("fairness_utility_ratio", fairness["utility"])
        put("fairness_windowed_ratio", fairness["windowed"])
        self._vos(fairness["share"], fairness["target"])

    def _vos(self, shares: Mapping[str, float | None], targets: Mapping[str, float]) -> None:
        core, put = self._core, self._store.set
        clock_s = time.monotonic()
        if clock_s >= self._queues_due_s:
            self._queues = vo_queues(core)
            self._queues_due_s = clock_s + _SPARING * (time.monotonic() - clock_s)
        for vo in shares:
            counts, longest_s = self._queues.get(vo, NO_QUEUE)
            for state, n in zip(JOB_STATE_NAMES, counts, strict=True):
                put("vo_jobs", None if self._gaps else n, vo, state)
            put("vo_longest_wait_seconds", None if self._gaps else longest_s, vo)
        for vo, share in shares.items():
            put("vo_share_ratio", share, vo)
            put("vo_target_ratio", targets[vo], vo)

    def _policies(self) -> None:
        observe = self._store.set_observations
        put, mode = self._store.set, self._core.config.mode
        for runner in self._core.runners:
            put("decisions_total", runner.starts, runner.name, "start", mode)
            moved = runner.moves.total()
            kept = runner.decisions - runner.starts - moved
            put("decisions_total", kept, runner.name, "defer", mode)
            for action, n in runner.moves.items():
                put("decisions_total", n, runner.name, action, mode)
            put("agreement_total", runner.agreed, runner.name, "true")
            put("agreement_total", runner.disagreed, runner.name, "false")
            observe("reward", (runner.reward_n,), runner.reward_sum, runner.name)
            put("policy_failures_total", 1 if runner.broken else 0, runner.name)
            for why in WHYS:
                put("placements_refused_total", runner.refused[why], runner.name, why)
            for later in LATER:
                put("deferred_jobs_total", runner.deferrals.jobs[later], runner.name, later)
                put("deferred_seconds_total", runner.deferrals.seconds[later], runner.name, later)
            if runner.predictions is not None:
                self._predictions(runner.name, runner.predictions)

        for policy in self._core.policies_without_runner:
            put("policy_failures_total", 1, policy)

    def _predictions(self, policy: str, predictions: Predictions) -> None:
        put, chances = self._store.set, predictions.evictions.all
        for k, name in enumerate(CHANCE_BINS):
            evicted = chances.observed[k]
            put("prediction_runs_total", chances.n[k] - evicted, policy, name, "completed")
            put("prediction_runs_total", evicted, policy, name, "evicted")
            put("prediction_expected_evictions_total", chances.predicted[k], policy, name)
        report = predictions.report(self._core.site.now)
        for window in WINDOWS:
            evictions = report["evictions"][window]
            put("prediction_brier_ratio", evictions["brier"], policy, window)
            put("prediction_skill_ratio", evictions["skill"], policy, window)
            error_s = report["run_s"][window]["mean_absolute_error"]
            put("prediction_run_error_seconds", error_s, policy, window)

    def _sources(self) -> None:
        core, put = self._core, self._store.set
        for label, source in core.sources.items():
            put("input_age_seconds", source.age_s, label)
            put("adapter_up", 1 if source.up else 0, label)
            counts = core.merger.counts[label]
            for kind in KIND_NAMES:
                put("events_total", counts[kind], label, kind)
            put("events_duplicate_total", core.merger.duplicates[label], label)
            for reason, n in source.rejected.items():
                put("events_rejected_total", n, label, reason)
        for reason, n in core.merger.set_aside.items():
            put("events_set_aside_total", n, reason)
        put("events_late_total", core.merger.late)
        for kind, names in core.names.by_kind.items():
            put("names", len(names), kind)
            put("names_folded_total", names.folded, kind)
        for kind, n in core.merger.normaliser.repairs.items():
            put("repairs_total", n, kind)

    def _ledger(self, figures: Mapping[str, Any]) -> None:
        put = self._store.set
        for table, rows in figures["rows"].items():
            put("ledger_rows_total", rows, table)
        put("ledger_failures_total", figures["failures"])
        put("ledger_lag_seconds", figures["lag_s"])
        put("ledger_size_bytes", figures["size_bytes"])
        put("ledger_budget_bytes", figures.get("budget_bytes"))
        put("ledger_dropped_rows_total", figures.get("dropped_rows", 0))
        put("ledger_last_seq", figures["last_seq"])
        put("ledger_snapshot_age_seconds", figures["snapshot_age_s"])

    def _publishing(self, figures: Mapping[str, Any]) -> None:
        put = self._store.set
        put("mqtt_connected", 1 if figures["connected"] else 0)
        for kind, n in figures["published"].items():
            put("mqtt_published_total", n, kind)
        put("mqtt_behind_rows", figures["behind"])
        put("mqtt_lost_rows_total", figures["lost"])

    def _process(self) -> None:
        put = self._store.set
        put("process_cpu_seconds_total", time.process_time())
        put("process_start_time_seconds", _STARTED_S)
        put("process_resident_memory_bytes", resident_bytes())


def resident_bytes() -> float:
    """Return the resident memory of this process in bytes; nan except on Linux."""
    if sys.platform != "linux":
        return math.nan
    pages = Path(f"/proc/{os.getpid()}/statm").read_text(encoding="ascii").split()[1]
    return float(int(pages) * _PAGE_BYTES)


# -- evidence --------------------------------------------------------------------------------------
# The values of the evidence metrics, from the files that `outrider run-twin` writes.

_WEEK_S = 7 * 86_400.0


def put_evidence(
    store: MetricStore, twin: TwinWatch | None, config: Config, *, now_s: float, seen_s: float
) -> None:
    """Set every metric of the evidence; NaN if there is no valid value.

    Args:
        store: receives the values.
        twin: the result files of the twin process; None: they are not watched.
        config: the active configuration.
        now_s: Unix seconds.
        seen_s: time up to which the daemon has seen its site, Unix seconds.
    """
    file = None if twin is None else twin.file
    state = answer_state(file, config, now_s)
    store.choose_state("twin_state", state)
    store.choose_state("twin_forecast_state", forecast_state(file, config, now_s))
    _put_ratios(store, file, config, now_s)
    _put_times(store, file)
    answer = file.answer if file is not None and state in (ANSWERED, REFUSED) else None
    _put_fidelity(store, None if answer is None else answer.fidelity)
    starts = None if twin is None else twin.starts
    age_s = None if twin is None or starts is None else twin.starts_age_s(starts.asked_s, seen_s)
    store.choose_state("starts_state", starts_state(starts, age_s))
    _put_starts(store, starts, age_s)


def _put_ratios(store: MetricStore, file: TwinFile | None, config: Config, now_s: float) -> None:
    states = candidate_states(file, config, now_s)
    holds = forecast_state(file, config, now_s) == HOLDS
    result = None if file is None else file.answer
    by_answer = {
        "past": {} if result is None else result.past,
        "next": (result.next if result is not None and holds else None) or {},
    }
    for policy in policies_of(config):
        for state in CANDIDATE_STATES:
            store.set("twin_candidate_state", states[policy] == state, policy, state)
        for answer in ANSWERS:
            ratios = by_answer[answer].get(policy, {}) if states[policy] == ANSWERED else {}
            for measure in MEASURES:
                ratio = ratios.get(f"{measure}_ratio")
                for bound in BOUNDS:
                    value = _bound(ratio, bound)
                    store.set("twin_ratio", value, policy, answer, measure, bound)


def _bound(ratio: Ratio | None, bound: str) -> float | None:
    if ratio is None:
        return None
    return {"estimate": ratio.estimate, "low": ratio.low, "high": ratio.high}[bound]


def _put_times(store: MetricStore, file: TwinFile | None) -> None:
    """Set the metrics that carry their own time or period, and so are shown even if stale."""
    put, answer = store.set, None if file is None else file.answer
    window = None if answer is None else answer.window
    basis = None if answer is None or answer.next is None else answer.basis
    present = None if file is None else file.present
    weeks = None if file is None or basis is None else file.next_weeks
    put("twin_asked_timestamp_seconds", None if file is None else file.asked_s)
    put("twin_failed_askings", 0 if file is None else file.failures)
    put("twin_window_timestamp_seconds", None if window is None else window.begin_s, "begin")
    put("twin_window_timestamp_seconds", None if window is None else window.end_s, "end")
    put("twin_forecast_window_seconds", None if weeks is None else weeks * _WEEK_S)
    put("twin_load_cpus", None if basis is None else basis.load_cpus, "past")
    put("twin_load_cpus", None if present is None else present.load_cpus, "now")
    put("twin_waste_ratio", None if basis is None else basis.waste_share, "past")
    put("twin_waste_ratio", None if present is None else present.waste_share, "now")


def _put_fidelity(store: MetricStore, found: Fidelity | None) -> None:
    """Set the fidelity, also of a refused result: it may be the cause."""
    put = store.set
    fidelity = found if found is not None and found.parts else Fidelity(False)
    put("twin_fidelity_passed", fidelity.passed if fidelity.parts else None)
    for part in FIDELITY_RATIOS:
        put("twin_fidelity_ratio", fidelity.parts.get(part), part)
        put("twin_fidelity_bound_ratio", fidelity.bounds.get(part), part)
    put("twin_fidelity_start_delay_seconds", fidelity.parts.get("start_delay_s"))
    put("twin_fidelity_start_delay_bound_seconds", fidelity.bounds.get("start_delay_s"))


def _put_starts(store: MetricStore, starts: StartsFile | None, age_s: float | None) -> None:
    put = store.set
    valid = starts if starts_state(starts, age_s) == ANSWERED else None
    has_starts = starts is not None and starts.problem is None
    put("starts_age_seconds", age_s if has_starts else None)
    counts = None if valid is None else _by_expected(valid)
    for expected in EXPECTED:
        put("starts_jobs", None if counts is None else counts[expected], expected)
    for asked in ASKED:
        score = None if valid is None else valid.scores.get(asked)
        put("starts_scored", None if score is None else score.n, asked)
        put("starts_coverage_ratio", None if score is None else score.coverage_ratio, asked)
        put("starts_pinball_seconds", None if score is None else score.pinball_s, asked)


def _by_expected(starts: StartsFile) -> dict[str, int]:
    """Return the number of waiting jobs by their expected start, for all of `EXPECTED`."""
    known = [job for job in starts.jobs.values() if job is not None]
    soon = sum(job.high_s <= starts.asked_s for job in known)
    return {"now": soon, "known": len(known) - soon, "not_known": len(starts.jobs) - len(known)}
