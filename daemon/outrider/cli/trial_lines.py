"""A canary trial, in lines for people."""

from typing import Any

from outrider.cli.printing import clock


def trial_lines(trial: dict[str, Any] | None, zone: str) -> list[str]:
    """How far it is, or what came of it; none where there was none."""
    if trial is None:
        return []
    days = f"{trial['days_done']} of {trial['days']} days"
    begin = f"{trial['policy']}, from {clock(trial['begins_s'], zone)}, seed {trial['seed']}"
    if trial["restarts"]:
        begin += f", {trial['restarts']} restarts of the daemon meanwhile"
    if trial["state"] == "broken_off":
        return [f"trial      broken off after {days}: {trial['why']} ({begin})"]
    if trial["state"] == "running":
        today = "it acts now" if trial["acts_now"] else "it does not act now"
        return [f"trial      {days} done; {today}; no ratio before its end ({begin})"]
    outcome = trial["outcome"]
    if outcome is None or outcome["too_short"]:
        why = "nothing was counted" if outcome is None else outcome["too_short"]
        return [f"trial      ended: {why} ({begin})"]
    lines = [f"trial      ended: {outcome['pairs']} pairs of days ({begin})"]
    stated = {"next": "forecast", "past": "twin"}.get(trial["stated_as"], "")
    return lines + [
        f"           {name}: {_ratio(one)}{_beside(one, stated)}"
        for name, one in outcome["measures"].items()
    ]


def _ratio(one: dict[str, Any]) -> str:
    if one["estimate"] is None:
        return "not known"
    return f"{one['estimate']:.3f} ({one['low']:.3f} to {one['high']:.3f})"


def _beside(one: dict[str, Any], stated: str) -> str:
    told = one["stated"]
    if told is None or one["within"] is None:
        return ""
    verdict = (
        "within" if one["within"] else "outside" + (", agrees" if one["agrees"] else ", disagrees")
    )
    return f"; {stated} {told['estimate']:.3f} ({told['low']:.3f} to {told['high']:.3f}): {verdict}"
