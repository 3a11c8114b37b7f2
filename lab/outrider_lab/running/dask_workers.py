"""Runs on workers that are jobs of the user's own batch system, by dask-jobqueue."""

import logging
import queue
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from outrider.model.errors import ConfigurationError, OutriderError, PeerError
from outrider_lab.running.run_all import Workers, execute_run
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.workers import Finished

# -- cluster settings ------------------------------------------------------------------------------
# What a sweep asks the user's batch system for: the settings of a worker's job.

LOCAL: Final = "local-dask"
SYSTEMS: Final = ("htcondor", "slurm", "pbs", LOCAL)
"""Places where a sweep's workers may run; `LOCAL` is dask on this machine, to try it."""
_ONLY: Final = {
    "queue": ("slurm", "pbs"),
    "account": ("slurm", "pbs"),
    "walltime": ("slurm", "pbs"),
    "disk": ("htcondor",),
}
"""Settings that not every system has."""


class ClusterSettings(msgspec.Struct, frozen=True):
    """Settings of a worker's job. Unset: those of dask-jobqueue's own configuration."""

    memory: Annotated[str, Meta(description="Memory of a job.")] = "2 GB"
    cores: Annotated[int, Meta(ge=1, description="Cores of a job, one run at a time on each.")] = 1
    walltime: Annotated[str | None, Meta(description="HH:MM:SS after which a job ends.")] = None
    queue: Annotated[str | None, Meta(description="Slurm's partition, PBS's queue.")] = None
    account: Annotated[str | None, Meta(description="Who is charged.")] = None
    disk: Annotated[str | None, Meta(description="HTCondor: scratch space of a job.")] = None
    directives: Annotated[
        list[str] | dict[str, str],
        Meta(description="More for the head of a job: lines; for HTCondor a table."),
    ] = []
    prologue: Annotated[list[str], Meta(description="Shell lines before the worker starts.")] = []
    python: Annotated[
        str | None, Meta(description="Interpreter on the nodes; unset: the path of this one.")
    ] = None
    interface: Annotated[
        str | None, Meta(description="Network interface between the sweep and its workers: ib0.")
    ] = None

    def arguments(self, system: str) -> dict[str, Any]:
        """Return the arguments of dask-jobqueue's cluster.

        Raises:
            ConfigurationError: a setting that this system has not.
        """
        for name, systems in _ONLY.items():
            if getattr(self, name) is not None and system not in systems:
                raise ConfigurationError(f"[cluster] {name}: {system} has no such setting")
        wanted: type = dict if system == "htcondor" else list
        if self.directives and not isinstance(self.directives, wanted):
            expected = "a table" if wanted is dict else "a list of lines"
            raise ConfigurationError(f"[cluster] directives: for {system} expected {expected}")
        names = {"directives": "job_extra_directives", "prologue": "job_script_prologue"}
        given = {names.get(name, name): v for name, v in msgspec.structs.asdict(self).items() if v}
        if system == "htcondor":
            given.setdefault("disk", "1 GB")
        return given | {"processes": self.cores}


# -- dask workers ----------------------------------------------------------------------------------

_LOOK_EVERY_S: Final = 1.0
_NOBODY_AFTER_S: Final = 60.0
_CLASSES: Final = {"htcondor": "HTCondorCluster", "slurm": "SLURMCluster", "pbs": "PBSCluster"}


