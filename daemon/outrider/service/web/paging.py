"""Long lists in pages: bounded in rows and in bytes, each with the cursor of the next one."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, UnsetType

C = TypeVar("C")

LARGEST_PAGE_BYTES: Final = 256 * 1024

After: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType,
    Meta(description="Go on after this: what `next` of the page before said."),
]
Next: TypeAlias = Annotated[
    int | None, Meta(description="Pass it as `after` for what follows; null: nothing does.")
]


def page_of(
    rows: Iterable[tuple[C, Mapping[str, Any]]], limit: int
) -> tuple[list[Mapping[str, Any]], C | None]:
    """The first of some rows, as many as one answer may hold; at least one, however large.

    Args:
        rows: the cursor of each row, and the row.
        limit: at most so many.

    Returns:
        The rows, and the cursor of the last if others follow.
    """
    page: list[Mapping[str, Any]] = []
    last: C | None = None
    left = LARGEST_PAGE_BYTES
    for cursor, row in rows:
        left -= len(msgspec.json.encode(row)) + 1
        if page and (left < 0 or len(page) == limit):
            return page, last
        page.append(row)
        last = cursor
    return page, None
