"""When waiting jobs would start under a candidate: its own decisions, replicate after replicate."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Final, NamedTuple

import numpy as np

from outrider.model.errors import OutriderError, PolicyError
from outrider.model.jobs import Job
from outrider.model.localtime import DAY_S
from outrider.twin.ahead.lately import Arrival, lately
from outrider.twin.ahead.present import Present
from outrider.twin.ahead.site_ahead import SiteAhead
from outrider.twin.replicates import PolicyMaker
from outrider.twin.starts.expected_starts import draw_days
from outrider.twin.starts.followed_site import FollowedSite
from outrider.twin.starts.queue_state import Floats, Jobs, QueueState
from outrider.twin.starts.recent_closures import Closure
from outrider.twin.starts.run_time_draws import draw_run_times
from outrider.twin.starts.run_time_history import LEVELS

LEAST: Final = 10
"""With fewer replicates there is no answer."""
MOST: Final = 100
HORIZON_DAYS: Final = 14
"""How far the site is run forward; what starts later does so in no replicate."""
_NEEDS_TRUTH: Final = "it needs true run times, which nobody has before a run ends"


class Future(NamedTuple):
    """What comes, in one replicate.

    Attributes:
        run_s: (jobs,) whole run times of the present jobs, seconds.
        coming: arrivals and closures, in the order of time, with that time, Unix seconds.
        closed: until when each machine that is closed now stays so, by number.
        evicting: reasons for which runs on a machine that closes are evicted.
        policy_seed: of what the policy draws.
    """

    run_s: Sequence[float]
    coming: Iterator[tuple[float, Arrival | Closure]]
    closed: Mapping[int, float]
    evicting: frozenset[str]
    policy_seed: int


class CandidateStarts:
    """Runs the present state of a site forward under one policy after the other.

    In one replicate every policy meets the same run times, the same arrivals and the same owners.

    Args:
        present: the site now.
        followed: the same site, with what came lately and how long jobs ran.
        make: makes a policy of a name and a seed.
        seed: of all that is drawn.
        clock: seconds that only ever go on.
        incumbent: name of the policy that stands for the batch system; None: nobody knows it, and
            a candidate stands for it itself where jobs may not be deferred any longer.

    Attributes:
        jobs: names of the jobs whose starts are told, in the order of the queue.
        here: the present jobs, of which a `Future` has the run times.
    """

    def __init__(
        self,
        present: Present,
        followed: FollowedSite,
        make: PolicyMaker,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
        incumbent: str | None = None,
    ) -> None:
        self._present = present
        self._make = make
        self._seed = seed
        self._clock = clock
        self._incumbent = incumbent
        self._history = followed.recent.whole_runs
        self._wanted = present.possible()
        self.jobs = [present.name(job) for job in self._wanted]
        self._now_s = present.site.now
        self.here, self._state = _state(present, followed)
        columns = {present.name(job): n for n, job in enumerate(self.here)}
        self._lately = lately(followed, columns, present.machines, present.shut)

    def starts_s(self, policy: str, budget_s: float) -> Floats:
        """(replicates, jobs) when each would start, Unix seconds; inf: not within `HORIZON_DAYS`.

        Replicates are added while there is time for another one, up to `MOST`. There are `LEAST`
        at least, for which it may take twice as long.

        Args:
            policy: its name.
            budget_s: seconds for all replicates.

        Raises:
            OutriderError: it fails, needs what nobody can know, or takes too long; says why.
        """
        begin_s, longest_s = self._clock(), 0.0
        rows: list[Floats] = []
        while len(rows) < MOST:
            spent_s = self._clock() - begin_s
            if len(rows) >= LEAST and spent_s + longest_s > budget_s:
                break
            row = self.run(policy, self.future(len(rows)), begin_s + 2.0 * budget_s)
            if row is None:
                break
            rows.append(row)
            longest_s = max(longest_s, self._clock() - begin_s - spent_s)
        if len(rows) < LEAST:
            raise OutriderError(
                f"{len(rows)} replicates in {2.0 * budget_s:.0f} s; right would be {LEAST}, which "
                "a shorter queue or a quicker policy allow"
            )
        return np.stack(rows)

    def future(self, replicate: int) -> Future:
        """What is drawn for one replicate: the same for every policy."""
        rng = np.random.default_rng((self._seed, replicate))
        run_s = draw_run_times(self._state, self._history, 1, rng)[0].tolist()
        days = draw_days(self._state, self._lately.since_s, 1, rng)[0]
        closed = self._lately.reopenings(self._now_s, rng)
        coming = self._lately.days(self._now_s, days[:HORIZON_DAYS].tolist(), run_s, closed)
        return Future(run_s, coming, closed, self._lately.evicting, int(rng.integers(2**31)))

    def run(self, name: str, future: Future, deadline_s: float = inf) -> Floats | None:
        """(jobs,) starts under a policy in one replicate; None: there was no time for it.

        Args:
            name: of the policy.
            future: what comes; used up.
            deadline_s: by the clock.

        Raises:
            OutriderError: as `starts_s`.
        """
        policy = self._make(name, future.policy_seed)
        if policy.needs_oracle:
            raise OutriderError(_NEEDS_TRUTH)
        policy.wants_scores = False

        def goes_on() -> bool:
            return not runner.broken and self._clock() < deadline_s

        ahead = SiteAhead(
            self._now_s, self._now_s + HORIZON_DAYS * DAY_S, self.here,
            dict(zip((job.number for job in self.here), future.run_s, strict=True)),
            future.closed, future.coming, future.evicting,
            {job.number for job in self._wanted}, goes_on,
        )  # fmt: skip
        engine, runner = self._present.engine(
            policy, future.policy_seed, ahead,
            lambda: self._make(self._incumbent or name, future.policy_seed),
        )  # fmt: skip
        engine.feed(ahead.events())
        if runner.broken:
            raise PolicyError(runner.broken)
        if self._clock() >= deadline_s:
            return None
        return np.array([ahead.starts_s.get(job.number, inf) for job in self._wanted])


def _state(present: Present, followed: FollowedSite) -> tuple[list[Job], QueueState]:
    """The present jobs, and the same as columns for the draws of run times.

    A job that was evicted runs for longer than any of its runs did, as one that runs still.
    """

    def columns(jobs: list[Job]) -> Jobs:
        estimate_s = np.array(
            [nan if job.spec.estimate_s is None else job.spec.estimate_s for job in jobs],
            dtype=np.float64,
        )
        groups = [followed.groups_named(present.name(job), job.spec) for job in jobs]
        return Jobs(
            np.array([job.cpus for job in jobs], dtype=np.int64), estimate_s, estimate_s,
            np.array(groups, dtype=np.int64).reshape(-1, LEVELS),
        )  # fmt: skip

    site, running, waiting = present.site, present.running, present.waiting
    now_s = site.now
    since_s = now_s - np.array([_ran_s(job, now_s) for job in running], dtype=np.float64)
    lost_s = np.array([job.consumed_s for job in waiting], dtype=np.float64)
    cpus = max(1, sum(site.cpus))
    state = QueueState(
        now_s, site.week_second(), 0, cpus, columns(running), since_s, columns(waiting), lost_s
    )
    return [*running, *waiting], state


def _ran_s(job: Job, now_s: float) -> float:
    """How long a job has run already: now, or in a run that it lost, if that was longer."""
    return max(job.consumed_s, job.run_s(now_s) if job.machine >= 0 else 0.0)
