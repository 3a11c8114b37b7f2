"""The values of the evidence's metrics, from what `outrider run-twin` has written down."""

from outrider.service.config.declarations import Config, policies_of
from outrider.service.metrics.declarations.evidence import (
    ANSWERS,
    ASKED,
    BOUNDS,
    EXPECTED,
    FIDELITY_RATIOS,
    MEASURES,
)
from outrider.service.metrics.store import MetricStore
from outrider.service.twin.starts_file import StartsFile
from outrider.service.twin.twin_file import TwinFile
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.twin_states import (
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

_WEEK_S = 7 * 86_400.0


def put_evidence(
    store: MetricStore, twin: TwinWatch | None, config: Config, *, now_s: float, seen_s: float
) -> None:
    """Set every metric of the evidence; NaN where there is nothing that holds.

    Args:
        store: takes the values.
        twin: what has been written down; None: nobody looks.
        config: the configuration in force.
        now_s: Unix seconds.
        seen_s: up to when the daemon has seen its site, Unix seconds.
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
    told = None if file is None else file.answer
    by_answer = {
        "past": {} if told is None else told.past,
        "next": (told.next if told is not None and holds else None) or {},
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
    """What tells by itself how old it is, or of which time."""
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
    """Also of an answer that was refused: it may be why."""
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
    told = starts if starts_state(starts, age_s) == ANSWERED else None
    told_ever = starts is not None and starts.problem is None
    put("starts_age_seconds", age_s if told_ever else None)
    counts = None if told is None else _by_expected(told)
    for expected in EXPECTED:
        put("starts_jobs", None if counts is None else counts[expected], expected)
    for asked in ASKED:
        score = None if told is None else told.scores.get(asked)
        put("starts_scored", None if score is None else score.n, asked)
        put("starts_coverage_ratio", None if score is None else score.coverage_ratio, asked)
        put("starts_pinball_seconds", None if score is None else score.pinball_s, asked)


def _by_expected(starts: StartsFile) -> dict[str, int]:
    """Waiting jobs by what is expected of them, all of `EXPECTED`."""
    known = [job for job in starts.jobs.values() if job is not None]
    soon = sum(job.high_s <= starts.asked_s for job in known)
    return {"now": soon, "known": len(known) - soon, "not_known": len(starts.jobs) - len(known)}
