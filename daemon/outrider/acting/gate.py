"""The gate: it decides whether a decision may be applied. Pure code, the same in every mode.

It answers `ACT`, `WOULD` or ``refused: ...`` with the reason. The answer is part of the record of
the decision. In `observe` and `shadow` nothing is ever applied. The gate still answers, so that a
site sees in advance how often a budget or stale input would refuse a decision.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Container
from typing import Any, Final, NamedTuple

from outrider.model.decisions import SHRINK, START

ACT: Final = "act"
"""The decision may be applied."""
WOULD: Final = "would"
"""Input and budget allow it, and the mode is one that never acts, or never on this job."""
OUTSIDE: Final = "outside_canary"
"""Key of `Gate.verdicts`: the mode acts, but not on this job. The answer is `WOULD`."""
STALE: Final = "stale_input"
NO_LEVER: Final = "no_lever"
"""The job's adapter has no lever for this action. Only checked in modes that act: in shadow the
answer shows input and budget, also at sites without levers."""
BUDGET: Final = "budget"
CANARY: Final = "canary"
ACTING_MODES: Final = (CANARY, "active")
_STARTS: Final = (START, SHRINK)
"""Actions that give CPUs to a job, and count against the budget of starts."""


def refused(why: str) -> str:
    """Return the answer of a refusal: the reason is `STALE`, `NO_LEVER` or `BUDGET`."""
    return f"refused: {why}"


class Budget(NamedTuple):
    """Bounds of what may be applied.

    Attributes:
        starts_per_minute: maximal starts within any 60 seconds of event time.
        stale_after_s: input older than this is too old for any decision.
    """

    starts_per_minute: float
    stale_after_s: float


class Gate:
    """Admits decisions with fresh input, a lever and budget, in this order, where the mode acts.

    Args:
        mode: one of `outrider.model.modes.MODES`.
        budget: the bounds.

    Attributes:
        verdicts: number of decisions within input and budget (`ACT`), in any mode, and of those
            refused, by reason.
    """

    def __init__(self, mode: str, budget: Budget) -> None:
        self.mode = mode
        self.budget = budget
        self._acts = mode in ACTING_MODES
        self.verdicts: Counter[str] = Counter()
        self._starts: deque[float] = deque()

    def answer(
        self,
        action: str,
        now_s: float,
        input_age_s: float,
        in_canary: bool = True,
        has_lever: bool = True,
    ) -> str:
        """Return the answer to a decision that changes something at the site.

        Args:
            action: one of `outrider.model.decisions.ACTIONS`.
            now_s: event time of the decision, seconds.
            input_age_s: how old the newest input was.
            in_canary: whether the canary holds the job; only used in that mode.
            has_lever: whether there is a lever for it; only used in modes that act.

        Returns:
            `ACT`; `WOULD` where the mode never acts, or not on this job, and neither input nor
            budget is against it; or `refused` with the reason.
        """
        if self.mode == CANARY and not in_canary:
            self.verdicts[OUTSIDE] += 1
            return WOULD
        verdict = self._judge(action, now_s, input_age_s, has_lever)
        self.verdicts[verdict] += 1
        if verdict != ACT:
            return refused(verdict)
        return ACT if self._acts else WOULD

    def _judge(self, action: str, now_s: float, input_age_s: float, has_lever: bool) -> str:
        if input_age_s > self.budget.stale_after_s:
            return STALE
        if self._acts and not has_lever:
            return NO_LEVER
        if action not in _STARTS:
            return ACT
        starts = self._starts
        while starts and starts[0] <= now_s - 60.0:
            starts.popleft()
        if len(starts) + 1 > self.budget.starts_per_minute:
            return BUDGET
        starts.append(now_s)
        return ACT

    def save(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"verdicts": dict(self.verdicts), "starts": list(self._starts)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save` returned."""
        self.verdicts = Counter(saved["verdicts"])
        self._starts = deque(saved["starts"])


# -- canary ----------------------------------------------------------------------------------------
# The part of a site on which the mode `canary` acts. Pure code.

_OF: Final = 1 << 32


