"""The evidence before a step of the mode, in lines for people."""

from typing import Any

from outrider.cli.printing import clock, count, duration, ratio

_SPANS = ("mean_wait_s",)


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
    lines.append("twin       " + ("no estimate yet" if evidence["twin"] is None else "see --json"))
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


def _guard(one: dict[str, Any]) -> str:
    bound = "no bound" if one["bound"] is None else f"bound {_figure(one, one['bound'])}"
    if one["value"] is None:
        return f"{one['name']}: not known yet; {bound}"
    broken = " BROKEN" if one["broken"] else ""
    return f"{one['name']}: {_figure(one, one['value'])}; {bound}{broken}"


def _figure(one: dict[str, Any], value: float) -> str:
    return duration(value) if one["name"] in _SPANS else f"{value:.3g}"
