"""The process of ``outrider run``, from a checked configuration to a clean end."""

import asyncio
import contextlib
import gc
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

from outrider import __version__
from outrider.model.credentials import file_of
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.service.config.declarations import listen_address, socket_path
from outrider.service.config.loaded import LoadedConfig, load_config
from outrider.service.config.reading import own_socket, state_folder
from outrider.service.core.mode_limit import effective_config
from outrider.service.daemon.daemon_view import DaemonView, StartingView
from outrider.service.host.logs import Mode, RateLimit, set_up_logs
from outrider.service.host.private_folder import refuse_strangers
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import OUR_FILES, Recording
from outrider.service.journal.restart import StartProgress, StartStoppedError
from outrider.service.process.supervisor import Supervisor
from outrider.service.web import make_app, serve
from outrider.service.web.access import Access
from outrider.service.web.unix_socket import Listening, listening_at

_STOP_S = 4.5
_WORK_STOPS_S = 3.5
"""Part of `_STOP_S` for the sources and the last snapshot; the rest is for writer and page."""
_STATUS_EVERY_S = 10.0


def run(
    loaded: LoadedConfig,
    announce: Callable[[str], None] | None = None,
    log_level: str = "info",
) -> int:
    """Run the daemon until SIGTERM or SIGINT; return the exit code.

    Args:
        loaded: the configuration; SIGHUP reads it again from its file.
        announce: called with the URL of the status page once it answers.
        log_level: the lowest level that is written.

    Raises:
        OutriderError: it could not start.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.umask(0o077)  # our files must not be readable by other users
    with contextlib.suppress(OSError):  # which is reported when the folder is opened
        refuse_strangers(state_folder(loaded), OUR_FILES)
    mode = Mode(effective_config(loaded, state_folder(loaded))[0].config.mode)
    set_up_logs(mode, log_level, style=loaded.config.log_format, zone=loaded.config.timezone)
    before = threads()
    try:
        code = asyncio.run(_Daemon(loaded, mode, announce).live())
    except BaseException:
        leave_after_error(before)
        raise
    return leave(code, before)


class _Daemon:
    def __init__(
        self, loaded: LoadedConfig, mode: Mode, announce: Callable[[str], None] | None
    ) -> None:
        self.loaded = loaded
        self._mode = mode
        self._announce = announce
        self._service = ServiceManager()
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()
        self._stop_by = math.inf

    async def live(self) -> int:
        """Start, serve until stopped, and stop within `_STOP_S`."""
        config = self.loaded.config
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(LoopFaults())
        loop.set_default_executor(LeavingExecutor())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        folder = state_folder(self.loaded)
        self._access = Access.configured(config, folder)
        progress = StartProgress()
        starting = StartingView(progress, self._mode.name)
        app = make_app(starting, self._access)
        host, port = listen_address(config)
        files = (config.tls_cert, config.tls_key)
        cert, key = (None if f is None else file_of(f) for f in files)
        with ExitStack() as stack:
            local = self._open_socket(stack)
            if local is not None:
                self._access.gid, self._access.admin_gid = local.gid, local.admin_gid
                self._access.socket, self._access.others = local.path, local.others
            async with serve(app, host, port, cert, key, local=local) as bound:
                log.info("startup_begun", address=f"{host}:{bound}", pid=os.getpid())
                return await self._start(starting, folder, host, bound)

    def _open_socket(self, stack: ExitStack) -> Listening | None:
        """Open the host's socket, or else one in the state directory, which may fail.

        Raises:
            ConfigurationError: the configured socket cannot be opened.
        """
        config = self.loaded.config
        path = socket_path(config)
        if path is not None:
            groups = config.socket_group, config.admin_group
            others = config.token_file is None  # with it, only clients that are known may look
            return stack.enter_context(listening_at(path, *groups, others=others))
        path = own_socket(self.loaded)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return stack.enter_context(listening_at(path, None))
        except (ConfigurationError, OSError) as error:
            log.warning("socket_not_opened", path=str(path), error=str(error))
            return None

    async def _start(self, starting: StartingView, folder: Path, host: str, port: int) -> int:
        """Restore the state while the page shows the progress; then serve."""
        loop, progress = asyncio.get_running_loop(), starting.progress
        start = Start(progress, self._service, self._stop, within_s=_WORK_STOPS_S)
        try:
            recording = await start.run(lambda: Recording(folder))
        except StartStoppedError:
            return 0
        try:
            supervisor = await start.run(
                lambda: Supervisor(
                    self.loaded,
                    recording,
                    self._service,
                    progress=progress,
                    on_mode=self._follow_mode,
                )
            )
            tune_interpreter()
            supervisor.view.start_s = time.monotonic() - progress.began_at
            starting.view = supervisor.view
            return await self._serve(supervisor, host, port)
        except StartStoppedError:
            return 0
        finally:
            await asyncio.to_thread(recording.close, max(0.5, self._stop_by - loop.time()))

    async def _serve(self, supervisor: Supervisor, host: str, port: int) -> int:
        scheme = "https" if self.loaded.config.tls_cert else "http"
        url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(supervisor.run(), name="supervisor")
            reporters = [
                tasks.create_task(
                    report_status(self._service, supervisor.view), name="report-status"
                ),
                tasks.create_task(self._reload_on_request(supervisor), name="reload-on-request"),
            ]
            log.info("daemon_started", version=__version__, url=url, pid=os.getpid())
            self._service.ready(f"{self._mode.name}: watching {', '.join(supervisor.adapters)}")
            if self._announce is not None:
                self._announce(url)
            await self._stop.wait()
            log.info("daemon_stopped", reason="stop requested")
            self._service.stopping("stop requested")
            self._stop_by = asyncio.get_running_loop().time() + _STOP_S
            for task in [*reporters, work]:
                task.cancel()
            done, _ = await asyncio.wait([work], timeout=_WORK_STOPS_S)
            if not done:
                log.error("work_abandoned", after_s=_WORK_STOPS_S)
                with contextlib.suppress(OSError, ValueError):  # its reader may be gone
                    sys.stderr.flush()
                os._exit(1)
        return 0

    async def _reload_on_request(self, supervisor: Supervisor) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            self._service.reloading()
            try:
                loaded = await asyncio.to_thread(load_config, Path(self.loaded.source))
                access = await asyncio.to_thread(self._access_after, loaded)
                await supervisor.reload(loaded)
            except OutriderError as error:
                log.error("config_reload_failed", error=str(error))
                supervisor.view.note_refusal(str(error))
                status = f"kept the old configuration: {error}"
            else:
                self.loaded = loaded
                self._access.follow(access)
                log.info("config_reloaded", source=loaded.source)
                status = f"{self._mode.name}: configuration reloaded"
            self._service.ready(status)

    def _follow_mode(self, mode: str) -> None:
        self._mode.name = mode

    def _access_after(self, loaded: LoadedConfig) -> Access:
        """Return the access rules of a new configuration, for the address we listen on."""
        stays = {key: getattr(self.loaded.config, key) for key in ("listen", "token_file")}
        config = msgspec.structs.replace(loaded.config, **stays)
        return Access.configured(config, state_folder(self.loaded))


async def report_status(service: ServiceManager, view: DaemonView) -> None:
    """Periodically update the service manager's status line.

    An error in making the sentence is logged; it must not end the daemon.
    """
    while True:
        try:
            service.status(view.sentence())
        except Exception:
            log.exception("status_line_failed")
        await asyncio.sleep(_STATUS_EVERY_S)


# -- leaving ---------------------------------------------------------------------------------------
# Process shutdown: exit even if threads are stuck.

_ENDS_WITHIN_S: Final = 1.0
_ERROR_GRACE_S: Final = 2.0
_FAULT: Final = 70
"""Exit code of an internal error of Outrider."""


class LeavingExecutor(ThreadPoolExecutor):
    """Thread pool of the event loop, whose shutdown does not wait for its threads.

    A plugin's `asyncio.to_thread` may hang in the kernel, as on a dead mount. The event loop
    ends only after the shutdown of these threads.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")  # the event loop's own prefix

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let idle threads end without waiting; `leave` handles those that hang."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)


