"""A walk through a log that asks for the start of every waiting job, as somebody would have then.

Asked is at the submission of each job that does not start at once, and then at each full hour of
the log's clock while it waits. At fractions of its wait it would be told how long that is.
"""

from collections.abc import Callable, Iterator

import numpy as np

from outrider.model.disciplines import STRICT, Discipline
from outrider.model.localtime import DAY_S, HOUR_S
from outrider.twin.starts.expected_starts import expected_starts
from outrider.twin.starts.job_log import JobLog
from outrider.twin.starts.questions import FEATURES, LEVELS, Questions
from outrider.twin.starts.queue_state import NO_ARRIVALS, Floats, Ints, Jobs, QueueState
from outrider.twin.starts.run_time_history import RunTimeHistory
from outrider.twin.starts.site_at import SiteAt

_NEW_BELOW = 3  # run times known of a user


def walk(
    log: JobLog,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> Questions:
    """All questions, with the quantiles of the replicates and what came of them.

    Args:
        log: the truth, of which each answer is told what was known when it was asked.
        discipline: the rule that is carried out.
        replicates: for each question.
        rng: chance.
        progress: called from time to time with the ratio of the log that has passed.
    """
    rounds = list(_rounds(log, discipline, replicates, rng, progress))
    if not rounds:
        rounds.append((np.empty(0, np.int64), 0.0, np.empty((0, len(LEVELS))), _nothing()))
    job = np.concatenate([asked for asked, *_ in rounds])
    asked_s = np.concatenate([np.full(len(asked), time_s) for asked, time_s, *_ in rounds])
    return Questions(
        job, asked_s, log.submit_s[job] == asked_s,
        np.concatenate([quantiles_s for _, _, quantiles_s, _ in rounds]),
        np.concatenate([known for *_, known in rounds]), log.start_s[job] - asked_s,
    )  # fmt: skip


def _rounds(
    log: JobLog,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> Iterator[tuple[Ints, float, Floats, Floats]]:
    """One item a moment: jobs asked for, the moment, (jobs, levels) and (jobs, features)."""
    site = SiteAt(log)
    begin_s, span_s = float(log.submit_s[0]), max(1.0, float(np.ptp(log.submit_s)))
    while (time_s := site.next_s) < np.inf:
        hour_s = (np.floor(site.now_s / HOUR_S) + 1.0) * HOUR_S if site.waiting else np.inf
        came = site.go_to(min(time_s, hour_s))
        asked = site.waiting if site.now_s % HOUR_S == 0.0 else came
        if not asked:
            continue
        first = site.waiting.index(asked[0])
        state = site.state()
        arrivals = NO_ARRIVALS if discipline == STRICT else site.arrivals()
        starts_s = expected_starts(
            state, site.history, arrivals, discipline, replicates, rng, first
        )
        places = np.searchsorted(site.waiting, asked)
        waits_s = starts_s[:, places - first] - site.now_s
        quantiles_s = np.quantile(waits_s, LEVELS, axis=0).T
        known = known_features(state, site.history, log.submit_s[asked], places)
        yield np.array(asked, np.int64), site.now_s, quantiles_s, known
        if progress is not None:
            progress(min(1.0, (site.now_s - begin_s) / span_s))


def known_features(
    state: QueueState, history: RunTimeHistory, submit_s: Floats, places: Ints
) -> Floats:
    """(jobs, features) of those that wait at these places of the queue."""
    running, waiting = state.running, state.waiting

    def before(amounts: Floats) -> Floats:
        return (np.cumsum(amounts) - amounts)[places]

    out = _nothing(len(places))
    cpus = waiting.cpus.astype(float)
    ahead_cpus = before(cpus)
    length_s = np.nan_to_num(waiting.request_s, nan=HOUR_S)
    running_new = float((running.cpus * _is_new(running, history)).sum())
    columns: dict[str, Floats | Ints | float] = {
        "waited_s": state.now_s - submit_s,
        "cpus": cpus[places],
        "request_s": waiting.request_s[places],
        "ahead": places,
        "ahead_cpus": ahead_cpus,
        "ahead_work_s": before(cpus * length_s),
        "free_cpus": state.free_cpus,
        "running_new": running_new / max(1, state.total_cpus),
        "ahead_new": before(cpus * _is_new(waiting, history)) / np.maximum(1.0, ahead_cpus),
        "hour": state.now_s % DAY_S / HOUR_S,
        "weekday": state.now_s // DAY_S % 7,
    }
    for place, name in enumerate(FEATURES):
        out[:, place] = columns[name]
    return out


def _is_new(jobs: Jobs, history: RunTimeHistory) -> Floats:
    return (history.totals[jobs.groups[:, 2]] < _NEW_BELOW).astype(float)


def _nothing(rows: int = 0) -> Floats:
    return np.empty((rows, len(FEATURES)))
