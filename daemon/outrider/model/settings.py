"""Settings: one declaration, from which checks, examples and the reference page are made.

A settings record is a `msgspec.Struct` whose fields are annotated with `msgspec.Meta`: range
and description (why one would change it). The unit is part of the field's name (``_s``, ``_w``,
``_ratio``).
"""

import datetime as dt
import difflib
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isinf, isnan
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from outrider.model.errors import ConfigurationError, nearest

# -- places ----------------------------------------------------------------------------------------
# Where in a file a setting stands, as errors name it: file, line where it is known, table.

Keys = Sequence[str]
LineOf = Callable[[Keys], int | None]
"""The line, from 1, of what these keys lead to; None where that is not known."""


def no_lines(keys: Keys) -> int | None:
    """Return the place of settings that no file holds."""
    return None


class Place(NamedTuple):
    """A table of a file of settings.

    Attributes:
        file: as people name it.
        table: the keys that lead to the table; empty for the file as a whole.
        line_of: finds lines, from keys that lead there from the top of the file.
    """

    file: str
    table: tuple[str, ...] = ()
    line_of: LineOf = no_lines

    def __str__(self) -> str:
        return f"{self.file} [{'.'.join(self.table)}]" if self.table else self.file

    def inside(self, *keys: str) -> "Place":
        """Return the place of a table inside this table."""
        return self._replace(table=(*self.table, *keys))

    def of(self, keys: Keys = ()) -> str:
        """Return this table with the line of a setting or its own: ``a.toml: line 3 [mqtt]``."""
        line = self.line_of((*self.table, *keys))
        if line is None:
            return str(self)
        table = f" [{'.'.join(self.table)}]" if self.table else ""
        return f"{self.file}: line {line}{table}"


def place_text(where: str | Place, keys: Keys = ()) -> str:
    """A place as errors begin with it, with the line of a setting where that is known."""
    return where.of(keys) if isinstance(where, Place) else where


# -- settings --------------------------------------------------------------------------------------

T = TypeVar("T", bound=msgspec.Struct)


class Setting(NamedTuple):
    """One setting, as shown in the documentation."""

    name: str
    default: Any
    required: bool
    type: Any
    ge: float | None
    le: float | None
    doc: str


def describe(record: type[msgspec.Struct]) -> Iterator[Setting]:
    """The settings of a record, in the order of their declaration."""
    hints = get_type_hints(record, include_extras=True)
    for field in msgspec.structs.fields(record):
        default = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        meta = msgspec.Meta()
        kind = hints[field.name]
        for part in (kind, *get_args(kind)):  # also the optional one: Annotated[...] | None
            if get_origin(part) is Annotated:
                bare, meta = get_args(part)[:2]
                kind = bare if part is kind else bare | None
        yield Setting(
            name=field.encode_name,
            default=None if default is msgspec.NODEFAULT else default,
            required=field.required,
            type=kind,
            ge=meta.ge if meta.ge is not None else meta.gt,
            le=meta.le if meta.le is not None else meta.lt,
            doc=meta.description or "",
        )


def build(record: type[T], given: Mapping[str, Any], where: str | Place) -> T:
    """Make a settings record from the values of a file or a command line.

    Args:
        record: the declaration.
        given: keys and values.
        where: the place to name in an error, such as ``site.toml [policies.bandit]``.

    Raises:
        ConfigurationError: an unknown key (names the nearest known one), a key that is missing, a
            wrong type, a value out of range or not a number (nan), or keys that do not go together;
            says place, key, value and what is expected.
    """
    wrong = find_wrong(record, given)
    if wrong is not None:
        raise wrong.error(where)
    return msgspec.convert(dict(given), record, strict=True)


# -- toml lines ------------------------------------------------------------------------------------
# On which line of a TOML file a key stands: `tomllib` does not say.
#
# A file that is cut after one of its lines is TOML too, unless the cut is inside a value of several
# lines. The first cut with which a key is there ends with the statement that sets it, so a few
# readings of the beginning find the line, however the file is written.

_MOST_BYTES: Final = 256 * 1024
"""Maximum bytes of a file that is searched for the line number of a setting."""
_LONGEST_VALUE: Final = 200
"""Lines of one value that are looked through for its end."""


