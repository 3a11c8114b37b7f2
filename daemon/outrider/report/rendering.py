"""HTML templates that escape every value put into them.

Characters that are invisible, or that would reverse the reading direction of a line, are written
as escapes: names of users, machines and jobs are untrusted. The output of a template is HTML
already and is not escaped again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from outrider.model.printable import printable
from outrider.model.quantities import MISSING, count, number
from outrider.model.reasons import label


class Templates:
    """Templates in the folder ``templates`` of a package.

    Args:
        package: its dotted name.
    """

    def __init__(self, package: str) -> None:
        self._environment = Environment(
            loader=PackageLoader(package),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def whole(self, file: str, **values: Any) -> str:
        """Return a file filled in; a value that it names and that is missing is an error."""
        return self._environment.get_template(file).render(values)

    def piece(self, macro: str, *given: Any) -> Markup:
        """Return the output of a macro of ``pieces.html`` for given arguments."""
        pieces = self._environment.get_template("pieces.html").module
        made: Markup = getattr(pieces, macro)(*given)
        return made


def _shown(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(value)


# -- page ------------------------------------------------------------------------------------------
# Pieces of HTML pages: a page is one self-contained file, readable without scripts.

LONGEST: Final = 200
"""Maximal number of characters of a name that are shown."""
_TEMPLATES: Final = Templates("outrider.report")


def page(title: str, parts: Iterable[Markup]) -> str:
    """Return the whole page from its parts; a part that is not HTML yet is shown as text."""
    return _TEMPLATES.whole("page.html", title=title, parts=parts)


def name(words: str) -> str:
    """Return an untrusted name, cut if too long; a dash if empty."""
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}...") or "-"


def heading(words: str) -> Markup:
    """Return the heading of a section."""
    return _TEMPLATES.piece("heading", words)


def subheading(words: str) -> Markup:
    """Return the heading of a part of a section."""
    return _TEMPLATES.piece("subheading", words)


def prose(words: str) -> Markup:
    """Return a paragraph of text."""
    return _TEMPLATES.piece("prose", words)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, in_words: int = 1) -> Markup:
    """Return a table; all columns but the first `in_words` hold figures, aligned right."""
    return _TEMPLATES.piece("table", columns, rows, in_words)


def made_by(result: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield a section on how a result was made; nothing if it has no provenance.

    Args:
        result: with version, command, date, and traces (path and sha256 of each).
    """
    if "command" not in result:
        return
    yield heading("How this page was made")
    yield prose(f"Outrider {result['version']}, {result['date']}: {result['command']}")
    for trace in result["traces"]:
        yield prose(f"{trace['path']}: SHA-256 {trace['sha256']}")


# -- words -----------------------------------------------------------------------------------------
# Figures of a report as text with their units; unknown values are marked as such.

UNKNOWN: Final = "not known"


def hours(seconds: float | None) -> str:
    """Return a duration in hours, as text."""
    return MISSING if seconds is None else number(seconds / 3600.0, "h", 2)


def cost(of: Mapping[str, float | None], currency: str) -> str:
    """Return an amount of energy as kWh, and as money and CO2 if there is a tariff."""
    if of["kwh"] is None:
        return UNKNOWN
    parts = [number(of["kwh"], "kWh")]
    if of["money"] is not None:
        parts.append(number(of["money"], currency, 2))
    if of["co2_kg"] is not None:
        parts.append(number(of["co2_kg"], "kg CO2"))
    return ", ".join(parts)


def interval(of: Mapping[str, float], unit: str = "", digits: int = 1) -> str:
    """Return an estimate with its interval, as text."""
    low, high = number(of["low"], digits=digits), number(of["high"], unit, digits)
    return f"{number(of['estimate'], unit, digits)} ({low} to {high})"


def units(currency: str) -> dict[str, tuple[str, int]]:
    """Return unit and digits of amounts, by their names in the document."""
    return {
        "kwh": ("kWh", 1), "money": (currency, 2), "co2_kg": ("kg CO2", 1), "badput_h": ("h", 1),
        "evictions": ("evictions", 0),
    }  # fmt: skip


def amounts(of: Mapping[str, Any], currency: str) -> str:
    """Return the amount in each known unit, each with its interval."""
    words = units(currency)
    parts = [interval(of[unit], *words[unit]) for unit in of if of[unit] is not None]
    return ", ".join(parts) or UNKNOWN


def cost_heads(what: str, tariff: Mapping[str, Any]) -> list[str]:
    """Return the column heads for energy: kWh, and money and CO2 if the tariff has them."""
    money, co2_kg = tariff["price_per_kwh"] is not None, tariff["co2_g_per_kwh"] is not None
    return [
        f"{what}, kWh", *([tariff["currency"]] if money else []), *(["kg CO2"] if co2_kg else [])
    ]  # fmt: skip


def cost_cells(of: Mapping[str, float | None], tariff: Mapping[str, Any]) -> list[str]:
    """Return the cells that belong to the columns of `cost_heads`."""
    asked = {"kwh": True, "money": tariff["price_per_kwh"], "co2_kg": tariff["co2_g_per_kwh"]}
    digits = units("")
    return [
        UNKNOWN if of[unit] is None else number(of[unit], digits=digits[unit][1])
        for unit, is_asked in asked.items() if is_asked is not None
    ]  # fmt: skip


def reasons(of: Mapping[str, int]) -> str:
    """Return reasons with their counts, as text, without those that are 0."""
    return ", ".join(f"{label(reason)} {count(n)}" for reason, n in of.items() if n) or MISSING


def window(of: Mapping[str, Any]) -> str:
    """Return the begin and the end of a window, on the site's wall clock."""
    return f"{moment(of['begin'])} to {moment(of['end'])}"


def moment(iso: str) -> str:
    """Return a moment on the site's wall clock, with its offset from UTC."""
    return f"{iso[:10]} {iso[11:16]} {iso[16:]}".rstrip()
