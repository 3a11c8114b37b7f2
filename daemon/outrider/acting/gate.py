"""The gate: whether a decision may be carried out. Pure code, the same in every mode.

It answers `ACT`, `WOULD` or ``refused: ...`` with the reason, and the answer is part of the record
of the decision. In `observe` and `shadow` nothing is ever carried out; the gate still says what it
would have done, so that a site sees before it climbs how often a budget or a stale input would have
said no.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Container
from typing import Any, Final, NamedTuple

from outrider.model.decisions import SHRINK, START

ACT: Final = "act"
"""It may be carried out."""
WOULD: Final = "would"
"""Input and budget allow it, and the mode is one that never acts, or never on this job."""
OUTSIDE: Final = "outside_canary"
"""Of `Gate.verdicts`: the mode acts, but not on this job. Its answer is `WOULD`."""
STALE: Final = "stale_input"
NO_LEVER: Final = "no_lever"
"""The job's adapter has no lever for this action. Only asked where the mode acts: in shadow the
answer tells how input and budget do, at sites without levers too."""
BUDGET: Final = "budget"
CANARY: Final = "canary"
ACTING_MODES: Final = (CANARY, "active")
_STARTS: Final = (START, SHRINK)
"""Actions that give CPUs to a job, and count against the budget of starts."""


def refused(why: str) -> str:
    """The answer where something stands against it: `STALE`, `NO_LEVER`, `BUDGET`."""
    return f"refused: {why}"


class Budget(NamedTuple):
    """Bounds of what may be carried out.

    Attributes:
        starts_per_minute: most starts within any 60 seconds of event time.
        stale_after_s: input older than this carries nothing.
    """

    starts_per_minute: float
    stale_after_s: float


class Gate:
    """Admits decisions with fresh input, a lever and budget, in this order, where the mode acts.

    Args:
        mode: one of `outrider.model.modes.MODES`.
        budget: the bounds.

    Attributes:
        verdicts: how often decisions were within both (`ACT`), in whatever mode, and how often
            they were refused, by why.
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
        """The answer to a decision that changes something at the site.

        Args:
            action: one of `outrider.model.decisions.ACTIONS`.
            now_s: event time of the decision, seconds.
            input_age_s: how old the newest input was.
            in_canary: whether the canary holds the job; only asked in that mode.
            has_lever: whether there is a lever for it; only asked in modes that act.

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
        """Everything as plain data."""
        return {"verdicts": dict(self.verdicts), "starts": list(self._starts)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.verdicts = Counter(saved["verdicts"])
        self._starts = deque(saved["starts"])


# -- canary ----------------------------------------------------------------------------------------
# The part of a site on which the mode `canary` acts. Pure code.

_OF: Final = 1 << 32


class Canary(NamedTuple):
    """Jobs are in it by any one of these; with nothing named, none is.

    Attributes:
        clusters: machine groups: decisions to start a job there.
        users: names, as the events have them.
        vos: virtual organisations, accounting groups or accounts.
        fraction: of all jobs, 0 to 1; which ones is settled by their names, so it stays the same.
    """

    clusters: Container[str] = ()
    users: Container[str] = ()
    vos: Container[str] = ()
    fraction: float = 0.0

    def holds(self, job: str, user: str, vo: str, cluster: str | None) -> bool:
        """Return whether a decision is about a job in it.

        Args:
            job: its name.
            user: whose it is.
            vo: of which virtual organisation.
            cluster: the machine group that was decided for; None: the job stays in the queue.

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
    """A number from 0 to below 1, of the job's name alone, evenly spread."""
    digest = hashlib.sha256(job.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:4], "big") / _OF


# -- guards ----------------------------------------------------------------------------------------
# Guards: figures of the last hours past which a mode that acts falls back to shadow. Pure code.

_SAMPLES: Final = 60
"""Of a window: a figure is up to a sixtieth of it older or younger than it says."""
LEAST_N: Final = 20
"""Of starts, or of changes: fewer say nothing."""


class Bounds(NamedTuple):
    """Guards: figures past these demote the mode. None: that figure is not guarded."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness_least: float | None = None
    error_ratio: float | None = None


class Figures(NamedTuple):
    """What the guards look at, over the window they are told of. None: not known yet."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness: float | None = None
    error_ratio: float | None = None


class Totals(NamedTuple):
    """What is counted, since whenever; it only grows.

    Attributes:
        at_s: when, seconds.
        waited_s: waits of the jobs that started, seconds, and their number.
        starts: see there.
        goodput_s: CPU-seconds of completed runs.
        badput_s: CPU-seconds of runs that were thrown away.
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
    """The figures of a window that moves along.

    Args:
        window_s: how long it is, seconds.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._samples: deque[Totals] = deque()

    def figures(self, now: Totals, fairness: float | None) -> Figures:
        """The figures from the begin of the window to now; None where too little happened."""
        samples = self._samples
        while len(samples) > 1 and samples[1].at_s <= now.at_s - self._window_s:
            samples.popleft()
        if not samples or now.at_s - samples[-1].at_s >= self._window_s / _SAMPLES:
            samples.append(now)
        then = samples[0]
        starts = now.starts - then.starts
        good_s, bad_s = now.goodput_s - then.goodput_s, now.badput_s - then.badput_s
        changes, failures = now.changes - then.changes, now.failures - then.failures
        enough = starts >= LEAST_N
        return Figures(
            mean_wait_s=(now.waited_s - then.waited_s) / starts if enough else None,
            badput_ratio=bad_s / (good_s + bad_s) if enough and good_s + bad_s > 0 else None,
            fairness=fairness if enough else None,
            error_ratio=failures / (changes + failures) if changes + failures >= LEAST_N else None,
        )


def breaches(bounds: Bounds, figures: Figures) -> list[str]:
    """Return which guards a site's figures break, in words; empty if none."""
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
