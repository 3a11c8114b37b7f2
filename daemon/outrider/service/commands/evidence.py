"""What speaks for and against acting more than now: gathered here, judged here, shown as it is."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from outrider.acting.gate import ACTING_MODES, CANARY

_SHADOW: Final = "shadow"
_ACTIVE: Final = "active"


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
        dict[str, Any] | None,
        Meta(description="What a re-simulation of the past says; null: there is none yet."),
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
    return found + _against_by_twin(evidence.twin)


def _broken(guard: GuardFigure) -> str:
    return f"a guard is broken: {guard.name} is {guard.value:g}, its bound {guard.bound:g}"


def _against_by_twin(twin: dict[str, Any] | None) -> list[str]:
    """What a re-simulation says against it. The one place for that; there is no twin yet."""
    return []
