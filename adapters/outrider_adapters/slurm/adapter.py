"""Adapter of a Slurm cluster: jobs, nodes and limits, by Slurm's own commands."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, Self

from outrider.api import Batch, FoundSystem, HelperUnit, PeerError, ServiceNeeds, WaitingReason
from outrider_adapters.polling import CommandError, PollingAdapter
from outrider_adapters.polling.commands import found_by_commands
from outrider_adapters.readers.slurm.record_events import STATE_WORDS
from outrider_adapters.slurm.acting.helper.requests import HelperClient
from outrider_adapters.slurm.acting.lever import LeasedStartTimes
from outrider_adapters.slurm.commands import (
    SEPARATOR,
    SlurmCommands,
    changes_nothing,
    hidden_from_us,
)
from outrider_adapters.slurm.job_steps import WAITING, is_limit, is_waiting, seen
from outrider_adapters.slurm.limits import licences_in_use, limit_of
from outrider_adapters.slurm.nodes import reservations_of, settings_of, shown_for_s
from outrider_adapters.slurm.queue_rows import FIELDS, QueueRow, row_of
from outrider_adapters.slurm.reasons import (
    NODES,
    Ahead,
    WaitingFacts,
    is_about_nodes,
    waiting_reason,
)
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.slurm_watch import SlurmWatch

# -- diagnosis -------------------------------------------------------------------------------------
# Checks of a Slurm, before Outrider watches it.

Finding = tuple[str, str, str, str]
"""Subject, state (ok, warn, fail), finding and fix, as listed by ``outrider doctor``."""


def diagnosed(commands: SlurmCommands, settings: SlurmSettings) -> Iterator[Finding]:
    """Check the controller, permissions, acting and accounting."""
    try:
        config = settings_of(commands.run("scontrol", "show", "config"))
        rows = commands.run("squeue", "-a", "-h", "-o", "%A").split()
        nodes = commands.run("sinfo", "-a", "-h", "-N", "-o", "%N").split()
        federation = commands.run("scontrol", "show", "federation").strip()
    except CommandError as error:
        remedy = 'start slurmctld, or name its configuration: config = "/etc/slurm/slurm.conf"'
        yield "controller", "fail", str(error), remedy
        return
    version = config.get("SLURM_VERSION", "unknown")
    cluster = config.get("ClusterName", "?")
    found = f"Slurm {version}, cluster {cluster}: {len(rows)} rows of jobs, {len(set(nodes))} nodes"
    yield "controller", "ok", found, ""
    if federation.startswith("Federation:"):
        yield "federation", "fail", federation.split("\n")[0], "follow a dump of sacct instead"
    if hidden := hidden_from_us(commands, config):
        found, _, remedy = hidden.partition("; use: ")
        yield "rights", "fail", found, remedy
    else:
        yield "rights", "ok", f"PrivateData={config.get('PrivateData', 'none')}", ""
    yield _acting(commands, config, settings)
    yield _accounting(config)


def _acting(commands: SlurmCommands, config: dict[str, str], settings: SlurmSettings) -> Finding:
    if settings.helper is not None:
        try:
            HelperClient(settings.helper, settings.answer_within_s).check()
        except CommandError as error:
            found, _, remedy = str(error).partition("; use: ")
            return "acting", "fail", found, remedy
        found = f"the helper at {settings.helper} can change other users' jobs"
        return "acting", "ok", found, ""
    if why := changes_nothing(commands, config):
        return "acting", "ok", f"enough for the modes observe and shadow alone: {why}", ""
    return "acting", "ok", "other users' jobs can be changed in the modes canary and active", ""


def _accounting(config: dict[str, str]) -> Finding:
    storage = config.get("AccountingStorageType", "accounting_storage/none")
    if storage.endswith("slurmdbd"):
        return "accounting", "ok", "sacct reports jobs that left between two looks", ""
    found = (
        "no slurmdbd: jobs that end while Outrider does not look for more than "
        f"{shown_for_s(config):g} s (MinJobAge) count as removed"
    )
    remedy = "restart Outrider within that time, or let Slurm keep its accounting"
    return "accounting", "warn", found, remedy


# -- adapter ---------------------------------------------------------------------------------------

CONFIG_PATHS: Final = (
    "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
)  # fmt: skip
"""Paths of slurm.conf; the second is where slurmctld distributes it."""


class SlurmAdapter(PollingAdapter):
    """Adapter that watches a cluster by ``squeue``, ``scontrol show`` and ``sacct``.

    The settings define its queries and their intervals. Only its lever changes anything.
    """

    name: ClassVar[str] = "slurm"
    description: ClassVar[str] = "watches a Slurm cluster: its queue, nodes and limits"
    api_version = 1
    settings_type: ClassVar[type[SlurmSettings]] = SlurmSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "usable", "drained", "asleep", "woken", "power", "submitted", "started",
        "suspended", "resumed", "evicted", "completed", "removed", "held", "released", "changed",
        "eligible",
    )  # fmt: skip
    levers = (LeasedStartTimes,)
    pattern_setting = "machine_clusters"
    reasons_name_users: ClassVar[bool] = False
    discipline = "easy"  # its backfill never delays the first in line, and replans the others
    incumbent = "multifactor"
    state_words = STATE_WORDS

    def __init__(self, label: str, settings: SlurmSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._commands = SlurmCommands(settings)
        self._watch = SlurmWatch(self._commands, settings)

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """Return the Slurm whose commands and configuration this host has, if any."""
        return found_by_commands(
            "Slurm", "squeue", (os.environ.get("SLURM_CONF", ""), *CONFIG_PATHS)
        )

    def diagnose(self) -> list[Finding]:
        """Check the controller and permissions, for ``outrider doctor``."""
        return list(diagnosed(self._commands, self._settings))

    def service_needs(self) -> ServiceNeeds:
        """Return the hosts that are contacted, and the files that the commands read."""
        return needs_of(self._settings, self._commands)

    def begin(self, cursor: Any) -> None:
        """Find out the cluster, and continue from a cursor.

        Raises:
            PeerError: no controller answers, or the cluster is in a federation.
            ValueError: the cursor does not belong to this adapter.
        """
        self._watch = SlurmWatch(self._commands, self._settings, self.undo_log)
        self._watch.start(cursor)

    def look(self) -> Batch:
        """Return the events since the last look."""
        batch = self._watch.look()
        self.planned_starts = self._watch.planned_starts
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds until the next look."""
        return self._watch.pause_s

    def end(self) -> None:
        """Do nothing: no resource is open between looks."""

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Return Slurm's reason why a job is not running now. Raises `PeerError`: no answer."""
        return await self.answer(lambda: ask_why(self._watch, self._commands, job))

    async def __aenter__(self) -> Self:
        """Start a thread, and commands that may run until the adapter is closed."""
        self._commands = SlurmCommands(self._settings)
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """Cancel running commands, then close."""
        self._commands.close()
        await super().__aexit__(*raised)