def threads() -> set[threading.Thread]:
    """Return the threads for whose end Python would wait."""
    return {thread for thread in threading.enumerate() if not thread.daemon}


def leave(code: int, before: Collection[threading.Thread]) -> int:
    """Exit immediately with this code if our threads do not end; else return the code.

    Args:
        code: the exit code of the process.
        before: the threads that are not ours.
    """
    if _hung(before):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def leave_after_error(before: Collection[threading.Thread]) -> None:
    """Exit after a delay if our threads hang, so that the caller can report an error."""
    if _hung(before):
        threading.Thread(target=_end_soon, name="end-soon", daemon=True).start()


def _hung(before: Collection[threading.Thread]) -> list[str]:
    until_s = time.monotonic() + _ENDS_WITHIN_S
    ours = [thread for thread in threads() if thread not in before]
    for thread in ours:
        thread.join(max(0.0, until_s - time.monotonic()))
    left = [thread.name for thread in ours if thread.is_alive()]
    if left:
        log.error("threads_abandoned", threads=left, after_s=_ENDS_WITHIN_S)
    return left


def _end_soon() -> None:
    time.sleep(_ERROR_GRACE_S)
    os._exit(_FAULT)


# -- loop faults -----------------------------------------------------------------------------------
# Errors in the event loop itself: logged, each kind at most once a minute, without ending anything.


