"""Which machine a run is on, from Slurm's shorthand for many."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from outrider_adapters.readers.short_cache import cached_if_short

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""

NO_HOSTS: Final = frozenset({"None assigned", "None", "(null)"})
"""What stands in the place of a node list where no node was ever given."""

_FIRST = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_PARTS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"\[([^\],-]*)[^\]]*\]")


@cached_if_short(entries=16_384)
def first_host(nodes: str) -> str:
    """The first host of a node list, `UNKNOWN_HOST` if it names none.

    >>> first_host("rack[0-1]-n[07,09-12],login1")
    'rack0-n07'
    """
    match = _FIRST.match(nodes)
    return _RANGE.sub(r"\1", match[0]) if match else UNKNOWN_HOST


def hosts_of(nodes: str, most: int = 100_000) -> list[str]:
    """All hosts of a node list, in its order, but no more than `most`.

    >>> hosts_of("rack[0-1]-n[07,09-10],login1")
    ['rack0-n07', 'rack0-n09', 'rack0-n10', 'rack1-n07', 'rack1-n09', 'rack1-n10', 'login1']
    """
    hosts: list[str] = []
    for match in _FIRST.finditer(nodes):
        parts = _PARTS.split(match[0])  # text and the inside of brackets, in turn
        names = [parts[0]]
        for inside, after in zip(parts[1::2], parts[2::2], strict=True):
            numbers = list(islice(_numbers(inside), most))
            names = list(islice((f"{n}{m}{after}" for n in names for m in numbers), most))
        hosts += names[: most - len(hosts)]
    return hosts


def _numbers(ranges: str) -> Iterator[str]:
    """The numbers of ``07,09-12``, each as wide as the list writes it."""
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        if first.isdecimal() and last.isdecimal():
            yield from (f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1))
        else:
            yield one