class TomlLines:
    """The lines of a file whose text was read without error."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True) if len(text) <= _MOST_BYTES else []

    def __call__(self, keys: Sequence[str]) -> int | None:
        """The line, from 1, of what these keys lead to; None where it is not there."""
        below, end = 0, len(self._lines)
        if not keys or not self._holds(end, keys):
            return None
        while end - below > 1:  # the keys are there with `end` lines, and not with `below`
            middle = (below + end) // 2
            if self._holds(middle, keys):
                end = middle
            else:
                below = middle
        return self._begins(end)

    def _holds(self, lines_n: int, keys: Sequence[str]) -> bool:
        """Return whether the first lines hold the keys, without those of an unfinished value."""
        table: Any = self._read(lines_n)
        for key in keys:
            if not isinstance(table, dict) or key not in table:
                return False
            table = table[key]
        return True

    def _read(self, lines_n: int) -> dict[str, Any]:
        """Return the contents of the first lines, without a value that is cut off."""
        for n in range(lines_n, max(-1, lines_n - _LONGEST_VALUE), -1):
            try:
                return tomllib.loads("".join(self._lines[:n]))
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
        return {}

    def _begins(self, last: int) -> int:
        """The first line of the statement that ends with line `last`."""
        for n in range(last - 1, max(-1, last - _LONGEST_VALUE), -1):
            try:
                tomllib.loads("".join(self._lines[:n]))
            except tomllib.TOMLDecodeError:
                continue
            return n + 1
        return last


# -- setting kinds ---------------------------------------------------------------------------------
# What a setting may be, in words, from the annotations of its declaration.

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_KINDS: Final[dict[Any, str]] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    dt.date: "date",
    dt.datetime: "date and time without a zone",
}
_WITH_ARTICLE: Final = {"true or false": "true or false", "text": "text in quotes"}


def unwrapped(hint: Any) -> tuple[Any, list[msgspec.Meta]]:
    """A type without its annotations and its None, and the annotations, the outer first."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        kind, more = unwrapped(inner)
        return kind, [m for m in metas if isinstance(m, msgspec.Meta)] + more
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        if len(parts) == 1:
            return unwrapped(parts[0])
    return hint, []


def kind_text(hint: Any) -> str:
    """Return the kind of value: ``number``, ``one of "observe", "shadow"``, ``list of texts``."""
    plain, _ = unwrapped(hint)
    origin, parts = get_origin(plain), get_args(plain)
    if origin is Literal:
        return "one of " + ", ".join(toml_text(part) for part in parts)
    if origin in (list, tuple) or plain in (list, tuple):
        return f"list of {kind_text(parts[0])}s" if parts else "list"
    if origin is dict or plain is dict:
        return "table"
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return "table"
    if origin in (Union, types.UnionType):
        return " or ".join(kind_text(part) for part in parts if part is not type(None))
    return _KINDS.get(plain, "value")


def limits_text(metas: Iterable[msgspec.Meta]) -> str:
    """Return the range of values: ``0 or more``, ``more than 0``; empty without bounds."""
    words = []
    for meta in metas:
        for bound, text in (
            (meta.ge, "{} or more"), (meta.gt, "more than {}"),
            (meta.le, "at most {}"), (meta.lt, "less than {}"),
        ):  # fmt: skip
            if bound is not None:
                words.append(text.format(f"{bound:g}"))
        if meta.min_length:
            words.append(f"at least {meta.min_length}")
    return ", ".join(words)


def right_text(hint: Any) -> str:
    """Return the expected value as an error names it: ``a number, 0 or more``."""
    plain, metas = unwrapped(hint)
    kind, limits = kind_text(plain), limits_text(metas)
    if plain is str:  # of a text, lengths are letters; of a list, entries
        most = next((meta.max_length for meta in metas if meta.max_length), None)
        limits = "not empty" if limits else ""
        limits += f"{', ' if limits else ''}at most {most} letters" if most else ""
    article = "" if kind.startswith("one of") else "a "
    return ", ".join(filter(None, (_WITH_ARTICLE.get(kind, article + kind), limits)))


def toml_key(key: str) -> str:
    """A key as TOML writes it: in quotes only where it needs them."""
    return key if _BARE_KEY.fullmatch(key) else toml_text(key)


