"""Query parameters: declared once as a record, checked whole, described in the same words."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from outrider.model.errors import nearest

Q = TypeVar("Q", bound=Struct)

_NUMBERS: Final = {"integer": "a whole number", "number": "a number"}

Limit: TypeAlias = Annotated[int, Meta(ge=1, le=5000, description="At most so many rows.")]


class BadQueryError(Exception):
    """A query parameter is wrong; the message names it, its value and what is right."""


def read_query(record: type[Q], given: Iterable[tuple[str, str]]) -> Q:
    """Make a query record of the names and values that stand after the ``?``.

    Raises:
        BadQueryError: an unknown or repeated parameter, or a wrong value.
    """
    right = schemas(record)
    values: dict[str, str] = {}
    for name, value in given:
        if name not in right:
            raise BadQueryError(f'unknown parameter "{name}"; {nearest(name, right)}')
        if name in values:
            raise BadQueryError(f'"{name}" is given twice: {values[name]!r} and {value!r}')
        values[name] = value
        try:
            msgspec.convert({name: value}, record, strict=False)
        except msgspec.ValidationError as error:
            raise BadQueryError(
                f'"{name}" = {value!r}: right would be {_in_words(right[name])}'
            ) from error
    return msgspec.convert(values, record, strict=False)


def schemas(record: type[Struct]) -> dict[str, dict[str, Any]]:
    """The JSON schema of each parameter."""
    _, components = msgspec.json.schema_components([record])
    properties: dict[str, dict[str, Any]] = components[record.__name__]["properties"]
    return properties


def _in_words(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] not in _NUMBERS:
        return "text"
    least, most = schema.get("minimum"), schema.get("maximum")
    span = "" if least is None else f" from {least}"
    span += f" to {most}" if most is not None else " up" if span else ""
    return _NUMBERS[schema["type"]] + span