class Canary(NamedTuple):
    """Part of the jobs on which canary mode acts: any one criterion suffices; default none.

    Attributes:
        clusters: machine groups: decisions to start a job there.
        users: names, as the events have them.
        vos: virtual organisations, accounting groups or accounts.
        fraction: of all jobs, 0 to 1; the job's name determines membership, so it stays the same.
    """

    clusters: Container[str] = ()
    users: Container[str] = ()
    vos: Container[str] = ()
    fraction: float = 0.0

    def holds(self, job: str, user: str, vo: str, cluster: str | None) -> bool:
        """Return whether a decision is about a job in the canary.

        Args:
            job: its name.
            user: whose it is.
            vo: of which virtual organisation.
            cluster: the machine group of the decision; None: the job stays in the queue.

        >>> Canary(fraction=0.4).holds("12.0", "alice", "physics", None)
        False
        >>> Canary(vos=["physics"]).holds("12.0", "alice", "physics", None)
        True
        """
        return (
            (cluster is not None and cluster in self.clusters)
            or user in self.users
            or vo in self.vos
            or _place_of(job) < self.fraction
        )


def _place_of(job: str) -> float:
    """Return a number in [0, 1), evenly distributed, that depends on the job's name alone."""
    digest = hashlib.sha256(job.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:4], "big") / _OF


# -- guards ----------------------------------------------------------------------------------------
# Guards: bounds on recent figures; beyond one, a mode that acts falls back to shadow. Pure code.

_SAMPLES: Final = 60
"""Samples kept of a window: its true length is off by at most a sixtieth."""
MIN_N: Final = 20
"""Minimal number of starts or changes; with fewer a figure means nothing."""


class Bounds(NamedTuple):
    """Bounds of the guards: a figure beyond one demotes the mode. None: not guarded."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness_least: float | None = None
    error_ratio: float | None = None


class Figures(NamedTuple):
    """Figures that the guards check, over their window. None: not known yet."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness: float | None = None
    error_ratio: float | None = None


class Totals(NamedTuple):
    """Cumulative totals; they only grow.

    Attributes:
        at_s: time of the totals, seconds.
        waited_s: waits of the jobs that started, seconds.
        starts: number of those jobs.
        goodput_s: CPU-seconds of completed runs.
        badput_s: CPU-seconds of wasted runs.
        changes: jobs that were changed in the batch system.
        failures: jobs for which that was refused, and calls that failed.
    """

    at_s: float
    waited_s: float
    starts: float
    goodput_s: float
    badput_s: float
    changes: float
    failures: float


class GuardWindow:
    """Figures over a sliding window.

    Args:
        window_s: its length, seconds.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._samples: deque[Totals] = deque()

    def figures(self, now: Totals, fairness: float | None) -> Figures:
        """Return the figures from the begin of the window to now; None if too little happened."""
        samples = self._samples
        while len(samples) > 1 and samples[1].at_s <= now.at_s - self._window_s:
            samples.popleft()
        if not samples or now.at_s - samples[-1].at_s >= self._window_s / _SAMPLES:
            samples.append(now)
        then = samples[0]
        starts = now.starts - then.starts
        good_s, bad_s = now.goodput_s - then.goodput_s, now.badput_s - then.badput_s
        changes, failures = now.changes - then.changes, now.failures - then.failures
        enough = starts >= MIN_N
        return Figures(
            mean_wait_s=(now.waited_s - then.waited_s) / starts if enough else None,
            badput_ratio=bad_s / (good_s + bad_s) if enough and good_s + bad_s > 0 else None,
            fairness=fairness if enough else None,
            error_ratio=failures / (changes + failures) if changes + failures >= MIN_N else None,
        )


def breaches(bounds: Bounds, figures: Figures) -> list[str]:
    """Return a sentence for each guard that the figures break; empty if none."""
    found = []
    for name, bound, value, sign in (
        ("mean wait", bounds.mean_wait_s, figures.mean_wait_s, 1),
        ("badput ratio", bounds.badput_ratio, figures.badput_ratio, 1),
        ("fairness", bounds.fairness_least, figures.fairness, -1),
        ("error ratio", bounds.error_ratio, figures.error_ratio, 1),
    ):
        if bound is not None and value is not None and sign * (value - bound) > 0:
            word = "above" if sign > 0 else "below"
            found.append(f"{name} {value:g} is {word} its bound {bound:g}")
    return found
