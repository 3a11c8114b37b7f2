"""Long lists in a snapshot, packed a slice at a time.

A snapshot is made beside the running daemon, in a thread. Whatever takes long in one call there
holds the interpreter and stops the event loop: to encode or to free a hundred thousand lists at
once takes 20 ms, and so many new objects set the garbage collector off over the whole process. A
slice takes a tenth of a millisecond, and what it was made of is gone before the next.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

_SLICE_ROWS = 256


def pack(rows: Iterable[Any]) -> list[bytes]:
    """Rows of plain data in slices of MessagePack; `unpack` gives them again."""
    rest = iter(rows)
    encode = msgspec.msgpack.Encoder().encode
    packed = []
    while part := list(islice(rest, _SLICE_ROWS)):
        packed.append(encode(part))
    return packed


def unpack(packed: Iterable[bytes]) -> Iterator[Any]:
    """The rows that `pack` was given; what were tuples are lists. Raises `ValueError`."""
    for part in packed:
        yield from msgspec.msgpack.decode(part)
