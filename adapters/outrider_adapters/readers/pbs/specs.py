"""Parser of a job's request in a record: user, VO, resources and time."""

import re
from collections.abc import Mapping
from typing import Final

from outrider.api import JobSpec
from outrider_adapters.readers.shared import cached_if_short

NO_GROUP: Final = "-default-"
NO_PROJECT: Final = "_pbs_project_default"
"""PBS's value where a user chose no group or project."""
_TRUE: Final = frozenset({"True", "true", "TRUE", "1"})


def spec_of(fields: Mapping[str, str], submit_s: float | None) -> JobSpec:
    """Return the specification of a job from the pairs of a record.

    The VO is its ``account``, else its ``group``, else its ``project``. The class is interactive
    only where the record contains ``interactive``. CPUs are the allocated ones, else the requested:
    a request in nodes does not determine how many a node has.

    Args:
        fields: the pairs of a Q, S, R or E record.
        submit_s: Unix seconds. A later eligibility (``etime``) is kept; waits begin there.

    Raises:
        ValueError: ``etime`` is not a time.

    >>> spec = spec_of({"owner": "alice@login", "group": "physics", "etime": "90"}, 60.0)
    >>> spec.user, spec.vo, spec.eligible_s
    ('alice', 'physics', 90.0)
    """
    eligible_s = epoch(fields, "etime")
    if eligible_s is not None and submit_s is not None and eligible_s <= submit_s:
        eligible_s = None
    exec_host = fields.get("exec_host")
    cpus = place_of(exec_host)[1] if exec_host else cpus_requested(fields)
    return _shared_spec(
        fields.get("user") or fields.get("owner", "").partition("@")[0],
        _vo(fields),
        "interactive" if fields.get("interactive", "") in _TRUE else "batch",
        cpus,
        fields.get("Resource_List.walltime", ""),
        eligible_s,
    )


def _vo(fields: Mapping[str, str]) -> str:
    account = fields.get("account")
    if account:
        return account
    group = fields.get("group", NO_GROUP)
    if group not in ("", NO_GROUP):
        return group
    project = fields.get("project", NO_PROJECT)
    return project if project not in ("", NO_PROJECT) else "all"


@cached_if_short(entries=4096)
def _shared_spec(
    user: str, vo: str, job_class: str, cpus: int, walltime: str, eligible_s: float | None
) -> JobSpec:
    """Return one specification, shared by all jobs with the same request."""
    return JobSpec(
        user=user, vo=vo, job_class=job_class, cpus=cpus, estimate_s=duration_s(walltime),
        eligible_s=eligible_s,
    )  # fmt: skip


# -- places ----------------------------------------------------------------------------------------
# Place of a run, and its number of CPUs: ``exec_host``, or the request.

UNKNOWN_HOST: Final = "unknown"
"""Machine of a run whose record contains none."""
_SLOTS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_TIMES = re.compile(r"\*(\d{1,6})", re.ASCII)
_COUNT = re.compile(r"(\d{1,6})(?![\w.-])", re.ASCII)
_PER_NODE = re.compile(r":ppn=(\d{1,6})", re.ASCII)
_PER_CHUNK = re.compile(r":ncpus=(\d{1,6})", re.ASCII)
_WHOLE = re.compile(r"\d{1,6}", re.ASCII)


@cached_if_short(entries=4096)
def place_of(exec_host: str) -> tuple[str, int]:
    """Return the first host of a run, and its CPUs over all hosts.

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
    """Return the requested CPUs of a job over all its hosts; 1 if its record has none.

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
    """Return the CPUs of one ``host/slots`` of several."""
    slots = part.rpartition("/")[2]
    times = _TIMES.search(slots)
    if times is not None:
        return int(times[1])
    if "/" not in part:
        return 1
    return sum(int(last or first) - int(first) + 1 for first, last in _SLOTS.findall(slots)) or 1


@cached_if_short(entries=4096)
def _cpus_of_chunks(chunks: str, each: re.Pattern[str]) -> int:
    """Return the CPUs of ``4:ppn=16+n7:ppn=2`` or ``2:ncpus=8+1:ncpus=1`` over all chunks.

    A chunk without a count or CPUs has one.
    """
    total = 0
    for chunk in chunks.split("+"):
        count, cpus = _COUNT.match(chunk), each.search(chunk)
        total += (int(count[1]) if count else 1) * (int(cpus[1]) if cpus else 1)
    return max(1, total)


