"""Expected starts of everything that waits now, looked at again and again, and their scores."""

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
"""Questions that are kept to learn from; the oldest are forgotten."""
_OF_ONE_LOOK: Final = 64
"""Questions of one look that are kept, evenly over the queue: they are much alike."""
_AT_SUBMISSION_S: Final = 150.0
"""A job that came so lately is asked about at its submission."""
_SOONEST_S: Final = 1.0
"""Until when, at the soonest, a job starts that does not start in the next pass, seconds."""
_NO_PLAN: Final[Mapping[str, float]] = MappingProxyType({})


class Asked(msgspec.Struct, eq=False):
    """A question about a job, and its answer once there is one.

    Attributes:
        job: its number.
        asked_s: when, Unix seconds.
        at_submission: it had just come; else a full hour had passed.
        quantiles_s: (levels,) of the wait from then on, by the replicates.
        known: (features,) what else was known.
        said_s: (3,) what was said: low, median and high of the wait; nan: not known.
        planned_s: the wait that the batch system itself expected then; nan: it said nothing.
        wait_s: how long it did wait from then on; inf: it waits still.
    """

    job: int
    asked_s: float
    at_submission: bool
    quantiles_s: Floats
    known: Floats
    said_s: Floats
    planned_s: float = np.nan
    wait_s: float = np.inf


class Expected(NamedTuple):
    """When a job is expected to start, Unix seconds, with an 80 % interval."""

    low_s: float
    median_s: float
    high_s: float


class Outlook:
    """Looks at a site that is followed.

    Args:
        site: followed; before its first event.
        discipline: the rule of its batch system.
        seed: of chance.
        replicates: of each look.

    Attributes:
        moved: (3,) by how much the quantiles of each job of the last look were moved, in the
            logarithm of the wait (`recalibration`), by its name.
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

    def look(self, planned: Mapping[str, float] = _NO_PLAN) -> dict[str, Expected | None]:
        """Return when each job that waits is expected to start; None: that cannot be known.

        What starts in the scheduler's next pass is expected now.

        Args:
            planned: when the batch system itself expects jobs to start, by name; it changes no
                answer, and is scored beside them.
        """
        self._settle()
        self.moved = {}
        site, now_s = self._site, self._site.now_s
        out: dict[str, Expected | None] = dict.fromkeys(map(site.name, site.without_machine()))
        jobs = site.waiting()
        if not jobs:
            return out
        state = site.state()
        arrivals = NO_ARRIVALS if self._discipline == STRICT else site.arrivals()
        starts_s = expected_starts(
            state, site.run_times, arrivals, self._discipline, self._replicates, self._rng,
            closures=site.closures_lately(),
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
        self.say(rows, state.total_cpus)
        starts_now = np.all(waits_s <= 0.0, axis=0)
        for row in rows:  # what does not start now waits for an end, however soon that is
            row.said_s[2] = np.maximum(row.said_s[2], _SOONEST_S)
        # in so few replicates that the upper bound is not reached: wider than the site as it is
        never = np.mean(np.isfinite(starts_s), axis=0) < LEVELS[HIGH]
        self._keep(rows, starts_now | never, is_new)
        has_room = iter(
            site.find_room([job for job, now in zip(jobs, starts_now, strict=True) if now])
        )
        for row, now, unreached in zip(rows, starts_now, never, strict=True):
            said = np.zeros(3) if now else row.said_s
            is_known = next(has_room) if now else not (unreached or np.isnan(said[0]))
            name = site.name(row.job)
            out[name] = Expected(*(now_s + said).tolist()) if is_known else None
            self.moved[name] = as_log(row.said_s) - as_log(row.quantiles_s[[LOW, MEDIAN, HIGH]])
        return out

    def scores(self) -> dict[str, dict[str, Any]]:
        """How good what was said turned out: at submission, and at full hours while jobs waited.

        Each has `n`, `coverage_ratio` of the 80 % intervals, their mean `width_s`, and `pinball_s`;
        None without any. Of the same questions, as far as the batch system had a plan for their
        jobs at that moment, too, `beside_batch_system` is the score of what was said here, and
        `batch_system` that of its plan: the start that it named stands for all three quantiles, and
        the width is that of the middle 80 % of its errors, afterwards.
        """
        told = [
            row for row in self._asked if np.isfinite(row.wait_s) and not np.isnan(row.said_s[0])
        ]
        both = [row for row in told if not np.isnan(row.planned_s)]
        return {
            "submission": _score([row for row in told if row.at_submission]),
            "hourly": _score([row for row in told if not row.at_submission]),
            "beside_batch_system": _score(both),
            "batch_system": _score_of_plan(both),
        }

    def _settle(self) -> None:
        """Questions whose jobs have started are answered; those of jobs that left never are."""
        for job, start_s in self._site.started:
            for row in self._open.pop(job, ()):
                row.wait_s = max(0.0, start_s - row.asked_s)
        for job in self._site.left:
            self._open.pop(job, None)
        self._site.started.clear()
        self._site.left.clear()

    def say(self, rows: list[Asked], total_cpus: int) -> None:
        """Fill in what is said of them, recalibrated by the questions before.

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
        said_s = forecasts(questions, max(1, total_cpus)).wait_s[len(self._asked) :]
        for row, wait_s in zip(rows, said_s, strict=True):
            row.said_s = np.round(wait_s, 3)  # batch systems' times are whole: bounds are met

    def _keep(self, rows: list[Asked], unasked: Bools, new: Bools) -> None:
        """Keep those that are asked at submission or at a full hour, but for some."""
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
    said_s = np.stack([row.said_s for row in rows])
    held = (said_s[:, 0] <= wait_s) & (wait_s <= said_s[:, 2])
    return {
        "n": len(rows),
        "coverage_ratio": float(held.mean()),
        "pinball_s": float(pinball(wait_s, said_s).mean()),
        "width_s": float((said_s[:, 2] - said_s[:, 0]).mean()),
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
"""A start that is never reached in a replicate is this far away: quantiles stay finite."""
