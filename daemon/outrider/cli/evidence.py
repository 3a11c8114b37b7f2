"""The evidence before a step of the mode, in lines for people."""

from collections.abc import Iterator
from typing import Any

from outrider.cli.printing import clock, count, duration, ratio
from outrider.cli.trial_lines import trial_lines

_SPANS = ("mean_wait_s",)
_OF_TWIN = ("energy_ratio", "badput_ratio", "overhead_mean_ratio")


def evidence_lines(evidence: dict[str, Any], zone: str = "UTC") -> list[str]:
    """What `GET /api/v1/promotion` answers, for people; times in the site's zone."""
    since_s = evidence["mode_since_s"]
    since = "" if since_s is None else f" since {clock(since_s, zone)}"
    step = evidence["next_mode"] or "none"
    ceiling = evidence["configured_mode"]
    watched, needed = duration(evidence["watched_s"]), duration(evidence["needed_s"])
    lines = [
        f"mode       {evidence['mode']}{since}; the configuration's: {ceiling}; next step: {step}",
        f"decided    for {watched} in this mode or above, needed: {needed}",
    ]
    lines += [f"policy     {_policy(one)}" for one in evidence["policies"]]
    lines += [f"guard      {_guard(one)}" for one in evidence["guards"]]
    lines += [
        f"source     {one['label']} is {'up' if one['up'] else 'DOWN: ' + one['why']}"
        for one in evidence["sources"]
    ]
    lines += [f"twin       {line}" for line in _twin(evidence["twin"], zone)]
    lines += trial_lines(evidence.get("trial"), zone)
    lines += [f"against    {why}" for why in evidence["against"]]
    return lines if evidence["against"] else [*lines, "against    nothing"]


def _policy(one: dict[str, Any]) -> str:
    if one["failed"] is not None:
        return f"{one['name']} has FAILED: {one['failed']}"
    compared = one["agreed"] + one["disagreed"]
    refused = {why: n for why, n in one["would_refuse"].items() if n}
    gate = ", ".join(f"{count(n)} {why}" for why, n in refused.items()) or "none"
    return (
        f"{one['name']}: {count(one['decisions'])} decisions; as the batch system did in "
        f"{ratio(one['agreement_ratio'])} of {count(compared)} starts; the gate lets through "
        f"{count(one['would_act'])}, refuses {gate}"
    )


def _twin(twin: dict[str, Any] | None, zone: str) -> Iterator[str]:
    if twin is None or twin["asked_s"] is None:
        yield "no estimate yet"
        return
    needed = "" if twin["needed"] else "; not needed (promote_by_twin)"
    yield f"asked {clock(twin['asked_s'], zone)}{' STALE' if twin['stale'] else ''}{needed}"
    for policy, why in twin["refused"].items():
        yield f"{policy}: refused: {why}"
    for policy, ratios in twin["past"].items():
        told = ", ".join(
            f"{name.removesuffix('_ratio')} {_interval(ratios.get(name))}" for name in _OF_TWIN
        )
        yield f"{policy}, over the incumbent: {told}"


def _interval(one: dict[str, Any] | None) -> str:
    return (
        "unknown"
        if one is None
        else f"{one['estimate']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
    )


def _guard(one: dict[str, Any]) -> str:
    bound = "no bound" if one["bound"] is None else f"bound {_figure(one, one['bound'])}"
    if one["value"] is None:
        return f"{one['name']}: not known yet; {bound}"
    broken = " BROKEN" if one["broken"] else ""
    return f"{one['name']}: {_figure(one, one['value'])}; {bound}{broken}"


def _figure(one: dict[str, Any], value: float) -> str:
    return duration(value) if one["name"] in _SPANS else f"{value:.3g}"
