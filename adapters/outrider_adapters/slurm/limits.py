"""Limits that keep a job waiting, with their values: of QOS, accounts, licences and reservations.

Slurm names the limit in the job's reason. Its value and use are in ``scontrol show assoc_mgr``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.queue_rows import QueueRow

_CODE: Final = re.compile(
    r"(?P<whose>QOS|Assoc)(?P<scope>Grp|Max)(?P<what>[A-Za-z]+?)(?P<per>Per(?:Job|User|Account|Node))?"
    r"(?:Limit)?"
)
_RECORD: Final = re.compile(r"^(?:QOS=|ClusterName=)", re.MULTILINE)
_PAIR: Final = re.compile(r"(\w+)=(\S*)")
_VALUE: Final = re.compile(r"(?:(?P<name>[\w/:]+)=)?(?P<limit>\d+)(?:\((?P<used>[\d.]+)\))?")
_KINDS: Final = {
    "cpu": "cpu", "mem": "mem", "memory": "mem", "node": "node", "billing": "billing",
    "energy": "energy", "lic": "license", "license": "license", "gres": "gres", "bb": "bb",
}  # fmt: skip
_NAMES: Final = {"cpu": "CPUs", "mem": "MiB of memory", "node": "nodes", "billing": "billing units"}
_SUFFIXES: Final = {"PerJob": "PJ", "PerUser": "PU", "PerAccount": "PA", "PerNode": "PN"}
_WHOM: Final = {
    "PerJob": "for one job", "PerUser": "for each user", "PerAccount": "for each account",
    "PerNode": "on one node", "": "in all",
}  # fmt: skip
_MINUTES: Final = re.compile(r"CPU(Run)?Minutes|Cpu(Run)?Minutes")
_MAX_PARENTS: Final = 20


class Limit(NamedTuple):
    """Limit that a reason names, with its value.

    Attributes:
        whose: the QOS or account that sets it.
        most: what it allows, in words.
        used: what counts against it now, in words; empty: one job alone can exceed it.
        asked: what the job asks for, in words; empty: not compared.
        never: true if the job alone exceeds it.
    """

    whose: str
    most: str
    used: str
    asked: str
    never: bool

    @property
    def sentence(self) -> str:
        """The limit in a sentence."""
        now = f" (now: {self.used})" if self.used else ""
        asks = f"; it asks for {self.asked}" if self.asked else ""
        return f"{self.whose} allows {self.most}{now}{asks}"


class _Key(NamedTuple):
    """Place of a limit in the output: its key, the resource in it, and its words."""

    key: str
    resource: str
    whom: str

    def words(self, amount: float) -> str:
        """Return an amount of what is limited."""
        if self.key.startswith("MaxWall"):
            return _minutes(amount)
        if "Wall" in self.key:
            return f"{amount:,.0f} minutes of run time"
        if "TRESMins" in self.key:
            return f"{amount:,.0f} {self.resource.upper()} minutes"
        if "TRESRunMins" in self.key:
            return f"{amount:,.0f} {self.resource.upper()} minutes of running jobs"
        if "Jobs" in self.key:
            jobs = "waiting and running jobs" if "Submit" in self.key else "running jobs"
            return f"{amount:,.0f} {jobs if amount != 1 else jobs.removesuffix('s')}"
        name = _NAMES.get(self.resource, self.resource)
        return f"{amount:,.0f} {name.removesuffix('s') if amount == 1 else name}"


def limit_of(
    code: str,
    row: QueueRow,
    qos: str,
    partition_qos: tuple[str, ...],
    show: Callable[..., str],
) -> Limit | None:
    """Return the limit that keeps a job waiting; None if Slurm does not report its value.

    Args:
        code: Slurm's reason.
        row: the job's row.
        qos: its quality of service.
        partition_qos: those of its partitions, which count first.
        show: runs a command and returns its output.
    """
    key = key_of(code)
    if key is None:
        return None
    try:
        if code.startswith("QOS"):
            shown = show("scontrol", "show", "assoc_mgr", "flags=qos")
            records = [(f"QOS {name}", _records(shown).get(("QOS", name), ""))
                       for name in (*partition_qos, qos)]  # fmt: skip
        else:
            shown = show("scontrol", "show", "assoc_mgr", "flags=assoc")
            records = list(_accounts(shown, row))
    except CommandError:
        return None  # no accounting, or this user may not see it
    found = [
        limit for whose, text in records if (limit := _limit(whose, text, key, row)) is not None
    ]
    return next((one for one in found if one.never), found[0] if found else None)


def key_of(code: str) -> _Key | None:
    """Return where the value of a limit is listed; None if the reason is no such limit.

    >>> key_of("QOSMaxCpuPerUserLimit")
    _Key(key='MaxTRESPU', resource='cpu', whom='for each user')
    >>> key_of("AssocGrpJobsLimit").key, key_of("QOSMaxWallDurationPerJobLimit").key
    ('GrpJobs', 'MaxWallPJ')
    """
    match = _CODE.fullmatch(code)
    if match is None:
        return None
    what, per = match["what"], match["per"] or ""
    is_group = match["scope"] == "Grp"
    suffix = "" if is_group else _SUFFIXES.get(per, "")
    scope, whom = match["scope"], _WHOM[per]
    if what in ("Job", "Jobs"):
        return _Key(f"{scope}Jobs{suffix}", "", whom)
    if what in ("SubmitJob", "SubmitJobs"):
        return _Key(f"{scope}SubmitJobs{suffix}", "", whom)
    if what.startswith("Wall"):
        return _Key("GrpWall" if is_group else "MaxWallPJ", "", whom)
    if _MINUTES.match(what):
        mins = "TRESRunMins" if "Run" in what else "TRESMins"
        return _Key(f"{scope}{mins}{'' if is_group else 'PJ'}", "cpu", whom)
    kind = _KINDS.get(what.lower())
    return None if kind is None else _Key(f"{scope}TRES{suffix}", kind, whom)


def _limit(whose: str, record: str, key: _Key, row: QueueRow) -> Limit | None:
    """Return a limit of a record, if it is set there."""
    for name, value in _PAIR.findall(record):
        if name != key.key:
            continue
        for part in value.split(","):
            match = _VALUE.fullmatch(part)
            if match is None or (match["name"] or "").partition("/")[0] != key.resource:
                continue
            most = float(match["limit"])
            asked = _asked(key, row)
            has_use = match["used"] is not None and not key.key.endswith(("PJ", "PN"))
            return Limit(
                whose,
                f"{key.words(most)} {key.whom}",
                key.words(float(match["used"])) if has_use else "",
                "" if asked is None else key.words(asked),
                asked is not None and asked > most,
            )
    return None


def _asked(key: _Key, row: QueueRow) -> float | None:
    """Return what a job asks for of what is limited; None: not an amount of one job."""
    if key.key.startswith("MaxWall"):
        return None if row.limit_s is None else row.limit_s / 60
    if "Mins" in key.key:
        return None if row.limit_s is None else row.cpus * row.limit_s / 60
    if "TRES" not in key.key:
        return None
    amounts = {"cpu": float(row.cpus), "node": float(row.nodes)}
    amount = amounts.get(key.resource) or row.amount(key.resource)
    return (amount / row.nodes if key.key.endswith("PN") else amount) or None


def _minutes(amount: float) -> str:
    hours, minutes = divmod(int(amount), 60)
    return f"{hours}:{minutes:02d}:00 of run time"


def _records(shown: str) -> dict[tuple[str, str], str]:
    """Return the records of quality of service by name."""
    found: dict[tuple[str, str], str] = {}
    for record in _split(shown):
        if record.startswith("QOS="):
            found["QOS", record.partition("=")[2].partition("(")[0]] = record
    return found


def _accounts(shown: str, row: QueueRow) -> Iterator[tuple[str, str]]:
    """Yield the association of a job's user in its account, then the account and its parents."""
    users: dict[tuple[str, str], str] = {}
    accounts: dict[str, str] = {}
    for record in _split(shown):
        if record.startswith("QOS="):
            continue
        pairs: Mapping[str, str] = dict(_PAIR.findall(record))
        account, user = pairs.get("Account", ""), pairs.get("UserName", "").partition("(")[0]
        if user:
            users[account, user] = record
        else:
            accounts[account] = record
    if (row.vo, row.user) in users:
        yield f"account {row.vo}, for its user,", users[row.vo, row.user]
    account = row.vo
    for _ in range(_MAX_PARENTS):
        if account not in accounts:
            return
        yield f"account {account}", accounts[account]
        parents: Mapping[str, str] = dict(_PAIR.findall(accounts[account]))
        account = parents.get("ParentAccount", "").partition("(")[0]


def _split(shown: str) -> list[str]:
    starts = [match.start() for match in _RECORD.finditer(shown)]
    return [shown[a:b] for a, b in zip(starts, [*starts[1:], len(shown)], strict=True)]


# -- licences and reservations ---------------------------------------------------------------------


def licences_in_use(asked: str, shown: str) -> list[str]:
    r"""Return what a job asks of each licence, and how many are in use.

    >>> licences_in_use("matlab:1", "LicenseName=matlab\n    Total=2 Used=2 Free=0 Reserved=0")
    ['1 of matlab (2 of 2 in use)']

    Args:
        asked: as ``squeue`` shows them.
        shown: output of ``scontrol show licenses``.
    """
    counts: dict[str, Mapping[str, str]] = {}
    for record in shown.split("LicenseName=")[1:]:
        name, _, rest = record.partition("\n")
        counts[name.strip().partition(" ")[0]] = dict(_PAIR.findall(rest or record))
    found = []
    for part in filter(None, re.split(r"[,;|]", asked)):
        name, _, amount = part.partition(":")
        count = counts.get(name, {})
        use = f" ({count['Used']} of {count['Total']} in use)" if "Total" in count else ""
        found.append(f"{amount or 1} of {name}{use}")
    return found
