"""Expected starts of all waiting jobs, updated at each look, with their scores."""

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.forecast.expected_starts import expected_starts
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.forecasts import forecasts, pinball
from outrider.forecast.questions import HIGH, LEVELS, LOW, MEDIAN, Questions
from outrider.forecast.queue_state import NO_ARRIVALS, Floats
from outrider.forecast.recalibration import as_log
from outrider.forecast.walk import known_features
from outrider.model.localtime import HOUR_S
from outrider.model.modes import STRICT, Discipline

Bools = NDArray[np.bool_]
REPLICATES: Final = 100
KEPT: Final = 4000
"""Questions that are kept to learn from; the oldest are dropped."""
_OF_ONE_LOOK: Final = 64
"""Questions of one look that are kept, evenly over the queue: they are similar."""
_AT_SUBMISSION_S: Final = 150.0
"""Maximal age of a job for which a question counts as at its submission, seconds."""
_SOONEST_S: Final = 1.0
"""Minimal upper bound for a job that does not start in the next pass, seconds."""
_NO_PLAN: Final[Mapping[str, float]] = MappingProxyType({})


class Asked(msgspec.Struct, eq=False):
    """Question about a job, and its answer once there is one.

    Attributes:
        job: its number.
        asked_s: time of the question, Unix seconds.
        at_submission: the job had just arrived; else a full hour had passed.
        quantiles_s: (levels,) of the wait from then on, by the replicates.
        known: (features,) further information.
        predicted_s: (3,) the forecast: low, median and high of the wait; nan: not known.
        planned_s: the wait that the batch system itself expected then; nan: it gave none.
        wait_s: the actual wait from then on; inf: the job still waits.
        is_new: not known, because too little is known of the users that it waits for.
    """

    job: int
    asked_s: float
    at_submission: bool
    quantiles_s: Floats
    known: Floats
    predicted_s: Floats
    planned_s: float = np.nan
    wait_s: float = np.inf
    is_new: bool = False


NO_ROOM, NO_HISTORY, NEW_BURST = "no_room", "no_history", "new_burst"
"""Reasons why a start is not known.

No open machine has room for the job; too little is known of the users that it waits for; or the
recent forecasts were worse than the recent waits alone."""


class Expected(NamedTuple):
    """Expected start of a job, Unix seconds, with an 80 % interval."""

    low_s: float
    median_s: float
    high_s: float