@contextmanager
def on_dask(
    system: str,
    settings: ClusterSettings,
    workers: int,
    files: Path,
    warn: Callable[[str], None],
) -> Iterator[Workers]:
    """Yield workers of dask for as long as the block runs.

    What they say to each other is encrypted, and only who holds the keys of this one sweep may
    give them work.

    Args:
        system: one of `outrider_lab.running.dask_workers.SYSTEMS`.
        settings: of the jobs.
        workers: jobs to ask for; with `LOCAL`, processes.
        files: a folder that all nodes see, for keys and what the jobs print; made if need be.
        warn: told, in words, of what a person would want to know.

    Raises:
        ConfigurationError: dask-jobqueue is not installed, or a setting is wrong.
        PeerError: the batch system takes no job.
    """
    dask, distributed = _installed("dask"), _installed("distributed")
    refusals: list[str] = []
    with ExitStack() as stack:
        # A worker takes a run when it is free, not before: runs are long.
        stack.enter_context(dask.config.set({"distributed.scheduler.worker-saturation": 1.0}))
        if system == LOCAL:
            cluster = stack.enter_context(_local(dask, distributed, workers))
        else:
            cluster = stack.enter_context(_batch(dask, system, settings, files, refusals))
            # Also: ask for another job when one with a running worker is gone.
            cluster.adapt(minimum_jobs=workers, maximum_jobs=workers)
        client = stack.enter_context(distributed.Client(cluster))
        # What it says of calls that its own end cuts off is of no use to anybody.
        stack.callback(logging.getLogger("distributed").setLevel, logging.CRITICAL)
        jobs = _Jobs(system, cluster, workers, refusals, files, warn)
        lost = LostWorkers(cluster, workers) if system == LOCAL else None

        def look() -> None:
            jobs.look()
            if lost is not None:
                lost.look()

        yield lambda specs: _as_they_end(client, specs, look)


