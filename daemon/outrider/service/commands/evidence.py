"""What speaks for and against acting more than now: gathered here, judged here, shown as it is."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.model.modes import MODES
from outrider.service.journal.trial_record import RUNNING, TrialShown
from outrider.twin.answer_file import Ratio, Ratios, Window

_SHADOW: Final = "shadow"
_ACTIVE: Final = "active"
SPEAKS_FOR: Final = ("energy_ratio", "badput_ratio")
"""One of them has to be below 1 by the whole of its interval."""
OVERHEAD: Final = "overhead_mean_ratio"


class GuardFigure(Struct, frozen=True):
    """One guard of `[acting]`: a figure of the last hours against its bound."""

    name: str
    value: Annotated[float | None, Meta(description="Null: too little happened to know it.")]
    bound: Annotated[float | None, Meta(description="Null: that figure is not guarded.")]
    broken: bool


class SourceFigure(Struct, frozen=True):
    """One source of events."""

    label: str
    up: bool
    why: Annotated[str, Meta(description="Why it is down; empty where it is up.")]


class PolicyFigures(Struct, frozen=True):
    """What one policy decided, and how that compares with what the batch system did."""

    name: str
    decisions: int
    agreed: int
    disagreed: int
    agreement_ratio: float | None
    would_act: Annotated[int, Meta(description="Decisions that the gate would let through.")]
    would_refuse: Annotated[dict[str, int], Meta(description="And those it would not, by why.")]
    failed: Annotated[str | None, Meta(description="Why it is not asked; null: it is.")]


class TwinFigures(Struct, frozen=True, kw_only=True):
    """What the shadow twin says of the policies that would act."""

    needed: Annotated[bool, Meta(description="Whether it has to speak for them.")]
    most_overhead_ratio: Annotated[float, Meta(description="promote_most_overhead_ratio.")]
    asked_s: Annotated[float | None, Meta(description="Unix seconds; null: no answer yet.")] = None
    window: Annotated[Window | None, Meta(description="The past that it is about.")] = None
    stale: bool = False
    refused: Annotated[dict[str, str], Meta(description="Why it does not answer, by policy.")] = {}
    past: Annotated[
        dict[str, Ratios],
        Meta(description="What would have been, over the incumbent's, by policy."),
    ] = {}


class Evidence(Struct, frozen=True, kw_only=True):
    """What there is to know before the mode climbs a step, and what of it is against that."""

    mode: Annotated[str, Meta(description="In force now.")]
    mode_since_s: Annotated[float | None, Meta(description="Unix seconds; null: not known.")]
    configured_mode: Annotated[str, Meta(description="The configuration's: the ceiling.")]
    next_mode: Annotated[str | None, Meta(description="The next step; null: there is none.")]
    watched_s: Annotated[
        float,
        Meta(
            description="For how long the policy has decided here in this mode or above, with "
            "every source up, since a guard last broke or the policy was another."
        ),
    ]
    needed_s: Annotated[float, Meta(description="The least of that (promote_after_s).")]
    policies: list[PolicyFigures]
    guards: list[GuardFigure]
    sources: list[SourceFigure]
    trouble: Annotated[list[str], Meta(description="What else keeps it from acting at all.")] = []
    twin: Annotated[
        TwinFigures | None,
        Meta(description="What the shadow twin says; null: nothing, and it is not needed."),
    ] = None
    trial: Annotated[
        TrialShown | None,
        Meta(description="The last canary trial by days, as in the status; null: there was none."),
    ] = None
    against: Annotated[list[str], Meta(description="Why it may not climb; empty: it may.")] = []


def next_mode(mode: str, configured: str, has_canary: bool) -> str | None:
    """The step above a mode; None where there is none below the ceiling.

    Where the configuration goes beyond a canary and names none, that step is passed over.

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
    """Why the mode may not climb, a sentence each; empty: it may."""
    if evidence.next_mode is None:
        ceiling = f'mode = "{evidence.configured_mode}"'
        return [f"the configuration says {ceiling}, and no command goes beyond it"]
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
    """A trial that goes on is not ended by who likes what there is; one that showed harm speaks."""
    if trial is None or mode != CANARY:
        return []
    if trial.state == RUNNING:
        return [f"the canary trial goes on: {trial.days_done} of {trial.days} days are done"]
    compared = {} if trial.outcome is None else trial.outcome.measures
    found = ((name.removesuffix("_ratio"), compared.get(name)) for name in SPEAKS_FOR)
    return [
        f"in the canary trial {name} surely was more: {one.low:.3f} to {one.high:.3f}"
        for name, one in found
        if one is not None and one.low is not None and one.low > 1.0
    ]


