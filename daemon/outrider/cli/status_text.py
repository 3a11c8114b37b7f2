"""Status, forecast, trial and evidence as lines of text."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from outrider.model.quantities import RATIO_LABELS, clock, count, duration, percent
from outrider.model.reasons import label
from outrider.service.views.sentences import trial_results, trial_summary

if TYPE_CHECKING:
    from outrider.service.shapes.values import Evidence, GuardFigure, PolicyFigures, TwinFigures
    from outrider.twin.answer_file import Ratio

# -- trial lines -----------------------------------------------------------------------------------
# A canary trial, in lines for people.


def trial_lines(trial: dict[str, Any] | None, zone: str) -> list[str]:
    """Return the progress of a canary trial, or its result; empty where there was none."""
    if trial is None:
        return []
    results = [f"           {line}" for line in trial_results(trial)]
    return [f"trial      {trial_summary(trial, zone)}", *results]


# -- twin lines ------------------------------------------------------------------------------------
# What the daemon's twin says, in lines for people.

_SHOWN: Final = ("energy_ratio", "badput_ratio", "overhead_mean_ratio")


def twin_lines(twin: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines; none where the twin has not answered."""
    if twin is None:
        return
    yield f"twin       {twin['summary']}"
    if twin["refused"] is not None:
        return
    for policy, ratios in twin["past"].items():
        yield f"           past      {policy}: {_ratios(ratios)}"
    for policy, ratios in (twin["next"] or {}).items():
        yield f"           forecast  {policy}: {_ratios(ratios)}"
    for policy, why in twin["candidates_refused"].items():
        yield f"           refused   {policy}: {why}"


def _ratios(ratios: Mapping[str, Any]) -> str:
    return ", ".join(f"{RATIO_LABELS[name]} {_ratio(ratios.get(name))}" for name in _SHOWN)


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return "unknown"
    return f"{ratio['estimate']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


# -- evidence --------------------------------------------------------------------------------------
# The evidence before a step of the mode, in lines for people.

_SPANS = ("mean_wait_s",)


def evidence_lines(evidence: "Evidence", zone: str = "UTC") -> list[str]:
    """Return the evidence for people, with times in the site's zone."""
    from msgspec import to_builtins

    since_s = evidence.mode_since_s
    since = "" if since_s is None else f" since {clock(since_s, zone)}"
    step, ceiling = evidence.next_mode or "none", evidence.configured_mode
    watched, needed = duration(evidence.watched_s), duration(evidence.needed_s)
    lines = [
        f"mode       {evidence.mode}{since}; configured: {ceiling}; next step: {step}",
        f"decisions  recorded for {watched} in this mode or above, needed: {needed}",
    ]
    lines += [f"policy     {_policy(one)}" for one in evidence.policies]
    lines += [f"guard      {_guard(one)}" for one in evidence.guards]
    lines += [
        f"source     {one.label} is {'up' if one.up else 'DOWN: ' + one.why}"
        for one in evidence.sources
    ]
    lines += [f"twin       {line}" for line in _twin(evidence.twin, zone)]
    lines += trial_lines(to_builtins(evidence.trial), zone)
    if not evidence.against:
        return [*lines, "Nothing blocks the next step."]
    return lines + [f"blocked    {why}" for why in evidence.against]


def _policy(one: "PolicyFigures") -> str:
    if one.failed is not None:
        return f"{one.name} has FAILED: {one.failed}"
    refused = {why: n for why, n in one.would_refuse.items() if n}
    gate = ", ".join(f"{count(n)} {label(why)}" for why, n in refused.items()) or "none"
    return (
        f"{one.name}: {count(one.decisions)} decisions; same choice as the batch system in "
        f"{percent(one.agreement_ratio)} of {count(one.agreed + one.disagreed)} starts; the gate "
        f"allows {count(one.would_act)}, refuses {gate}"
    )


def _twin(twin: "TwinFigures | None", zone: str) -> Iterator[str]:
    if twin is None or twin.asked_s is None:
        yield "no estimate yet"
        return
    needed = "" if twin.needed else "; not needed (promote_by_twin)"
    yield f"asked {clock(twin.asked_s, zone)}{' STALE' if twin.stale else ''}{needed}"
    for policy, why in twin.refused.items():
        yield f"{policy}: refused: {why}"
    for policy, ratios in twin.past.items():
        figures = (f"{RATIO_LABELS[name]} {_interval(ratios.get(name))}" for name in _SHOWN)
        yield f"{policy}, compared with the current scheduler: {', '.join(figures)}"


def _interval(one: "Ratio | None") -> str:
    return "unknown" if one is None else f"{one.estimate:.2f} ({one.low:.2f} to {one.high:.2f})"


def _guard(one: "GuardFigure") -> str:
    bound = "no bound" if one.bound is None else f"bound {_figure(one, one.bound)}"
    if one.value is None:
        return f"{one.name}: not known yet; {bound}"
    broken = " BROKEN" if one.broken else ""
    return f"{one.name}: {_figure(one, one.value)}; {bound}{broken}"


def _figure(one: "GuardFigure", value: float) -> str:
    return duration(value) if one.name in _SPANS else f"{value:.3g}"