# -- fields ----------------------------------------------------------------------------------------
# The ``key=value`` pairs of a record's message, as PBS writes them in practice.

EPOCHS: Final = ("ctime", "qtime", "etime", "start", "end")
"""Pairs whose values are Unix seconds: exact, regardless of the server's time zone."""
_READ: Final = frozenset(
    {
        *EPOCHS, "user", "owner", "group", "account", "project", "exec_host", "Exit_status",
        "exit_status", "interactive", "Resource_List.nodes", "Resource_List.ncpus",
        "Resource_List.select", "Resource_List.walltime",
    }
)  # fmt: skip
"""Keys that determine the facts of a job."""
_READ_INSIDE = re.compile(r"\s(?:" + "|".join(map(re.escape, sorted(_READ))) + r")=")
_PAIR = re.compile(r"""(?<!\S)([^\s=]+)=("[^"]*"(?!\S)|'[^']*'(?!\S)|\S*)""")
_SPACED = re.compile(r"""=(?:"[^"\s]*\s|'[^'\s]*\s)""")
_RUN_ON = re.compile(r"([\d.]+)([A-Za-z_][\w.]*)=(.*)", re.ASCII)
_SECONDS = re.compile(r"\d{1,10}\.\d{1,9}", re.ASCII)
_UNITS_S: Final = (1, 60, 3_600, 86_400)


class AmbiguousError(ValueError):
    """Message with several readings, as a user wrote pairs into one of its values."""


def parse(message: str) -> dict[str, str]:
    """Parse the pairs of a message; of a repeated key, the last counts.

    A value may be in quotes; only then it may hold spaces for sure. Words without ``=`` are
    ignored. If the space after an epoch is missing, the next pair is still found.

    Raises:
        AmbiguousError: a key that determines facts of the job comes twice with two values, or
                is inside of quotes: accounts and names are written by users.

    >>> parse('jobname="a b" etime=5start=6 Resource_List.select=1:ncpus=4')
    {'jobname': 'a b', 'etime': '5', 'Resource_List.select': '1:ncpus=4', 'start': '6'}
    """
    pairs: dict[str, str] = {}
    if _SPACED.search(message):
        for key, value in _PAIR.findall(message):
            if value[:1] in ('"', "'") and _READ_INSIDE.search(value):
                raise AmbiguousError(key)
            _add(pairs, key, _unquoted(value))
    else:  # by far the most common case, and in half the time
        for word in message.replace('"', "").split():
            key, equals, value = word.partition("=")
            if equals:
                if key in pairs:
                    _add(pairs, key, value)
                else:
                    pairs[key] = value
    for key in EPOCHS:
        value = pairs.get(key, "0")
        if not value.isdecimal():
            run_on = _RUN_ON.fullmatch(value)
            if run_on is not None:
                pairs[key], follower, rest = run_on.groups()
                pairs.setdefault(follower, rest)
    return pairs


def epoch(fields: Mapping[str, str], key: str) -> float | None:
    """Return Unix seconds of a key; None if it is missing, empty or 0, which means "not yet".

    Raises:
        ValueError: the value is something else, or later than the year 2286.
    """
    value = fields.get(key)
    if not value:
        return None
    if value.isdecimal() and len(value) <= 10:
        return float(value) or None
    if not _SECONDS.fullmatch(value):
        raise ValueError(f"{key}={value} is not a time; expected {key}=1795231020")
    return float(value) or None


def duration_s(text: str) -> float | None:
    """Return seconds of ``[[days:]hours:]minutes:seconds`` or plain seconds; None for other texts.

    >>> duration_s("01:30:00"), duration_s("90")
    (5400.0, 90.0)
    """
    parts = text.partition(".")[0].split(":")
    if len(parts) > len(_UNITS_S) or not all(part.isdecimal() and len(part) < 10 for part in parts):
        return None
    return float(
        sum(int(part) * unit for part, unit in zip(reversed(parts), _UNITS_S, strict=False))
    )


def _add(pairs: dict[str, str], key: str, value: str) -> None:
    if key in _READ and pairs.get(key, value) != value:
        raise AmbiguousError(key)
    pairs[key] = value


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'") and value[-1:] == value[:1] else value
