"""What a setting may be, in words, from the annotations of its declaration."""

import datetime as dt
import re
import types
from collections.abc import Iterable
from math import isinf
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

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
    """What sort of value: ``number``, ``one of "observe", "shadow"``, ``list of texts``."""
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
    """The range: ``0 or more``, ``more than 0, at most 1``; empty where any value is right."""
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
    """What would be right, as an error says it: ``a number, 0 or more``."""
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
