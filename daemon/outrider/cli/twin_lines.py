"""What the daemon's twin says, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from outrider.cli.printing import clock

_MEASURES = (
    ("energy_ratio", "energy"),
    ("badput_ratio", "badput"),
    ("overhead_mean_ratio", "overhead"),
)


def twin_lines(twin: Mapping[str, Any] | None, zone: str) -> Iterator[str]:
    """The lines; none where it has not answered. What it says in words, `saving` has already."""
    if twin is None:
        return
    asked = clock(twin["asked_s"], zone) + (", STALE" if twin["stale"] else "")
    if twin["refused"] is not None:
        yield f"twin       refused: {twin['refused']} (asked {asked})"
        return
    yield f"twin       candidate over {twin['incumbent']}, 90 % intervals; asked {asked}"
    for policy, ratios in twin["past"].items():
        yield f"           past      {policy}: {_ratios(ratios)}"
    for policy, ratios in (twin["next"] or {}).items():
        yield f"           forecast  {policy}: {_ratios(ratios)}"
    for policy, why in twin["candidates_refused"].items():
        yield f"           refused   {policy}: {why}"
    if twin["next_refused"] is not None:
        yield f"           no forecast: {twin['next_refused']}"
    if twin["next_expired"] is not None:
        yield f"           the forecast holds no more: {twin['next_expired']}"
    if twin["other_settings"]:
        yield f"           configured otherwise now: {', '.join(twin['other_settings'])}"


def _ratios(ratios: Mapping[str, Any]) -> str:
    return ", ".join(f"{what} {_ratio(ratios.get(name))}" for name, what in _MEASURES)


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return "unknown"
    return f"{ratio['estimate']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
