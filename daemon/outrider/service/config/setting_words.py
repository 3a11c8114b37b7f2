"""Settings in words, from their declaration: what kind of value, in which range, what for."""

import types
from math import isinf
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from outrider.model.settings import describe


class SettingWords(NamedTuple):
    """One setting, as people read it.

    Attributes:
        name: the key.
        kind: what sort of value: ``number``, ``text``, ``one of "observe", "shadow"``.
        limits: ``0 or more``, ``more than 0, at most 1``; empty where any value is right.
        default: the value it has where nobody sets it; None: unset.
        required: there is no default.
        description: what one would change it for.
    """

    name: str
    kind: str
    limits: str
    default: Any
    required: bool
    description: str

    @property
    def default_text(self) -> str:
        """The default as TOML writes it; empty where there is none."""
        return "" if self.default is None else toml_text(self.default)

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON types; an infinite default is the text ``inf``."""
        infinite = isinstance(self.default, float) and isinf(self.default)
        return self._asdict() | ({"default": toml_text(self.default)} if infinite else {})


def settings_of(record: type[msgspec.Struct]) -> list[SettingWords]:
    """The settings of a record, in the order of their declaration."""
    hints = get_type_hints(record, include_extras=True)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(record)}
    told = []
    for setting in describe(record):
        kind, metas = _unwrapped(hints[fields[setting.name]])
        told.append(
            SettingWords(
                name=setting.name,
                kind=_kind(kind),
                limits=_limits(metas),
                default=None if setting.required else setting.default,
                required=setting.required,
                description=next((m.description for m in metas if m.description), ""),
            )
        )
    return told


def toml_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml_text(item) for item in value)}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{toml_text(k)} = {toml_text(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return msgspec.json.encode(str(value)).decode()


def _unwrapped(hint: Any) -> tuple[Any, list[msgspec.Meta]]:
    """A type without its annotations and its None, and the annotations, the outer first."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        kind, more = _unwrapped(inner)
        return kind, [m for m in metas if isinstance(m, msgspec.Meta)] + more
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        if len(parts) == 1:
            return _unwrapped(parts[0])
    return hint, []


def _kind(hint: Any) -> str:
    plain, _ = _unwrapped(hint)
    origin, parts = get_origin(plain), get_args(plain)
    if origin is Literal:
        return "one of " + ", ".join(toml_text(part) for part in parts)
    if origin in (list, tuple):
        return f"list of {_kind(parts[0])}s" if parts else "list"
    if origin is dict or plain is dict:
        return "table"
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return "table"
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return names.get(plain, "value")


def _limits(metas: list[msgspec.Meta]) -> str:
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
