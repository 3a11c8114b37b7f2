"""Quantities as text for people: counts, ratios, durations and energies, each in a fitting unit."""

from collections.abc import Mapping
from typing import Final

MISSING: Final = "-"
"""Shown where there is nothing to compute a figure from."""
UNITS_OF_TIME: Final = (("s", 1.0, 120.0), ("min", 60.0, 7_200.0), ("h", 3_600.0, 172_800.0))
"""Unit, its seconds, and the seconds from which a larger one is used; as in `page/words.js`."""

RATIO_LABELS: Final = {
    "energy_ratio": "energy of runs",
    "badput_ratio": "wasted CPU time",
    "evictions_ratio": "evicted runs",
    "overhead_mean_ratio": "mean overhead",
    "overhead_capped_mean_ratio": "mean overhead, up to a day each",
    "overhead_p95_ratio": "overhead, p95",
    "overhead_p99_ratio": "overhead, p99",
}
"""Labels of what the twin compares between policies, in its order; the page has the same."""

MANY_EQUAL: Final = 20
"""Number of equal targets (5 % and less) that makes the fairness utility meaningless."""


def number(value: float | None, unit: str = "", digits: int = 1) -> str:
    """Return a figure with its unit, thousands separated, or `MISSING`."""
    return MISSING if value is None else f"{value:,.{digits}f} {unit}".rstrip()


def count(value: float | None) -> str:
    """Return a whole number, thousands separated, or `MISSING`."""
    return number(value, digits=0)


def figure(value: float | None, per: float = 1.0, digits: int = 1) -> str:
    """Return a number in a unit that holds `per` of its own, or `MISSING`."""
    return MISSING if value is None else number(value / per, digits=digits)


def percent(ratio: float | None) -> str:
    """Return a ratio as per cent, or `MISSING`."""
    return MISSING if ratio is None else f"{100.0 * ratio:.1f} %"


def change(ratio: float) -> str:
    """Return a ratio as a change in per cent.

    >>> change(0.76), change(1.031), change(1.0)
    ('-24.0 %', '+3.1 %', '+0.0 %')
    """
    return f"{100.0 * (ratio - 1.0):+.1f} %"


def duration(seconds: float | None) -> str:
    """Return a time span in the unit that suits it, or `MISSING`.

    >>> [duration(s) for s in (12, 192, 5_400, 18_000, 181_440)]
    ['12 s', '3.2 min', '90 min', '5.0 h', '2.1 d']
    """
    if seconds is None:
        return MISSING
    for unit, size, most in UNITS_OF_TIME:
        if abs(seconds) < most:
            digits = 0 if unit == "s" or (unit == "min" and abs(seconds) >= 600.0) else 1
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{seconds / 86_400.0:.1f} d"


def energy(watt_hours: float | None) -> str:
    """Return an energy in the unit that suits it: ``120 Wh``, ``3.4 kWh``, ``1.2 MWh``."""
    if watt_hours is None:
        return "unknown"
    for unit, size, most in (("Wh", 1.0, 1e3), ("kWh", 1e3, 1e6)):
        if abs(watt_hours) < most:
            return f"{watt_hours / size:.1f} {unit}"
    return f"{watt_hours / 1e6:.1f} MWh"


def clock(time_s: float | None, zone: str = "UTC") -> str:
    """Return a moment on a site's wall clock, to the second, or `MISSING`.

    Args:
        time_s: Unix seconds.
        zone: the site's, an IANA name.
    """
    import datetime as dt
    from zoneinfo import ZoneInfo

    if time_s is None:
        return MISSING
    try:
        return f"{dt.datetime.fromtimestamp(time_s, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S %Z}"
    except (OverflowError, ValueError, OSError):
        return f"{time_s:.0f} s"  # no date of any calendar


def degenerate(targets: Mapping[str, float | None]) -> str | None:
    """Return why these targets make the fairness utility meaningless; None if they do not.

    With n equal targets the greatest possible deficit is 1 / n, and it is reached as long as one
    VO got nothing: then F is 0, however well all others were served.

    Args:
        targets: target share of each VO; those with target 0 or an unknown one do not count.
    """
    shares = [share for share in targets.values() if share]
    if len(shares) < MANY_EQUAL or max(shares) > min(shares) * (1 + 1e-6):
        return None
    return (
        f"fairness is degenerate: {len(shares)} VOs have a target of {max(shares):.2%} each, so it "
        "is 0 as long as one of them got nothing and depends only on the worst served; expected "
        "fewer VOs (in replays --group-vos-below), or targets that differ"
    )