# -- questions -------------------------------------------------------------------------------------
# Queries that explain why a job waits.

_EXTRA_FIELDS = ("Dependency", "QOS", "PriorityLong", "Licenses")
_FIRST_N: Final = 3


class _Queued(NamedTuple):
    """Row of the queue with the fields that explain it."""

    text: str
    row: QueueRow
    dependency: str
    qos: str
    priority: int
    licences: str


def ask_why(watch: SlurmWatch, commands: SlurmCommands, name: str) -> WaitingReason | None:
    """Return why a job waits; None if it runs, has left, or is of another cluster.

    However many jobs are asked about, the queue is read every two seconds at most.

    Args:
        watch: of the Slurm.
        commands: of it.
        name: of the job.

    Raises:
        PeerError: Slurm does not answer.
    """
    cluster, _, job = name.rpartition(":")
    kind = watch.jobs.kind(job) if cluster == watch.jobs.cluster else None
    if kind is None:
        return None
    # the whole queue: for a task alone squeue would omit how many tasks of its array may run
    queue = watch.recent.kept(("queue",), lambda: _queue(commands))
    mine = next((one for one in queue if job in one.row.jobs), None)
    if mine is None:
        return None
    if not is_waiting(mine.row):
        return _waits_no_more(mine.row) if watch.jobs.was_waiting(job) else None
    row = watch.jobs.as_its_user_left_it(mine.row)
    code = row.reason.partition(",")[0].strip()
    show = watch.recent.shown
    partition_qos = tuple(p.qos for n in row.partitions if (p := watch.partitions.get(n)) and p.qos)
    licences = show("scontrol", "show", "licenses") if code == "Licenses" else ""
    facts = WaitingFacts(
        job=job,
        row=row,
        shown_eligible_s=mine.row.eligible_s,
        row_id=mine.text.partition(SEPARATOR)[0],
        dependency=mine.dependency,
        qos=mine.qos,
        ahead=_ahead(queue, mine, job, watch),
        tasks=_tasks_of(queue, job),
        parts=_other_parts(queue, job),
        kind=kind,
        nodes=watch.nodes_now() if is_about_nodes(row.reason) else watch.nodes,
        partitions=watch.partitions,
        reservations=reservations_of(show("scontrol", "show", "reservation", "-o")),
        now_s=watch.now_s,
        limit=limit_of(code, row, mine.qos, partition_qos, show) if is_limit(code) else None,
        licences=tuple(licences_in_use(mine.licences, licences)) if licences else (),
    )
    return waiting_reason(facts, watch.eligibility)


