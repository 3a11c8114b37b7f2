"""Adapter of a PBS server: jobs and nodes, by its own commands."""

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from outrider.api import (
    Batch,
    DecisionRow,
    FoundSystem,
    Lever,
    PeerError,
    ServiceNeeds,
    WaitingReason,
)
from outrider_adapters.noted_changes import (
    GONE,
    BeginTimes,
    GivenUpError,
    Pace,
    Plan,
    apply_changes,
)
from outrider_adapters.pbs.dialects import Dialect, dialect_of, pbs_commands
from outrider_adapters.pbs.job_rows import (
    MAX_DELAY_S,
    WaitingJob,
    qalter_words,
    waiting_jobs,
)
from outrider_adapters.pbs.pbs_watch import PBSWatch
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import CommandError, PollingAdapter
from outrider_adapters.polling.commands import found_by_commands
from outrider_adapters.readers.pbs.exits import STATE_WORDS

# -- lever -----------------------------------------------------------------------------------------
# Lever of a PBS server: jobs wait for an execution time that expires automatically.

_MAX_JOBS: Final = 100
"""Maximum number of jobs of one ``qalter``."""
_UNREACHABLE: Final = ("did not answer within", "cannot connect to server")
_OF_AN_ARRAY: Final = "it is a job of an array, which PBS alters only as a whole"
_ENDED: Final = "the daemon ends, and drops this update"


class LeasedExecutionTimes(Lever):
    """Lever that moves the execution time of deferred jobs a lease ahead, again and again.

    A job that is to start may begin immediately. PBS decides where it runs, and which of the jobs
    that may begin comes first. The lever needs the right of an operator of the server.

    Args:
        adapter: of the server.
        now: this host's clock, Unix seconds.
    """

    name = "leased_execution_times"
    description = (
        "keeps jobs in the queue by an execution time a lease ahead, which then takes effect"
    )
    actions = ("start", "defer")
    places = False

    def __init__(self, adapter: Any, now: Callable[[], float] = time.time) -> None:
        super().__init__(adapter)
        self.lease_s = adapter.settings.lease_s
        self._now = now
        self._pace = Pace(adapter.settings.updates_per_s)
        # commands that take and print times of UTC, regardless of this host's zone
        self._commands = pbs_commands(adapter.settings, TZ="UTC0")
        self._shown: Mapping[str, WaitingJob] = {}

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """Implement `Lever.apply` by execution times."""
        now_s = int(self._now())
        waiting = self._waiting()
        kept = [one.job for one in decisions if one.action == "defer"]
        free = [one.job for one in decisions if one.action == "start"]
        parts = {name: _OF_AN_ARRAY for name in kept if self._is_of_an_array(name)}
        deferred = self._times.deferred(
            {name: waiting.get(name) for name in kept if name not in parts}, now_s
        )
        released = self._times.released({name: waiting.get(name) for name in free}, now_s)
        refused = parts | deferred.refused | self._apply_changes([deferred, released])
        self._check_clock(deferred.values.keys() - refused.keys(), now_s)
        return {name: why for name, why in refused.items() if why != GONE or name in kept}

    def withdraw(self, jobs: Collection[str]) -> dict[str, str]:
        """Implement `Lever.withdraw` by releasing the jobs."""
        return self._release(jobs)[1]

    def withdraw_all(self) -> int:
        """Implement `Lever.withdraw_all` for the jobs in the undo log."""
        names = self._times.kept(int(self._now()))
        done, refused = self._release(names)
        if refused:
            name, why = next(iter(refused.items()))
            raise PeerError(
                f"{len(refused)} of {len(names)} jobs are still deferred: {name}: {why}"
            )
        return done

    def hurry(self) -> None:
        """Implement `Lever.hurry`: stop spreading updates."""
        self._pace.hurry()

    def close(self) -> None:
        """End a running command."""
        self._commands.close()

    def _waiting(self) -> Mapping[str, WaitingJob]:
        self._shown = waiting_jobs(self._dialect.jobs().entries)
        return self._shown

    def _release(self, names: Collection[str]) -> tuple[int, dict[str, str]]:
        """Release jobs that Outrider deferred; return their number, and the refusals."""
        waiting = self._waiting() if names else {}
        plan = self._times.released({name: waiting.get(name) for name in names}, int(self._now()))
        refused = self._apply_changes([plan], reverts=True)
        refused = {name: why for name, why in refused.items() if why != GONE}
        return len(plan.values.keys() - refused.keys()), refused

    def _apply_changes(self, plans: Sequence[Plan], *, reverts: bool = False) -> dict[str, str]:
        return apply_changes(
            [self._times.change(plan) for plan in plans],
            lambda values: self._alter(values, reverts),
            self._waiting,
        )

    def _alter(self, values: Mapping[str, Mapping[str, int]], reverts: bool) -> str:
        """Give jobs their execution times; return the last error, empty if there was none."""
        error_text = ""
        by_begin: dict[int, list[str]] = {}
        for name, given in values.items():
            by_begin.setdefault(given["begin_s"], []).append(name)
        n = min(_MAX_JOBS, self._pace.burst_n)
        for begin_s, names in by_begin.items():
            for first in range(0, len(names), n):
                some = names[first : first + n]
                if self._pace.wait_or_end(len(some)) and not reverts:
                    raise GivenUpError(_ENDED)
                try:
                    self._commands.run("qalter", *qalter_words(begin_s, some))
                except CommandError as error:  # of one of them; reading back shows which
                    error_text = str(error)
                    if any(sign in error_text for sign in _UNREACHABLE):
                        raise GivenUpError(error_text) from error
        return error_text

    def _check_clock(self, names: Collection[str], now_s: int) -> None:
        """Release jobs whose execution times were computed by a clock that is off.

        PBS reports its time only in the attributes of what it has just changed.

        Raises:
            PeerError: it differs by more than a quarter of a lease.
        """
        changed = [self._shown[name].changed_s for name in names if name in self._shown]
        off_s = [at_s - now_s for at_s in changed if at_s is not None]
        worst_s = max(off_s, key=abs, default=0.0)
        if abs(worst_s) > self.lease_s / 4.0:
            self.withdraw(names)
            raise PeerError(
                f"the server's clock differs by {worst_s:+.0f} s from this host's; expected "
                f"less than a quarter of lease_s, {self.lease_s / 4.0:g} s"
            )

    def _is_of_an_array(self, name: str) -> bool:
        return "[" in name and not self._dialect.is_torque

    @cached_property
    def _dialect(self) -> Dialect:
        return dialect_of(self.adapter.settings, self._commands)

    @cached_property
    def _times(self) -> BeginTimes:
        # created on first use, since the adapter gets its undo log after its levers
        return BeginTimes(self.adapter.undo_log, self.lease_s, MAX_DELAY_S)


