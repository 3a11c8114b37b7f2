"""Query parameters: declared once as a record, checked whole, described in the same words."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.errors import nearest
from outrider.service.http.values import JobState

Q = TypeVar("Q", bound=Struct)

Limit: TypeAlias = Annotated[int, Meta(ge=1, le=5000, description="At most so many rows.")]


class BadQueryError(Exception):
    """A query parameter is wrong; the message names it, its value and what is right."""


class JobsQuery(Struct, frozen=True):
    """Which jobs."""

    limit: Limit = 200
    state: Annotated[JobState | UnsetType, Meta(description="Only jobs in this state.")] = UNSET


class MachinesQuery(Struct, frozen=True):
    """How many machines."""

    limit: Limit = 200


class DecisionsQuery(Struct, frozen=True):
    """Which rows of the ledger."""

    limit: Limit = 200
    job: Annotated[str | UnsetType, Meta(description="Only decisions about this job.")] = UNSET
    after: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType,
        Meta(
            description="Only rows after this sequence number, oldest first. "
            "Without it: the newest rows, newest first."
        ),
    ] = UNSET


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
    if schema["type"] == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    return "text"
