"""Settings: one declaration, from which checks, examples and the reference page are made.

A settings record is a `msgspec.Struct` whose fields are annotated with `msgspec.Meta`: range
and description (why one would change it). The unit is part of the field's name (``_s``, ``_w``,
``_ratio``).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from outrider.model.places import Place
from outrider.model.wrong_settings import find_wrong

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
            says place, key, value and what would be right.
    """
    wrong = find_wrong(record, given)
    if wrong is not None:
        raise wrong.error(where)
    return msgspec.convert(dict(given), record, strict=True)
