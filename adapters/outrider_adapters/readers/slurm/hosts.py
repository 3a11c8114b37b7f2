"""Which machine a run is on, from Slurm's shorthand for many."""

import re
from typing import Final

from outrider_adapters.readers.short_cache import cached_if_short

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""

NO_HOSTS: Final = frozenset({"None assigned", "None", "(null)"})
"""What stands in the place of a node list where no node was ever given."""

_FIRST = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_RANGE = re.compile(r"\[([^\],-]*)[^\]]*\]")


@cached_if_short(entries=16_384)
def first_host(nodes: str) -> str:
    """The first host of a node list, `UNKNOWN_HOST` if it names none.

    >>> first_host("rack[0-1]-n[07,09-12],login1")
    'rack0-n07'
    """
    match = _FIRST.match(nodes)
    return _RANGE.sub(r"\1", match[0]) if match else UNKNOWN_HOST