def _installed(name: str) -> Any:
    """Import and return a module. Raises `ConfigurationError` if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"--cluster: {name} is not installed; use pip install 'outrider[sweeps]'"
        ) from error


@contextmanager
def _local(dask: Any, distributed: Any, workers: int) -> Iterator[Any]:
    # A run that fails, or kills its worker, is told with that run; what a worker logs besides is
    # of heartbeats that the end of the sweep cuts off. Here no node is lost: the run killed it, and
    # is tried again as others that fail are, not by dask.
    settings = {
        "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
        "distributed.scheduler.allowed-failures": 0,
    }
    with dask.config.set(settings), distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", security=True, protocol="tls",
        dashboard_address="127.0.0.1:0", silence_logs=logging.ERROR,
    ) as cluster:  # fmt: skip
        yield cluster


def _batch(
    dask: Any, system: str, settings: ClusterSettings, files: Path, refusals: list[str]
) -> Any:
    """Return a scheduler in this process; no jobs yet."""
    on_interrupt = signal.getsignal(signal.SIGINT)
    kind = getattr(_installed("dask_jobqueue"), _CLASSES[system])
    # As it is imported, it makes Ctrl-C end the process as if all were done, with exit code 0.
    signal.signal(signal.SIGINT, on_interrupt)
    failed = _installed("distributed").Status.failed

    class WatchedJob(kind.job_cls):  # type: ignore[misc, name-defined]
        """A job whose refusal by the batch system is noted; dask only logs it."""

        async def start(self) -> None:
            try:
                await super().start()
            except (RuntimeError, OSError, ValueError) as error:
                message = " ".join(str(error).split())
                refusals.append(message.rpartition("stderr: ")[2] or message)
                self.status = failed
                raise

    arguments = settings.arguments(system)
    site_arguments = dask.config.get(f"jobqueue.{system}.worker-extra-args") or []
    site_options = dask.config.get(f"jobqueue.{system}.scheduler-options") or {}
    files.mkdir(mode=0o700, exist_ok=True)
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)  # `refusals` tells it
    try:
        return kind(
            job_cls=WatchedJob,
            security=True,
            shared_temp_directory=str(files),
            log_directory=str(files),
            worker_extra_args=[*site_arguments, "--no-dashboard"],
            scheduler_options={"dashboard_address": "127.0.0.1:0"} | site_options,
            **arguments,
        )
    except ValueError as error:
        raise ConfigurationError(f"[cluster]: {error}") from error


class _Jobs:
    """Watch over the requested jobs of a cluster."""

    def __init__(
        self,
        system: str,
        cluster: Any,
        asked: int,
        refusals: list[str],
        files: Path,
        warn: Callable[[str], None],
    ) -> None:
        self._system = system
        self._cluster = cluster
        self._asked = asked
        self._refusals = refusals
        self._files = files
        self._warn = warn
        self._reported = 0
        self._alone_s = 0.0

    def look(self) -> None:
        """Warn of refusals and of a long time without workers.

        Raises:
            PeerError: every job was refused.
        """
        running = len(self._cluster.scheduler_info["workers"])
        if len(self._refusals) >= self._asked and not running:
            raise PeerError(f"{self._system} takes no job: {self._refusals[-1]}", transient=False)
        if len(self._refusals) > self._reported:
            self._reported = len(self._refusals)
            self._warn(f"{self._system} refused {self._reported} jobs: {self._refusals[-1]}")
        self._alone_s = 0.0 if running else self._alone_s + _LOOK_EVERY_S
        if self._alone_s == _NOBODY_AFTER_S:
            self._warn(
                f"no worker for {_NOBODY_AFTER_S:.0f} s: the jobs wait in {self._system}, or end "
                f"before they reach {self._cluster.scheduler_address}; what they print is in "
                f"{self._files}"
            )


def _as_they_end(
    client: Any, specs: Sequence[RunSpec], look: Callable[[], None]
) -> Iterator[Finished]:
    """Execute specs as `run_all.Workers` does; call `look` periodically while none ends."""
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    futures = client.map(execute_run, specs, pure=False)
    waiting = {future.key: (number, future) for number, future in enumerate(futures)}
    for future in futures:
        future.add_done_callback(done.put)
    del future, futures  # a result that was fetched need not be kept
    try:
        while waiting:
            try:
                ended = done.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                look()
                continue
            number, _ = waiting.pop(ended.key)
            error = ended.exception()
            yield Finished(number, None if error else ended.result(), _in_words(error))
    finally:
        client.cancel([future for _, future in waiting.values()])


def _in_words(error: BaseException | None) -> str | None:
    if error is None or isinstance(error, OutriderError):
        return None if error is None else str(error)
    return f"{type(error).__name__}: {error}"


# -- lost workers ----------------------------------------------------------------------------------
# Local workers of dask that died and that dask does not start again.

_GONE_AFTER_S: Final = 30.0
_REPLACED_WITHIN_S: Final = 60.0


class LostWorkers:
    """Puts new workers in the place of those that have been gone for a while.

    A worker that dies is started again by its supervisor (dask's nanny), but for one that dies
    while that still waits to hear of its start: then nobody does, and the runs that are left would
    wait for ever. A run that kills its worker at once, again and again, comes to that.

    Args:
        cluster: a `distributed.LocalCluster`.
        workers: how many it is to have.
        gone_after_s: for how long one is not there before another takes its place; twice as long
            each time, for it may only be slow to start.
        clock: seconds.
    """

    def __init__(
        self,
        cluster: Any,
        workers: int,
        gone_after_s: float = _GONE_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._workers = workers
        self._gone_after_s = gone_after_s
        self._clock = clock
        self._missed_since_s: dict[Any, float] = {}

    def look(self) -> int:
        """Replace those that are due; how many were."""
        now_s = self._clock()
        there = {worker["name"] for worker in self._cluster.scheduler_info["workers"].values()}
        missed = [name for name in self._cluster.workers if name not in there]
        self._missed_since_s = {name: self._missed_since_s.get(name, now_s) for name in missed}
        gone = [
            name for name, since_s in self._missed_since_s.items()
            if now_s - since_s >= self._gone_after_s
        ]  # fmt: skip
        if gone:
            self._gone_after_s *= 2.0
            self._missed_since_s.clear()  # the new one may have the same name
            cluster = self._cluster
            # first without them: a new one under the name of an old one would change nothing
            with suppress(TimeoutError):  # it goes on; those that stay away come up again
                cluster.sync(cluster.scale_down, gone, callback_timeout=_REPLACED_WITHIN_S)
            cluster.scale(self._workers)
        return len(gone)