def toml_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml_text(item) for item in value)}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_key(k)} = {toml_text(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return msgspec.json.encode(str(value)).decode()


# -- wrong settings --------------------------------------------------------------------------------
# What is wrong with settings, found from their declaration and told in the words of its reader.
#
# `msgspec` says whether values fit; its own words (types of Python, paths of JSON) reach nobody.

_MOST_LETTERS: Final = 120
"""Maximum characters of a value that is shown."""
_INVALID = (msgspec.ValidationError, OverflowError, RecursionError)


class Wrong(NamedTuple):
    """Something wrong in a table of settings.

    Attributes:
        keys: lead to it; an entry of a list by its number, from 0.
        problem: what it is: a value, a key that is missing or unknown, or keys that do not go
            together.
        right: the expected value, a whole clause.
        value: the value, unless the key is missing.
    """

    keys: tuple[str | int, ...]
    problem: Literal["value", "missing", "unknown", "together"]
    right: str
    value: Any = None

    def error(self, where: str | Place) -> ConfigurationError:
        """The error that says so."""
        names = [key for key in self.keys if isinstance(key, str)]
        place = place_text(where, names if self.problem != "missing" else names[:-1])
        key = named(self.keys)
        if self.problem == "unknown":
            return ConfigurationError(f"{place}: unknown setting {key}; {self.right}")
        if self.problem == "missing":
            return ConfigurationError(f"{place}: {key} is missing: expected {self.right}")
        if self.problem == "together":
            return ConfigurationError(f"{place}: {f'{key}: ' if key else ''}{self.right}")
        return wrong_value(where, self.keys, self.value, self.right)


def wrong_value(
    where: str | Place, keys: tuple[str | int, ...], value: Any, right: str
) -> ConfigurationError:
    """Return the error of one wrong value: place with its line, key, value, expected value."""
    names = [key for key in keys if isinstance(key, str)]
    shown = shown_value(value)
    return ConfigurationError(
        f"{place_text(where, names)}: {named(keys)} = {shown}: expected {right}"
    )


def named(keys: tuple[str | int, ...]) -> str:
    """Keys as an error names them: ``"paths", entry 2``."""
    names = ".".join(key for key in keys if isinstance(key, str))
    entries = "".join(f", entry {key + 1}" for key in keys if isinstance(key, int))
    return f'"{names}"{entries}' if names else ""


def shown_value(value: Any) -> str:
    """A value as TOML writes it, cut where it is long."""
    text = toml_text(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def find_wrong(record: type[msgspec.Struct], given: Mapping[str, Any]) -> Wrong | None:
    """The first thing wrong in a table for this record, in the order in which it is given."""
    return next(_in_record(record, given, ()), None)


def _in_record(
    record: type[msgspec.Struct], given: Mapping[str, Any], keys: tuple[str | int, ...]
) -> Iterator[Wrong]:
    hints = get_type_hints(record, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(record)}
    for key in given:
        if key not in fields:
            yield Wrong((*keys, key), "unknown", nearest(str(key), fields))
    for key, field in fields.items():
        hint, default = hints[field.name], _default(field)
        if key in given:
            yield from _in_value(hint, given[key], (*keys, key), _example(key, hint, default))
        elif field.required:
            right = f"{right_text(hint)}{_example(key, hint, default)}"
            yield Wrong((*keys, key), "missing", right)
    try:
        msgspec.convert(dict(given), record, strict=True)
    except _INVALID as error:
        why = str(error.__cause__ or "") or "these settings do not go together"
        yield Wrong(keys, "together", why)


def _in_value(hint: Any, value: Any, keys: tuple[str | int, ...], example: str) -> Iterator[Wrong]:
    """Yield what is wrong inside a value first, then with it as a whole."""
    plain, _ = unwrapped(hint)
    origin, parts = get_origin(plain), get_args(plain)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and isinstance(value, Mapping):
        yield from _in_record(plain, value, keys)
        return
    if origin is dict and isinstance(value, Mapping):
        for key, inner in value.items():
            inner_example = _example(key, parts[1], None)
            yield from _in_value(parts[1], inner, (*keys, key), inner_example)
    elif origin in (list, tuple) and parts and isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _in_value(parts[0], inner, (*keys, number), example)
    if not _fits(hint, value):
        close = _nearly(plain, value)
        if close and isinstance(keys[-1], str):
            example = f", as in {toml_key(keys[-1])} = {toml_text(close)}"
        yield Wrong(keys, "value", f"{right_text(hint)}{example}", value)


def _fits(hint: Any, value: Any) -> bool:
    if isinstance(value, float) and isnan(value) and hint is not Any:
        return False  # no bound refuses it, and nothing that is computed with it can be right
    try:
        msgspec.convert(value, hint, strict=True)
    except _INVALID:
        return False
    return True


def _nearly(plain: Any, value: Any) -> str:
    """The word that was meant, where there are few and this is nearly one of them."""
    words = [part for part in get_args(plain) if isinstance(part, str)]
    if get_origin(plain) is not Literal or not isinstance(value, str):
        return ""
    close = difflib.get_close_matches(value, words, n=1)
    return close[0] if close else ""


def _default(field: Any) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return None if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _example(key: str, hint: Any, default: Any) -> str:
    """The clause that shows a right value, ``, as in epsilon = 0.05``; empty where none is known.

    It is the declaration's own example, else the default, else a number or word in its range.
    """
    plain, metas = unwrapped(hint)
    examples = [example for meta in metas for example in meta.examples or ()]
    if examples:
        value = examples[0]
    elif default is not None and not (isinstance(default, (list, tuple, dict)) and not default):
        value = default
    else:
        value = _made_up(plain, metas)
    if value is None or isinstance(value, msgspec.Struct):
        return ""
    return f", as in {toml_key(key)} = {toml_text(value)}"


def _made_up(plain: Any, metas: list[msgspec.Meta]) -> Any:
    if get_origin(plain) is Literal:
        return get_args(plain)[0]
    if plain is bool:
        return True
    if get_origin(plain) in (list, tuple):
        inner, more = unwrapped(get_args(plain)[0])
        made = _made_up(inner, more)
        return None if made is None else [made]
    if plain not in (int, float):
        return None
    low = next((b for m in metas for b in (m.ge, m.gt) if b is not None), None)
    high = next((b for m in metas for b in (m.le, m.lt) if b is not None), None)
    middle = (low or 0) + 1 if high is None else ((low or 0) + high) / 2
    return int(middle) if plain is int else float(middle)
