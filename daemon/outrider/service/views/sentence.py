"""What the daemon saw and thinks, in one sentence, and how times are written in it."""

import datetime as dt
from typing import Any

from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.model.localtime import time_zone
from outrider.service.core.core import Core
from outrider.service.views.twin import NOT_ESTIMATED


def sentence(core: Core, figures: dict[str, Any], saving: str = NOT_ESTIMATED) -> str:
    """What Outrider saw and thinks, in one sentence; `saving`: what the twin says."""
    accounting = core.accounting
    begin_s = accounting.begin_s
    since = "now" if begin_s is None else f"{moment(core, begin_s):%d %b %Y %H:%M}"
    wait_s = figures["wait_s"]["all"]["mean"]
    wait = "no job started yet" if wait_s is None else f"mean wait {_duration(wait_s)}"
    energy = figures["energy_wh"]
    if energy["goodput"] is None or energy["badput"] is None:
        power = "energy unknown (no watts configured)"
    else:
        power = (
            f"{energy['goodput'] / 1000:,.1f} kWh useful and "
            f"{energy['badput'] / 1000:,.1f} kWh wasted"
        )
        if measured := measured_ratio(figures):
            power += f" (of it measured: {measured:.0%})"
    of_policies = [*map(_agreement, core.runners), *core.policies_without_runner.values()]
    views = "; ".join(of_policies) or "no policy is asked"
    return (
        f"{core.config.mode} since {since}: {accounting.submitted:,} jobs seen, {wait}, {power}; "
        f"{views}; saving: {saving}"
    )


def _agreement(runner: PolicyRunner) -> str:
    if runner.broken:
        return runner.broken
    asked = runner.agreed + runner.disagreed
    if not asked:
        return f"{runner.name} has not been compared with a start yet"
    return (
        f"{runner.name} would have chosen the same cluster in {runner.agreed / asked:.0%} of "
        f"{asked:,} starts"
    )


def measured_ratio(figures: dict[str, Any]) -> float | None:
    """How much of the energy that is known was measured by meters; None if none is known."""
    known_wh = {p: wh for p, wh in figures["energy_wh"].items() if wh is not None}
    total_wh = sum(known_wh.values())
    if not total_wh:
        return None
    return float(sum(figures["energy_measured_wh"][p] for p in known_wh) / total_wh)


def moment(core: Core, time_s: float) -> dt.datetime:
    """An event time on the site's wall clock."""
    return dt.datetime.fromtimestamp(time_s, time_zone(core.config.timezone))


def _duration(seconds: float) -> str:
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