def _broken(guard: GuardFigure) -> str:
    return f"a guard is broken: {guard.name} is {guard.value:g}, its bound {guard.bound:g}"


def _against_by_twin(twin: TwinFigures | None, policies: Sequence[str]) -> list[str]:
    """What a re-simulation of the past says against it, for each policy that would act."""
    if twin is None or not twin.needed:
        return []
    if twin.asked_s is None:
        return ["the twin has not answered yet (`outrider run-twin`)"]
    if twin.stale:
        return ["the twin's answer is stale ([twin] stale_after_s)"]
    return [why for name in policies for why in _against_one(twin, name)]


def _against_one(twin: TwinFigures, policy: str) -> list[str]:
    if policy in twin.refused:
        return [f"the twin does not answer about {policy}: {twin.refused[policy]}"]
    ratios = twin.past.get(policy)
    if ratios is None:
        return [f"the twin was not asked about {policy}"]
    found = []
    gains = {name.removesuffix("_ratio"): ratios.get(name) for name in SPEAKS_FOR}
    if not any(ratio is not None and ratio.high < 1.0 for ratio in gains.values()):
        figures = ", ".join(f"{name} {interval(ratio)}" for name, ratio in gains.items())
        found.append(f"by the twin {policy} would not surely have saved anything: {figures}")
    overhead = ratios.get(OVERHEAD)
    if overhead is None or overhead.high > twin.most_overhead_ratio:
        found.append(
            f"by the twin the overhead of jobs under {policy} is {interval(overhead)} times the "
            f"incumbent's, allowed: {twin.most_overhead_ratio:g} (promote_most_overhead_ratio)"
        )
    return found


def interval(ratio: Ratio | None) -> str:
    """A ratio's interval for people."""
    return "unknown" if ratio is None else f"{ratio.low:.3f} to {ratio.high:.3f}"


# -- watched time ----------------------------------------------------------------------------------
# For how long a policy has decided beside this site, by mode: evidence that outlives restarts.

WATCHED_KEY: Final = "watched"
"""Where the journal keeps it."""
_LONGEST_STEP_S: Final = 60.0
"""Between two looks: a host that slept meanwhile has watched nothing."""


class WatchedTime:
    """Adds up the time in each mode in which every source could be read.

    Args:
        kept: what `plain` gave, as the journal has it; anything else begins at 0.
        clock: seconds that only ever go on.
    """

    def __init__(self, kept: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s: float | None = None
        self._of = ""
        self._watched_s: dict[str, float] = {}
        if isinstance(kept, dict) and isinstance(kept.get("s"), dict):
            self._of = str(kept.get("of", ""))
            for mode, seconds in kept["s"].items():
                if mode in MODES and isinstance(seconds, int | float) and seconds >= 0:
                    self._watched_s[mode] = float(seconds)

    def look(self, mode: str, policies: Mapping[str, Any], counts: bool) -> None:
        """Count the time since the last look.

        Args:
            mode: in force since then.
            policies: with their settings: others begin at 0.
            counts: whether decisions were made, of sources that could be read.
        """
        now_s = self._clock()
        before_s, self._looked_s = self._looked_s, now_s
        of = hashlib.sha256(msgspec.json.encode(policies, order="sorted")).hexdigest()
        if of != self._of:
            self._of, self._watched_s = of, {}
        elif counts and before_s is not None:
            step_s = min(now_s - before_s, _LONGEST_STEP_S)
            self._watched_s[mode] = self._watched_s.get(mode, 0.0) + step_s

    def begin_anew(self) -> None:
        """A guard broke: what was watched before speaks for nothing."""
        self._watched_s = {}

    def at_least(self, mode: str) -> float:
        """Seconds in this mode and those above."""
        return sum(self._watched_s.get(each, 0.0) for each in MODES[MODES.index(mode) :])

    def plain(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"of": self._of, "s": self._watched_s}
