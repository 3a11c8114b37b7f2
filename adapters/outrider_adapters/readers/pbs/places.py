"""Where a run is, and how many CPUs it has: ``exec_host``, or what the job asked for."""

import re
from collections.abc import Mapping
from typing import Final

from outrider_adapters.readers.short_cache import cached_if_short

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""

_SLOTS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_TIMES = re.compile(r"\*(\d{1,6})", re.ASCII)
_COUNT = re.compile(r"(\d{1,6})(?![\w.-])", re.ASCII)
_PER_NODE = re.compile(r":ppn=(\d{1,6})", re.ASCII)
_PER_CHUNK = re.compile(r":ncpus=(\d{1,6})", re.ASCII)
_WHOLE = re.compile(r"\d{1,6}", re.ASCII)


@cached_if_short(entries=4096)
def place_of(exec_host: str) -> tuple[str, int]:
    """The first host of a run, and its CPUs over all hosts.

    Torque names every slot (``n7/0+n7/1``) or ranges of them (``n7/0-3,8``); PBS Pro a chunk of a
    host and its CPUs (``n7/0*8``), one where it gives no number.

    >>> place_of("n7/0-3+n8/0")
    ('n7', 5)
    >>> place_of("(n7/0*2+n8/0*2)")
    ('n7', 4)
    """
    parts = exec_host.strip("()").split("+")
    host = parts[0].partition("/")[0].strip("()")
    if "*" in exec_host or "-" in exec_host or "," in exec_host:
        return host or UNKNOWN_HOST, max(1, sum(map(_cpus_of_part, parts)))
    return host or UNKNOWN_HOST, len(parts)


def cpus_requested(fields: Mapping[str, str]) -> int:
    """CPUs that a job asked for over all its hosts; 1 where its record does not say.

    >>> cpus_requested({"Resource_List.nodes": "2:ppn=4+n7:ppn=8"})
    16
    """
    nodes = fields.get("Resource_List.nodes")
    if nodes:
        return _cpus_of_chunks(nodes, _PER_NODE)
    cpus = fields.get("Resource_List.ncpus", "")
    if _WHOLE.fullmatch(cpus):
        return max(1, int(cpus))
    select = fields.get("Resource_List.select")
    return _cpus_of_chunks(select, _PER_CHUNK) if select else 1


def _cpus_of_part(part: str) -> int:
    """CPUs of one ``host/slots`` of several."""
    slots = part.rpartition("/")[2]
    times = _TIMES.search(slots)
    if times is not None:
        return int(times[1])
    if "/" not in part:
        return 1
    return sum(int(last or first) - int(first) + 1 for first, last in _SLOTS.findall(slots)) or 1


@cached_if_short(entries=4096)
def _cpus_of_chunks(chunks: str, each: re.Pattern[str]) -> int:
    """CPUs of ``4:ppn=16+n7:ppn=2`` or ``2:ncpus=8+1:ncpus=1``: of each chunk its count, or one."""
    total = 0
    for chunk in chunks.split("+"):
        count, cpus = _COUNT.match(chunk), each.search(chunk)
        total += (int(count[1]) if count else 1) * (int(cpus[1]) if cpus else 1)
    return max(1, total)
