"""The part of the page that says what would have been, and the forecast, by the twin."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from outrider.report.page import heading, name, prose, subheading, table
from outrider.report.words import NONE, cost, count, interval, number, units, window

MEASURES: Final = {
    "energy_ratio": "energy of runs that ended",
    "badput_ratio": "badput",
    "evictions_ratio": "runs thrown away",
    "overhead_mean_ratio": "overhead, mean",
    "overhead_capped_mean_ratio": "overhead up to a day, mean",
    "overhead_p95_ratio": "overhead, p95",
    "overhead_p99_ratio": "overhead, p99",
}


def what_would_have_been(told: Mapping[str, Any]) -> Iterator[Markup]:
    """The twin's answer in its own window."""
    found, currency = told["would_have_been"], told["tariff"]["currency"]
    yield heading("What would have been")
    if found is None:
        yield prose(
            "Not asked. `outrider twin` asks it of this journal; --twin shows its answer here."
        )
        return
    asked = f", asked {found['asked']['date']}" if found["asked"]["date"] else ""
    yield prose(f"The twin's answer{asked}. Incumbent: {name(found['incumbent'] or '')}.")
    if found["refused"] is not None:
        yield prose(f"The twin refused: {found['refused']}")
        yield from _fidelity(found)
        return
    yield prose(
        f"Its window: {window(found['window'])}, not the window of this report. The figures below "
        "hold for the whole of it and for no part of it, and the twin does not tell VOs apart."
    )
    yield from _fidelity(found)
    for policy, why in found["candidates_refused"].items():
        yield prose(f"Refused for {name(policy)}: {why}")
    if found["unknown"] is not None:
        yield prose(f"Amounts of energy are not known: {found['unknown']}.")
    if found["was"] is not None:
        was = found["was"]
        yield prose(
            f"What was in the twin's window: {cost(was['energy'], currency)} of runs that ended, "
            f"{number(was['badput_h'], 'h')} of badput, {count(was['evictions'])} runs thrown away."
        )
    for policy, measures in found["past"].items():
        yield subheading(f"{name(policy)}: what would have been, beside what was")
        yield table(
            ("", "times what was", "unit", "would have been", "saved (less than 0: more)", "sure"),
            [row for key, label in MEASURES.items()
             for row in _rows(label, measures.get(key), currency)],
        )  # fmt: skip
    yield from _forecast(found["forecast"], found["window"])


def _rows(
    label: str, measure: Mapping[str, Any] | None, currency: str
) -> Iterator[tuple[str, ...]]:
    """A row for each unit of a measure; one without amounts has its ratio alone."""
    if measure is None:
        yield label, NONE, NONE, NONE, NONE, "there is no such ratio"
        return
    ratio, would, saved = measure["ratio"], measure["would"] or {}, measure["saved"]
    told = (label, interval(ratio, digits=3))
    level = f"{100 * ratio['level']:g} % interval"
    sure = f"{level} without 1" if measure["told_apart"] else f"{level} with 1 in it"
    known = [unit for unit in would if would[unit] is not None]
    if not known:
        yield *told, NONE, NONE, NONE, sure
    for unit in known:
        word, digits = units(currency)[unit]
        would_be, would_save = (interval(of[unit], digits=digits) for of in (would, saved))
        yield *told, word, would_be, would_save, sure


def _fidelity(found: Mapping[str, Any]) -> Iterator[Markup]:
    fidelity = found["fidelity"]
    if fidelity is None or not fidelity["parts"]:
        return
    parts = ", ".join(
        f"{part} {number(off, digits=3)} (at most {fidelity['bounds'].get(part, 0.0):g})"
        for part, off in fidelity["parts"].items()
    )
    passed = "It passed" if fidelity["passed"] else "It did not pass"
    yield prose(
        f"First the incumbent was simulated anew and held against what happened. {passed}; off "
        f"by: {parts}."
    )


def _forecast(forecast: Mapping[str, Any], twins: Mapping[str, Any]) -> Iterator[Markup]:
    if forecast["refused"] is not None:
        yield prose(f"No forecast: {forecast['refused']}")
    if forecast["ratios"] is None:
        return
    yield subheading("Forecast of the window after the twin's")
    expired = {
        None: "Whether it still holds is not known: this report's window is none of those after "
        "the twin's, or a figure for it is missing.",
        True: "It has expired: load or the share of waste of this report's window differs from "
        "that of the twin's by more than the forecast bears.",
        False: "Load and share of waste of this report's window are as it takes them to be.",
    }[forecast["expired"]]
    yield prose(
        f"Ratios, made from {window(twins)}. Other jobs will come, so that intervals are wider; no "
        f"amounts are made of them. {expired}"
    )
    for policy, measures in forecast["ratios"].items():
        yield table(
            (name(policy), "times the incumbent's"),
            [(label, NONE if measures.get(key) is None
              else f"{interval(measures[key], digits=3)}, {100 * measures[key]['level']:g} %")
             for key, label in MEASURES.items()],
        )  # fmt: skip