class Outlook:
    """Expected starts at a followed site.

    Args:
        site: followed; before its first event.
        discipline: the rule of its batch system.
        seed: for the random draws.
        replicates: of each look.

    Attributes:
        moved: (3,) shifts of the quantiles of each job of the last look, in the logarithm of the
            wait (`recalibration`), by its name.
        unknown: why a start is not known, by name of the job: `NO_ROOM`, `NO_HISTORY` or
            `NEW_BURST`.
    """

    def __init__(
        self,
        site: FollowedSite,
        discipline: Discipline,
        seed: int = 0,
        replicates: int = REPLICATES,
    ) -> None:
        self._site = site
        self._discipline = discipline
        self._rng = np.random.default_rng(seed)
        self._replicates = replicates
        self._asked: deque[Asked] = deque(maxlen=KEPT)
        self._open: dict[int, list[Asked]] = {}
        self._hour_s = -np.inf
        self.moved: dict[str, Floats] = {}
        self.unknown: dict[str, str] = {}

    def look(self, planned: Mapping[str, float] = _NO_PLAN) -> dict[str, Expected | None]:
        """Return the expected start of each waiting job; None: not known.

        What starts in the scheduler's next pass is expected now.

        Args:
            planned: start that the batch system itself expects, by name of the job; it changes no
                answer, and is scored for comparison.
        """
        self._settle()
        self.moved = {}
        site, now_s = self._site, self._site.now_s
        out: dict[str, Expected | None] = dict.fromkeys(map(site.name, site.without_machine()))
        self.unknown = dict.fromkeys(out, NO_ROOM)
        jobs = site.waiting()
        if not jobs:
            return out
        state = site.state()
        arrivals = NO_ARRIVALS if self._discipline == STRICT else site.arrivals()
        starts_s = expected_starts(
            state, site.run_times, arrivals, self._discipline, self._replicates, self._rng,
            closures=site.closure_history(),
        )  # fmt: skip
        waits_s = np.minimum(starts_s - now_s, LONGEST_S)
        quantiles_s = np.quantile(waits_s, LEVELS, axis=0).T
        submit_s = np.array([site.submit_s(job) for job in jobs], dtype=np.float64)
        known = known_features(state, site.run_times, submit_s, np.arange(len(jobs)))
        is_new = np.array([job not in self._open for job in jobs])
        plan_s = np.array([planned.get(site.name(job), np.nan) for job in jobs], dtype=np.float64)
        planned_s: list[float] = np.maximum(0.0, plan_s - now_s).tolist()
        rows = [
            Asked(job, now_s, bool(new), quantiles_s[n], known[n], np.full(3, np.nan), planned_s[n])
            for n, (job, new) in enumerate(
                zip(jobs, is_new & (now_s - submit_s <= _AT_SUBMISSION_S), strict=True)
            )
        ]
        self.predict(rows, state.total_cpus)
        starts_now = np.all(waits_s <= 0.0, axis=0)
        for row in rows:  # a job that does not start now waits for an end, however soon that is
            row.predicted_s[2] = np.maximum(row.predicted_s[2], _SOONEST_S)
        # too few replicates have a start for the upper bound: the job is wider than the site is now
        never = np.mean(np.isfinite(starts_s), axis=0) < LEVELS[HIGH]
        self._keep(rows, starts_now | never, is_new)
        has_room = iter(
            site.find_room([job for job, now in zip(jobs, starts_now, strict=True) if now])
        )
        for row, now, unreached in zip(rows, starts_now, never, strict=True):
            predicted = np.zeros(3) if now else row.predicted_s
            is_known = next(has_room) if now else not (unreached or np.isnan(predicted[0]))
            name = site.name(row.job)
            out[name] = Expected(*(now_s + predicted).tolist()) if is_known else None
            if not is_known:
                why = NO_HISTORY if row.is_new else NEW_BURST
                self.unknown[name] = NO_ROOM if now or unreached else why
            self.moved[name] = as_log(row.predicted_s) - as_log(
                row.quantiles_s[[LOW, MEDIAN, HIGH]]
            )
        return out

    def scores(self) -> dict[str, dict[str, Any]]:
        """Return the scores of the forecasts: at submission, and at full hours while jobs waited.

        Each has `n`, `coverage_ratio` of the 80 % intervals, their mean `width_s`, and `pinball_s`;
        None without any. Two more scores are of those questions for which the batch system had a
        plan, too: `beside_batch_system` is the score of the forecasts here, and `batch_system` that
        of its plan. The planned start counts as all three quantiles; the width is that of the
        middle 80 % of its errors, computed afterwards.
        """
        answered = [
            row
            for row in self._asked
            if np.isfinite(row.wait_s) and not np.isnan(row.predicted_s[0])
        ]
        both = [row for row in answered if not np.isnan(row.planned_s)]
        return {
            "submission": _score([row for row in answered if row.at_submission]),
            "hourly": _score([row for row in answered if not row.at_submission]),
            "beside_batch_system": _score(both),
            "batch_system": _score_of_plan(both),
        }

    def _settle(self) -> None:
        """Answer the questions of jobs that have started; drop those of jobs that left."""
        for job, start_s in self._site.started:
            for row in self._open.pop(job, ()):
                row.wait_s = max(0.0, start_s - row.asked_s)
        for job in self._site.left:
            self._open.pop(job, None)
        self._site.started.clear()
        self._site.left.clear()

    def predict(self, rows: list[Asked], total_cpus: int) -> None:
        """Fill in the forecasts of these questions, recalibrated by the earlier ones.

        Args:
            rows: questions of this moment.
            total_cpus: of the site.
        """
        asked = [*self._asked, *rows]
        questions = Questions(
            np.array([row.job for row in asked], dtype=np.int64),
            np.array([row.asked_s for row in asked], dtype=np.float64),
            np.array([row.at_submission for row in asked], dtype=np.bool_),
            np.concatenate([row.quantiles_s for row in asked]).reshape(len(asked), -1),
            np.concatenate([row.known for row in asked]).reshape(len(asked), -1),
            np.array([row.wait_s for row in asked], dtype=np.float64),
        )
        made = forecasts(questions, max(1, total_cpus))
        for n, row in enumerate(rows, len(self._asked)):
            # batch systems' times are whole: bounds are met
            row.predicted_s, row.is_new = np.round(made.wait_s[n], 3), bool(made.is_new[n])

    def _keep(self, rows: list[Asked], unasked: Bools, new: Bools) -> None:
        """Keep a part of the questions at submission or at a full hour."""
        hour_s = self._site.now_s // HOUR_S
        full_hour, self._hour_s = hour_s > self._hour_s, hour_s
        for row, is_new in zip(rows, new, strict=True):
            if is_new:
                self._open[row.job] = []
        scored = [
            row
            for row, is_unasked in zip(rows, unasked, strict=True)
            if not is_unasked and (row.at_submission or full_hour)
        ]
        for row in scored[:: -(-len(scored) // _OF_ONE_LOOK) or 1]:
            self._asked.append(row)
            self._open[row.job].append(row)


def _score(rows: list[Asked]) -> dict[str, Any]:
    if not rows:
        return _NOTHING_SCORED
    wait_s = np.array([row.wait_s for row in rows])
    predicted_s = np.stack([row.predicted_s for row in rows])
    held = (predicted_s[:, 0] <= wait_s) & (wait_s <= predicted_s[:, 2])
    return {
        "n": len(rows),
        "coverage_ratio": float(held.mean()),
        "pinball_s": float(pinball(wait_s, predicted_s).mean()),
        "width_s": float((predicted_s[:, 2] - predicted_s[:, 0]).mean()),
    }


def _score_of_plan(rows: list[Asked]) -> dict[str, Any]:
    if not rows:
        return _NOTHING_SCORED
    wait_s = np.array([row.wait_s for row in rows])
    planned_s = np.array([row.planned_s for row in rows])
    low_s, high_s = np.quantile(wait_s - planned_s, [LEVELS[LOW], LEVELS[HIGH]])
    return {
        "n": len(rows),
        "coverage_ratio": None,
        "pinball_s": float(pinball(wait_s, np.repeat(planned_s[:, None], 3, axis=1)).mean()),
        "width_s": float(high_s - low_s),
    }


_NOTHING_SCORED: Final = {"n": 0, "coverage_ratio": None, "pinball_s": None, "width_s": None}
LONGEST_S: Final = 365 * 86_400.0
"""Wait of a job that never starts in a replicate: quantiles stay finite."""