def _waits_no_more(row: QueueRow) -> WaitingReason:
    where = f" on {row.hosts}" if row.hosts else ""
    sentence = f"is {row.state.lower()}{where}, as Slurm shows it since the last look"
    return WaitingReason(code=row.state, sentence=sentence, is_over=True)


def _queue(commands: SlurmCommands) -> list[_Queued]:
    """Return the rows of the queue. Raises `PeerError`: Slurm does not answer."""
    found = []
    for text in filter(None, commands.rows((*FIELDS, *_EXTRA_FIELDS), "-a", "-t", "all")):
        values = text.split(SEPARATOR)
        try:
            row = row_of(SEPARATOR.join([*values[: len(FIELDS)], ""]))
            dependency, qos, priority, licences = (
                "" if value == "(null)" else value for value in values[len(FIELDS) : -1]
            )
            found.append(_Queued(text, row, dependency, qos, int(priority), licences))
        except ValueError as error:
            raise PeerError(f"output of squeue cannot be parsed: {error}") from error
    return found


def _tasks_of(queue: list[_Queued], job: str) -> tuple[int, int]:
    """Count the waiting and the other present tasks of a job's array."""
    array = f"{job.partition('_')[0]}_"
    rows = [one.row for one in queue if one.row.jobs[0].startswith(array)]
    waiting = sum(len(row.jobs) for row in rows if is_waiting(row))
    return waiting, sum(len(row.jobs) for row in rows if row.state in ("RUNNING", "SUSPENDED"))


def _other_parts(queue: list[_Queued], job: str) -> tuple[str, ...]:
    """Return the other components of a heterogeneous job."""
    whole, plus, _ = job.partition("+")
    if not plus:
        return ()
    ids = (one.row.jobs[0] for one in queue)
    return tuple(sorted(other for other in ids if other.startswith(f"{whole}+") and other != job))


def _ahead(queue: list[_Queued], mine: _Queued, job: str, watch: SlurmWatch) -> Ahead:
    """Return the waiting jobs that Slurm considers before a job, in its order.

    Jobs of a partition of a higher tier come first, then those of a higher priority, then those of
    a lower number. Only jobs of partitions that share nodes with the job's own are counted.
    """
    nodes_of: dict[str, set[str]] = {}
    for name, node in watch.nodes.items():
        for partition in node.partitions:
            nodes_of.setdefault(partition, set()).add(name)

    def order(one: _Queued) -> tuple[int, int]:
        known = (watch.partitions[p].tier for p in one.row.partitions if p in watch.partitions)
        return -max(known, default=1), -one.priority

    own = set(mine.row.partitions)
    own_nodes = set[str]().union(*(nodes_of.get(p, set()) for p in own))
    shares = own | {p for p, nodes in nodes_of.items() if nodes & own_nodes}
    mine_key, parts = order(mine), _other_parts(queue, job)
    found: dict[str, tuple[tuple[int, int], tuple[int, ...], int]] = {}
    now_s = watch.now_s
    for one in queue:
        key = order(one)
        if (
            key > mine_key
            or shares.isdisjoint(one.row.partitions)
            or seen(one.row, now_s).status != WAITING
            or one.row.reason.startswith(NODES)  # no other job waits for it
        ):
            continue
        for other in one.row.jobs:  # listed once for each of its partitions
            if other not in parts and (key < mine_key or number_of(other) < number_of(job)):
                found[other] = key, number_of(other), one.row.cpus
    first = sorted(found, key=lambda other: found[other][:2])[:_FIRST_N]
    equal = sum(key == mine_key for key, _, _ in found.values())
    return Ahead(len(found), sum(cpus for _, _, cpus in found.values()), equal, tuple(first))


