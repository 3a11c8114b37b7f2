"""The gate: whether a decision may be carried out. Pure code, the same in every mode.

It answers `ACT`, `WOULD` or ``refused: ...`` with the reason, and the answer is part of the record
of the decision. In `observe` and `shadow` nothing is ever carried out; the gate still says what it
would have done, so that a site sees before it climbs how often a budget or a stale input would have
said no.
"""

from collections import Counter, deque
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
