"""Figures of a report in words: each with its unit; what is not known says so."""

from collections.abc import Mapping
from typing import Any, Final

UNKNOWN: Final = "not known"
NONE: Final = "-"


def number(value: float | None, unit: str = "", digits: int = 1) -> str:
    """A figure with its unit; `NONE` where there is nothing to compute it from."""
    if value is None:
        return NONE
    return f"{value:,.{digits}f} {unit}".rstrip()


def count(value: float | None) -> str:
    """A whole number."""
    return number(value, digits=0)


def hours(seconds: float | None) -> str:
    """Seconds as hours."""
    return NONE if seconds is None else number(seconds / 3600.0, "h", 2)


def percent(ratio: float | None) -> str:
    """A ratio."""
    return NONE if ratio is None else f"{100.0 * ratio:.1f} %"


def cost(of: Mapping[str, float | None], currency: str) -> str:
    """An amount of energy as kWh, money and CO2, as far as there is a tariff."""
    if of["kwh"] is None:
        return UNKNOWN
    parts = [number(of["kwh"], "kWh")]
    if of["money"] is not None:
        parts.append(number(of["money"], currency, 2))
    if of["co2_kg"] is not None:
        parts.append(number(of["co2_kg"], "kg CO2"))
    return ", ".join(parts)


def interval(of: Mapping[str, float], unit: str = "", digits: int = 1) -> str:
    """An estimate with its interval."""
    low, high = number(of["low"], digits=digits), number(of["high"], unit, digits)
    return f"{number(of['estimate'], unit, digits)} ({low} to {high})"


def units(currency: str) -> dict[str, tuple[str, int]]:
    """Unit and digits of amounts, by their names in the document."""
    return {
        "kwh": ("kWh", 1), "money": (currency, 2), "co2_kg": ("kg CO2", 1), "badput_h": ("h", 1),
        "evictions": ("evictions", 0),
    }  # fmt: skip


def amounts(of: Mapping[str, Any], currency: str) -> str:
    """An amount by unit, each with its interval; units that are not known are left out."""
    words = units(currency)
    told = [interval(of[unit], *words[unit]) for unit in of if of[unit] is not None]
    return ", ".join(told) or UNKNOWN


def cost_heads(what: str, tariff: Mapping[str, Any]) -> list[str]:
    """Heads of columns for energy: kWh, and money and CO2 where the tariff tells."""
    money, co2_kg = tariff["price_per_kwh"] is not None, tariff["co2_g_per_kwh"] is not None
    return [
        f"{what}, kWh", *([tariff["currency"]] if money else []), *(["kg CO2"] if co2_kg else [])
    ]  # fmt: skip


def cost_cells(of: Mapping[str, float | None], tariff: Mapping[str, Any]) -> list[str]:
    """Cells below `cost_heads`."""
    asked = {"kwh": True, "money": tariff["price_per_kwh"], "co2_kg": tariff["co2_g_per_kwh"]}
    digits = units("")
    return [
        UNKNOWN if of[unit] is None else number(of[unit], digits=digits[unit][1])
        for unit, is_asked in asked.items() if is_asked is not None
    ]  # fmt: skip


def reasons(of: Mapping[str, int]) -> str:
    """Reasons with their counts, those that are not 0."""
    return ", ".join(f"{reason} {count(n)}" for reason, n in of.items() if n) or NONE


def window(of: Mapping[str, Any]) -> str:
    """From when to when, on the site's wall clock."""
    return f"{moment(of['begin'])} to {moment(of['end'])}"


def moment(iso: str) -> str:
    """A moment on the site's wall clock, with its offset from UTC."""
    return f"{iso[:10]} {iso[11:16]} {iso[16:]}".rstrip()