class LoopFaults:
    """The loop's exception handler (`asyncio.loop.set_exception_handler`).

    Without descriptors for a new connection, asyncio calls it once a second; such a log would be
    useless.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(clock)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error, unless the same kind was logged less than a minute ago."""
        error = context.get("exception")
        kind = self._limit.kind_of(
            f"{context.get('message', 'no message')}: {type(error).__name__}"
        )
        if self._limit.allows(kind):
            more = self._limit.take_suppressed(kind)
            log.error(
                "event_loop_failed", kind=kind, error=str(error), more_since=more, exc_info=error
            )


# -- start -----------------------------------------------------------------------------------------
# The start of the daemon, in a thread: the page answers during it, and systemd waits for it.

T = TypeVar("T")

_REPORT_EVERY_S: Final = 5.0
_EXTEND_S: Final = 60.0
"""Seconds by which systemd's timeout is extended each time."""
_STUCK_S: Final = 300.0
"""Seconds without progress after which the start counts as stuck: no more extensions."""

log = structlog.get_logger()


class Start:
    """Runs the long steps of the start in a thread, so that nothing else is blocked.

    Args:
        progress: the progress, updated by the steps.
        service: asked for more time while the start makes progress.
        stopped: set when the daemon is to stop.
        within_s: seconds that a stopped start may take to end; then the process ends.
    """

    def __init__(
        self,
        progress: StartProgress,
        service: ServiceManager,
        stopped: asyncio.Event,
        within_s: float,
    ) -> None:
        self._progress = progress
        self._service = service
        self._stopped = stopped
        self._within_s = within_s

    async def run(self, make: Callable[[], T]) -> T:
        """Return the result of `make`, called in a thread.

        Raises:
            StartStoppedError: the daemon is to stop.
            OutriderError: raised by `make`.
        """
        share_threads()
        work = asyncio.create_task(asyncio.to_thread(make))
        stop = asyncio.create_task(self._stopped.wait())
        try:
            while not work.done() and not stop.done():
                self._report()
                await asyncio.wait(
                    {work, stop}, timeout=_REPORT_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
            if not work.done():
                await self._end(work)
        finally:
            stop.cancel()
        return work.result()

    def _report(self) -> None:
        progress = self._progress
        if time.monotonic() - progress.moved_at < _STUCK_S:
            self._service.starting(progress.sentence, _EXTEND_S)
        if progress.fed:
            log.info("journal_replayed", inputs=progress.fed, ratio=round(progress.ratio, 3))

    async def _end(self, work: "asyncio.Task[T]") -> None:
        log.info("daemon_stopped", reason="stop requested while starting")
        self._service.stopping("stop requested while starting")
        self._progress.stop()
        done, _ = await asyncio.wait([work], timeout=self._within_s)
        if not done:  # a thread cannot be ended from outside, and might never end
            log.error("start_abandoned", doing=self._progress.doing, after_s=self._within_s)
            sys.stderr.flush()
            os._exit(1)


# -- interpreter -----------------------------------------------------------------------------------
# Settings of the interpreter, so that nothing delays decisions for long.

_YOUNG, _MIDDLE, _FULL = 700, 10, 1_000
_THREAD_TURN_S = 0.001


def share_threads() -> None:
    """Tune thread switching and garbage collection for threads next to the event loop.

    Call it before a thread computes for long (the start, rendering a scrape, packing a snapshot).
    Such a thread yields to the event loop after 1 ms instead of 5. The loop may wait for several
    such turns in a row.

    Full garbage collections become a hundred times rarer. Each visits every known job: some 20 ms
    at 10,000 jobs, in the middle of a round. They are for cycles of objects, and the engine makes
    none. Those of others (tracebacks, closed connections) are mostly caught young.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _FULL)
    sys.setswitchinterval(_THREAD_TURN_S)


def tune_interpreter() -> None:
    """Exclude all present objects from garbage collection, and call `share_threads`.

    Call it when the daemon is ready.
    """
    gc.freeze()
    share_threads()
