"""What is wrong with settings, found from their declaration and told in the words of its reader.

`msgspec` says whether values fit; its own words (types of Python, paths of JSON) reach nobody.
"""

import difflib
from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from outrider.model.errors import ConfigurationError, nearest
from outrider.model.places import Place, place_text
from outrider.model.setting_kinds import right_text, toml_key, toml_text, unwrapped

_MOST_LETTERS: Final = 120
"""Of a value that is shown."""
_INVALID = (msgspec.ValidationError, OverflowError, RecursionError)


class Wrong(NamedTuple):
    """Something wrong in a table of settings.

    Attributes:
        keys: lead to it; an entry of a list by its number, from 0.
        problem: what it is: a value, a key that is missing or unknown, or keys that do not go
            together.
        right: what would be right, a whole clause.
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
            return ConfigurationError(f"{place}: {key} is missing: right would be {self.right}")
        if self.problem == "together":
            return ConfigurationError(f"{place}: {f'{key}: ' if key else ''}{self.right}")
        return wrong_value(where, self.keys, self.value, self.right)


def wrong_value(
    where: str | Place, keys: tuple[str | int, ...], value: Any, right: str
) -> ConfigurationError:
    """The error of one wrong value: place with its line, key, value and what would be right."""
    names = [key for key in keys if isinstance(key, str)]
    shown = shown_value(value)
    return ConfigurationError(
        f"{place_text(where, names)}: {named(keys)} = {shown}: right would be {right}"
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
    """What is wrong inside a value first, then with it as a whole."""
    plain, _ = unwrapped(hint)
    origin, parts = get_origin(plain), get_args(plain)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and isinstance(value, Mapping):
        yield from _in_record(plain, value, keys)
        return
    if origin is dict and isinstance(value, Mapping):
        for key, inner in value.items():
            told = _example(key, parts[1], None)
            yield from _in_value(parts[1], inner, (*keys, key), told)
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