# -- diagnosis -------------------------------------------------------------------------------------
# Checks of a PBS server, before Outrider watches it.

Finding = tuple[str, str, str, str]
"""Subject, state (ok, warn, fail), finding and fix, as listed by ``outrider doctor``."""


def diagnosed(settings: PBSSettings) -> Iterator[Finding]:
    """Check the server, its dialect, and whether the ends of unseen jobs are known."""
    commands = pbs_commands(settings)
    try:
        dialect = dialect_of(settings, commands)
        jobs, nodes = dialect.jobs(), dialect.nodes()
    except CommandError as error:
        remedy = 'name the folder of qstat and the server: commands = "/opt/pbs/bin", server = ...'
        yield "server", "fail", str(error), remedy
        return
    found = f"{dialect.name}: {len(jobs.entries)} jobs, {len(nodes.entries)} nodes"
    yield "server", "ok", found, ""
    if jobs.rejected:
        found = f"{len(jobs.rejected)} jobs cannot be parsed, such as {jobs.rejected[0]}"
        yield "jobs", "warn", found, "their users wrote attributes into their environments"
    if dialect.is_torque:
        found = "jobs that have ended are known for keep_completed seconds"
        yield "history", "ok", found, ""
        return
    try:
        server = commands.run("qstat", "-B", "-f")
    except CommandError as error:
        yield "history", "warn", str(error), ""
        return
    if "job_history_enable = True" in server:
        yield "history", "ok", "qstat -x reports how jobs ended", ""
    else:
        found = "the server keeps no history: jobs that leave count as removed"
        yield "history", "warn", found, "qmgr -c 'set server job_history_enable = True'"


# -- adapter ---------------------------------------------------------------------------------------


