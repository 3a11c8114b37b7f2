"""The page of a report, from its document alone."""

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from outrider.report.offenders_page import worst_offenders
from outrider.report.page import made_by, name, page, prose
from outrider.report.twin_page import what_would_have_been
from outrider.report.was_page import how_sure, what_was
from outrider.report.words import amounts, cost, number, percent


def html(told: Mapping[str, Any]) -> str:
    """The page.

    Args:
        told: `outrider.report.document.document`, and its provenance where it has any.
    """
    window = told["window"]
    title = f"Outrider report, {window['begin'][:10]} to {window['end'][:10]}"
    return page(title, _parts(told))


def _parts(told: Mapping[str, Any]) -> Iterator[Markup]:
    for line in summary(told):
        yield prose(line)
    yield from what_was(told)
    yield from what_would_have_been(told)
    yield from worst_offenders(told)
    yield from how_sure(told)
    yield from made_by(told)


def summary(told: Mapping[str, Any]) -> list[str]:
    """The report in a few sentences, for the top of the page and for the terminal."""
    was, currency = told["was"], told["tariff"]["currency"]
    if was is None:
        lines = ["The journal tells nothing of this window."]
    else:
        badput = was["energy"]["by_purpose"]["badput"]
        counted = (
            f"Counted in the window: {cost(was['energy']['drawn'], currency)} drawn by all "
            f"machines; {number(was['badput_h'], 'h')} of CPU time "
            f"({percent(was['waste_ratio'])} of all that ended) in runs that were thrown away, "
            f"whose energy is {cost(badput, currency)}."
        )
        holes = ", ".join(name(one["machine"]) for one in told["offenders"]["black_holes"])
        lines = [counted, f"Black holes: {holes}."] if holes else [counted]
    return lines + _of_the_twin(told["would_have_been"], currency)


def _of_the_twin(found: Mapping[str, Any] | None, currency: str) -> list[str]:
    if found is None:
        return ["What would have been was not asked."]
    if found["refused"] is not None:
        return [f"What would have been is not known: {found['refused']}"]
    lines, window = [], found["window"]
    for policy, measures in found["past"].items():
        energy = measures.get("energy_ratio")
        if energy is None or energy["saved"] is None:
            lines.append(f"What {name(policy)} would have saved in energy is not known.")
            continue
        sure = "" if energy["told_apart"] else ", not told apart from nothing"
        more = " (less than 0: more energy)" if energy["ratio"]["high"] > 1.0 else ""
        lines.append(
            f"In the twin's window, {window['begin'][:10]} to {window['end'][:10]}, "
            f"{name(policy)} would have saved {amounts(energy['saved'], currency)}{more} of the "
            f"energy of runs ({100 * energy['ratio']['level']:g} % interval{sure})."
        )
    return lines