def number_of(job: str) -> tuple[int, ...]:
    """Return a job's number and task, by which Slurm orders jobs of equal priority.

    >>> number_of("12_10") > number_of("12_9") > number_of("12") < number_of("13+1")
    True
    """
    return tuple(int(part) for part in re.split(r"[_+]", job) if part.isdecimal())


# -- service needs ---------------------------------------------------------------------------------
# Needs of a service next to a Slurm: the addresses of its controllers, its configuration.

_DEFAULT_CONFIG: Final = "/etc/slurm/slurm.conf"
_CONTROLLER: Final = re.compile(
    r"SlurmctldHost(\[\d+\])?|ControlMachine|BackupController", re.IGNORECASE
)
_DATABASE: Final = re.compile(r"AccountingStorage(Backup)?Host", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(r"(?P<name>[^(]+)\((?P<address>[^)]+)\)")
_SLURM_USER: Final = "slurm"
"""User of the unit if Slurm does not report one."""
_UNSET: Final = ("", "(null)", "none")


def needs_of(settings: SlurmSettings, commands: SlurmCommands) -> ServiceNeeds:
    """Return the hosts that are contacted and the files that the commands read, as far as known."""
    config = settings.config or os.environ.get("SLURM_CONF") or _DEFAULT_CONFIG
    unknown = ""
    try:
        shown = commands.run("scontrol", "show", "config")
    except CommandError as error:
        shown = _text_of(Path(config))
        if not shown:
            unknown = f"the addresses of Slurm's controllers are not known: {error}"
    environment = {}
    if settings.config is None and "SLURM_CONF" in os.environ:
        environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
    files = [config] if Path(config).exists() else []
    return ServiceNeeds(
        hosts=hosts_in(shown),
        files=(*files, *([settings.commands] if settings.commands else [])),
        environment=environment,
        helpers=() if settings.helper is None else (_helper(settings.helper, settings, shown),),
        unknown_hosts=unknown,
        changes_last=settings.changes_last,
        notes=(unknown,) if unknown else (),
    )


def _helper(socket: str, settings: SlurmSettings, shown: str) -> HelperUnit:
    """Return the helper that updates jobs as a permitted user, by the same commands."""
    config = settings.config or os.environ.get("SLURM_CONF")
    words = ["outrider_adapters.slurm.acting.helper"]
    words += ["--slurm-config", config] if config else []
    words += ["--commands", settings.commands] if settings.commands else []
    user = settings_of(shown).get("SlurmUser", _SLURM_USER).partition("(")[0]
    return HelperUnit(name="outrider-slurm", words=tuple(words), user=user, socket=socket)


def hosts_in(config: str) -> dict[str, str]:
    r"""Return the hosts that Slurm's commands contact, by its configuration, with their roles.

    >>> hosts_in("SlurmctldHost[0] = ctl(192.0.2.7)\nAccountingStorageHost = db\n")
    {'192.0.2.7': "Slurm's controller ctl", 'db': "Slurm's database"}
    """
    found: dict[str, str] = {}
    for key, value in settings_of(config).items():
        role = "controller" if _CONTROLLER.fullmatch(key) else ""
        role = role or ("database" if _DATABASE.fullmatch(key) else "")
        if not role or value in _UNSET:
            continue
        if (named := _IN_BRACKETS.fullmatch(value)) is not None:
            found[named["address"]] = f"Slurm's {role} {named['name']}"
        else:
            found[value] = f"Slurm's {role}"
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