class PBSAdapter(PollingAdapter):
    """Adapter that watches a server by ``qstat`` and ``pbsnodes``.

    The settings define its queries and their intervals. Only its lever changes anything.
    """

    name: ClassVar[str] = "pbs"
    description: ClassVar[str] = "watches a PBS server (OpenPBS, Torque): its queue and nodes"
    api_version = 1
    settings_type: ClassVar[type[PBSSettings]] = PBSSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "usable", "drained", "asleep", "woken", "submitted", "started",
        "suspended", "resumed", "evicted", "completed", "removed", "held", "released", "changed",
    )  # fmt: skip
    pattern_setting = "machine_clusters"
    levers = (LeasedExecutionTimes,)
    discipline = "easy"  # the default of its schedulers is strict order with backfill
    incumbent = "fifo"
    state_words = STATE_WORDS

    def __init__(self, label: str, settings: PBSSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._commands = pbs_commands(settings)
        self._watch: PBSWatch | None = None

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """Return the PBS whose commands and configuration this host has, if any."""
        return found_by_commands("PBS", "qstat", signs_of_pbs())

    def diagnose(self) -> list[Finding]:
        """Check the server and its job history, for ``outrider doctor``."""
        return list(diagnosed(self._settings))

    def service_needs(self) -> ServiceNeeds:
        """Return the hosts that are contacted, and the files that the commands read."""
        return needs_of(self._settings)

    def begin(self, cursor: Any) -> None:
        """Find out the dialect, and continue from a cursor.

        Raises:
            PeerError: there is no qstat.
            ValueError: the cursor does not belong to this adapter.
        """
        dialect = dialect_of(self._settings, self._commands)
        self._watch = PBSWatch(dialect, self._settings, undo_log=self.undo_log)
        self._watch.start(cursor)

    def look(self) -> Batch:
        """Return the events since the last look."""
        if self._watch is None:
            raise RuntimeError("look() before begin()")
        batch = self._watch.look()
        self.planned_starts = self._watch.planned_starts
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds until the next look."""
        return self._settings.look_s

    def end(self) -> None:
        """Do nothing: no resource is open between looks."""

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Return PBS's reason why a job is not running now. Raises `PeerError`: no answer."""

        def query() -> WaitingReason | None:
            if self._watch is None:
                raise PeerError("the server has not been queried yet")
            return self._watch.why(job)

        return await self.answer(query)

    async def __aenter__(self) -> Self:
        """Start a thread, and commands that may run until the adapter is closed."""
        self._commands = pbs_commands(self._settings)
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """Cancel running commands, then close."""
        self._commands.close()
        await super().__aexit__(*raised)


# -- service needs ---------------------------------------------------------------------------------
# Needs of a service next to a PBS server: its address, the configuration of its commands.

_VARIABLES: Final = ("PBS_CONF_FILE", "PBS_DEFAULT", "PBS_SERVER", "PBS_AUTH_METHOD")
_CONFIG: Final = "/etc/pbs.conf"
_IFF: Final = (
    "pbs_iff names the user to the server from a port below 1024. In the sandbox its setuid "
    "bit has no effect, so the service itself may use such ports. MUNGE needs none of it: "
    "PBS_AUTH_METHOD=munge in pbs.conf, and PBS_SUPPORTED_AUTH_METHODS at the server"
)
_AUTH_METHOD: Final = re.compile(r"^\s*PBS_AUTH_METHOD\s*=\s*(\S+)", re.MULTILINE)
_SERVER_NAME: Final = "/var/spool/torque/server_name"
_LINE: Final = re.compile(
    r"^\s*PBS_(?:SERVER|PRIMARY|SECONDARY|SERVER_HOST_NAME)\s*=\s*(\S+)", re.MULTILINE
)


def needs_of(settings: PBSSettings) -> ServiceNeeds:
    """Return the hosts that are contacted and the files that the commands read, as far as known."""
    environment = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    config = environment.get("PBS_CONF_FILE", _CONFIG)
    named = settings.server or environment.get("PBS_DEFAULT") or environment.get("PBS_SERVER")
    hosts = (
        [named] if named else [*_LINE.findall(_text_of(config)), *_text_of(_SERVER_NAME).split()]
    )
    unknown = "" if hosts else f"the address of the PBS server is not known: {config} has none"
    files = [path for path in (config, settings.commands) if path and Path(path).exists()]
    return ServiceNeeds(
        hosts={host.partition(":")[0].partition("@")[0]: "PBS server" for host in hosts},
        files=tuple(files),
        environment=environment,
        capabilities={"CAP_NET_BIND_SERVICE": _IFF} if _uses_iff(config, environment) else {},
        unknown_hosts=unknown,
        notes=(unknown,) if unknown else (),
    )


def _uses_iff(config: str, environment: Mapping[str, str]) -> bool:
    """Return whether commands authenticate by ``pbs_iff``: not by MUNGE, nor Torque's trqauthd."""
    if not Path(config).exists() and Path(_SERVER_NAME).exists():
        return False
    methods = [*_AUTH_METHOD.findall(_text_of(config)), environment.get("PBS_AUTH_METHOD", "")]
    return [method for method in methods if method][-1:] != ["munge"]


def signs_of_pbs() -> tuple[str, ...]:
    """Return files of which at least one exists where a host is configured for PBS."""
    return os.environ.get("PBS_CONF_FILE", ""), _CONFIG, _SERVER_NAME


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
