"""Packing of long lists in a snapshot, one slice at a time.

A snapshot is made in a thread while the daemon runs. A single long call there holds the
interpreter and stops the event loop: to encode or to free a hundred thousand lists in one call
takes 20 ms, and so many new objects trigger the garbage collector over the whole process. A slice
takes a tenth of a millisecond, and its objects are freed before the next.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

_SLICE_ROWS = 256


def pack(rows: Iterable[Any]) -> list[bytes]:
    """Return rows of plain data as slices of MessagePack, for `unpack`."""
    rest = iter(rows)
    encode = msgspec.msgpack.Encoder().encode
    packed = []
    while part := list(islice(rest, _SLICE_ROWS)):
        packed.append(encode(part))
    return packed


def unpack(packed: Iterable[bytes]) -> Iterator[Any]:
    """Yield the rows that `pack` was given; tuples become lists. Raises `ValueError`."""
    for part in packed:
        yield from msgspec.msgpack.decode(part)
