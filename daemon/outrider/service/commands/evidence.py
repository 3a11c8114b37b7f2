"""Evidence for and against raising the mode: its figures and their evaluation."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.model.modes import MODES
from outrider.service.canary_trial.record import RUNNING
from outrider.service.shapes.values import (
    Evidence,
    GuardFigure,
    TrialShown,
    TwinFigures,
)
from outrider.twin.answer_file import Ratio

_SHADOW: Final = "shadow"
_ACTIVE: Final = "active"
GAIN_MEASURES: Final = ("energy_ratio", "badput_ratio")
"""Ratios of which at least one must be below 1 with its whole interval."""
OVERHEAD: Final = "overhead_mean_ratio"


def next_mode(mode: str, configured: str, has_canary: bool) -> str | None:
    """Return the step above a mode; None if there is none up to the ceiling.

    If the configuration goes beyond a canary and defines none, that step is skipped.

    >>> next_mode("shadow", "active", True)
    'canary'
    >>> next_mode("shadow", "active", False)
    'active'
    >>> next_mode("shadow", "shadow", True) is None
    True
    """
    if mode == configured:
        return None
    if mode == "observe":
        return _SHADOW
    if mode == _SHADOW and (has_canary or configured == CANARY):
        return CANARY
    return _ACTIVE


def against(evidence: Evidence) -> list[str]:
    """Return the objections to raising the mode, a sentence each; empty: it may be raised."""
    if evidence.next_mode is None:
        ceiling = f'mode = "{evidence.configured_mode}"'
        return [f"the configuration sets {ceiling}, and no command goes beyond it"]
    if evidence.next_mode not in ACTING_MODES:
        return []
    found = list(evidence.trouble)
    found += [f"source {one.label} is down: {one.why}" for one in evidence.sources if not one.up]
    found += [_broken(guard) for guard in evidence.guards if guard.broken]
    for policy in evidence.policies:
        if policy.failed is not None:
            found.append(f"the policy {policy.name} has failed: {policy.failed}")
        elif not policy.decisions:
            found.append(f"the policy {policy.name} has decided nothing yet")
    if not evidence.policies:
        found.append("no policy decides")
    if evidence.watched_s < evidence.needed_s:
        found.append(
            f"the policy has decided in the mode {evidence.mode} or above for "
            f"{evidence.watched_s / 3600.0:.1f} h, needed: {evidence.needed_s / 3600.0:.1f} h "
            "(promote_after_s)"
        )
    found += _against_by_trial(evidence.trial, evidence.mode)
    names = [policy.name for policy in evidence.policies]
    return found + _against_by_twin(evidence.twin, names)


def _against_by_trial(trial: TrialShown | None, mode: str) -> list[str]:
    """Return the trial's objections: it is still running, or it showed harm.

    A running trial may not be ended early because its results so far look good.
    """
    if trial is None or mode != CANARY:
        return []
    if trial.state == RUNNING:
        return [f"the canary trial is running: {trial.days_done} of {trial.days} days are done"]
    compared = {} if trial.outcome is None else trial.outcome.measures
    found = ((name.removesuffix("_ratio"), compared.get(name)) for name in GAIN_MEASURES)
    return [
        f"in the canary trial {name} was significantly higher: {one.low:.3f} to {one.high:.3f}"
        for name, one in found
        if one is not None and one.low is not None and one.low > 1.0
    ]


def _broken(guard: GuardFigure) -> str:
    return f"a guard is broken: {guard.name} is {guard.value:g}, its bound {guard.bound:g}"


def _against_by_twin(twin: TwinFigures | None, policies: Sequence[str]) -> list[str]:
    """Return objections from the re-simulated past, for each policy that would act."""
    if twin is None or not twin.needed:
        return []
    if twin.asked_s is None:
        return ["the twin has no result yet (`outrider run-twin`)"]
    if twin.stale:
        return ["the twin's result is stale ([twin] stale_after_s)"]
    return [why for name in policies for why in _against_one(twin, name)]


def _against_one(twin: TwinFigures, policy: str) -> list[str]:
    if policy in twin.refused:
        return [f"the twin has no result for {policy}: {twin.refused[policy]}"]
    ratios = twin.past.get(policy)
    if ratios is None:
        return [f"the twin did not simulate {policy}"]
    found = []
    gains = {name.removesuffix("_ratio"): ratios.get(name) for name in GAIN_MEASURES}
    if not any(ratio is not None and ratio.high < 1.0 for ratio in gains.values()):
        figures = ", ".join(f"{name} {interval(ratio)}" for name, ratio in gains.items())
        found.append(f"in the twin {policy} did not significantly save anything: {figures}")
    overhead = ratios.get(OVERHEAD)
    if overhead is None or overhead.high > twin.most_overhead_ratio:
        found.append(
            f"in the twin the overhead of jobs under {policy} is {interval(overhead)} times the "
            "current scheduler's, allowed: "
            f"{twin.most_overhead_ratio:g} (promote_most_overhead_ratio)"
        )
    return found


def interval(ratio: Ratio | None) -> str:
    """Return a ratio's interval as text."""
    return "unknown" if ratio is None else f"{ratio.low:.3f} to {ratio.high:.3f}"


# -- watched time ----------------------------------------------------------------------------------
# How long a policy has decided at this site, by mode: evidence that persists over restarts.

WATCHED_KEY: Final = "watched"
"""Key of the watched time in the journal."""
_MAX_STEP_S: Final = 60.0
"""Longest counted time between two looks: a suspended host has watched nothing."""


class WatchedTime:
    """Sum of the time in each mode during which every source could be read.

    Args:
        kept: what `plain` returned, from the journal; anything else starts at 0.
        clock: monotonic seconds.
    """

    def __init__(self, kept: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s: float | None = None
        self._digest = ""
        self._watched_s: dict[str, float] = {}
        if isinstance(kept, dict) and isinstance(kept.get("s"), dict):
            self._digest = str(kept.get("of", ""))
            for mode, seconds in kept["s"].items():
                if mode in MODES and isinstance(seconds, int | float) and seconds >= 0:
                    self._watched_s[mode] = float(seconds)

    def look(self, mode: str, policies: Mapping[str, Any], counts: bool) -> None:
        """Count the time since the last look.

        Args:
            mode: the effective mode since then.
            policies: the policies with their settings; a change resets the time to 0.
            counts: True if decisions were made and all sources could be read.
        """
        now_s = self._clock()
        before_s, self._looked_s = self._looked_s, now_s
        digest = hashlib.sha256(msgspec.json.encode(policies, order="sorted")).hexdigest()
        if digest != self._digest:
            self._digest, self._watched_s = digest, {}
        elif counts and before_s is not None:
            step_s = min(now_s - before_s, _MAX_STEP_S)
            self._watched_s[mode] = self._watched_s.get(mode, 0.0) + step_s

    def reset(self) -> None:
        """Reset the time because a guard broke: earlier time is no evidence."""
        self._watched_s = {}

    def at_least(self, mode: str) -> float:
        """Return the seconds in this mode and those above."""
        return sum(self._watched_s.get(each, 0.0) for each in MODES[MODES.index(mode) :])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"of": self._digest, "s": self._watched_s}
