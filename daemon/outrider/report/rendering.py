"""Templates of HTML pages: whatever is put into one is text, and shows as what it is.

It is escaped, and characters that would not show, or would turn the reading of a line around, are
spelled out: names of users, machines and jobs are the words of strangers. What came out of a
template is HTML already, and stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from outrider.model.printable import printable
from outrider.model.quantities import MISSING, count, number


class Templates:
    """The files in the folder ``templates`` of a package.

    Args:
        package: its name, with dots.
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
        """A file filled in; a value that it names and that is not given is an error."""
        return self._environment.get_template(file).render(values)

    def piece(self, macro: str, *given: Any) -> Markup:
        """What a macro of ``pieces.html`` makes of what it is given."""
        pieces = self._environment.get_template("pieces.html").module
        made: Markup = getattr(pieces, macro)(*given)
        return made


def _shown(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(value)


# -- page ------------------------------------------------------------------------------------------
# Pieces of HTML pages: one file that needs nothing beside it, readable without scripts.

LONGEST: Final = 200
"""Characters of a name that are shown."""
_TEMPLATES: Final = Templates("outrider.report")


def page(title: str, parts: Iterable[Markup]) -> str:
    """The whole page from its parts; one that is no HTML yet would be shown as text."""
    return _TEMPLATES.whole("page.html", title=title, parts=parts)


def name(words: str) -> str:
    """A stranger's name, cut where it is endless; nothing is a dash."""
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}...") or "-"


def heading(words: str) -> Markup:
    """The heading of a section."""
    return _TEMPLATES.piece("heading", words)


def subheading(words: str) -> Markup:
    """The heading of a part of a section."""
    return _TEMPLATES.piece("subheading", words)


def prose(words: str) -> Markup:
    """A paragraph."""
    return _TEMPLATES.piece("prose", words)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, in_words: int = 1) -> Markup:
    """A table; every column but the first `in_words` holds figures and is flush right."""
    return _TEMPLATES.piece("table", columns, rows, in_words)


def made_by(result: Mapping[str, Any]) -> Iterator[Markup]:
    """How a result was made, from its provenance; nothing where it has none.

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
# Figures of a report in words: each with its unit; what is not known says so.

UNKNOWN: Final = "not known"


def hours(seconds: float | None) -> str:
    """Seconds as hours."""
    return MISSING if seconds is None else number(seconds / 3600.0, "h", 2)


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
    return ", ".join(f"{reason} {count(n)}" for reason, n in of.items() if n) or MISSING


def window(of: Mapping[str, Any]) -> str:
    """From when to when, on the site's wall clock."""
    return f"{moment(of['begin'])} to {moment(of['end'])}"


def moment(iso: str) -> str:
    """A moment on the site's wall clock, with its offset from UTC."""
    return f"{iso[:10]} {iso[11:16]} {iso[16:]}".rstrip()
