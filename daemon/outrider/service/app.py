"""``outrider run``: everything together, from a checked configuration to a clean end."""

import asyncio
import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import structlog

from outrider import __version__
from outrider.model.credentials import file_of
from outrider.model.errors import OutriderError
from outrider.service.config.declarations import listen_address, socket_path
from outrider.service.config.loaded import LoadedConfig, load_config
from outrider.service.config.state_folder import state_folder
from outrider.service.daemon_view import DaemonView
from outrider.service.interpreter import tune_interpreter
from outrider.service.leaving import LeavingExecutor, leave, leave_after_error, threads
from outrider.service.logs import Mode, set_up_logs
from outrider.service.loop_faults import LoopFaults
from outrider.service.mode_limit import in_force
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager
from outrider.service.start import Start
from outrider.service.start_progress import StartProgress, StartStoppedError
from outrider.service.starting_view import StartingView
from outrider.service.supervisor import Supervisor
from outrider.service.web import make_app, serve
from outrider.service.web.access import Access
from outrider.service.web.unix_socket import listening_at

_STOP_S = 4.5
_WORK_STOPS_S = 3.5
"""Of that, for the sources and the last snapshot; what is left is the writer's and the page's."""
_STATUS_EVERY_S = 10.0

log = structlog.get_logger()


def run(loaded: LoadedConfig, announce: Callable[[str], None] | None = None) -> int:
    """Run the daemon until it is told to stop (SIGTERM, SIGINT); returns the exit code.

    Args:
        loaded: the configuration; SIGHUP reads it again from its file.
        announce: called with the URL of the status page once it answers.

    Raises:
        OutriderError: it could not start.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.umask(0o077)  # whoever starts us: what we write is nobody else's business
    mode = Mode(in_force(loaded, state_folder(loaded))[0].config.mode)
    set_up_logs(mode, style=loaded.config.log_format, zone=loaded.config.timezone)
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
        """Start, serve until told to stop, and stop within `_STOP_S`."""
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
            path, local = socket_path(config), None
            if path is not None:
                local = stack.enter_context(
                    listening_at(path, config.socket_group, config.admin_group)
                )
                self._access.gid, self._access.admin_gid = local.gid, local.admin_gid
            async with serve(app, host, port, cert, key, local=local) as bound:
                log.info("start_reading", address=f"{host}:{bound}", pid=os.getpid())
                return await self._start(starting, folder, host, bound)

    async def _start(self, starting: StartingView, folder: Path, host: str, port: int) -> int:
        """Bring the state up while the page says how far it is; then do the work."""
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
                    tell_mode=self._follow_mode,
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
            tellers = [
                tasks.create_task(tell_status(self._service, supervisor.view), name="tell-status"),
                tasks.create_task(self._reload_on_request(supervisor), name="reload-on-request"),
            ]
            log.info("start_daemon", version=__version__, url=url, pid=os.getpid())
            self._service.ready(f"{self._mode.name}: watching {', '.join(supervisor.adapters)}")
            if self._announce is not None:
                self._announce(url)
            await self._stop.wait()
            log.info("stop_daemon", reason="told to stop")
            self._service.stopping("told to stop")
            self._stop_by = asyncio.get_running_loop().time() + _STOP_S
            for task in [*tellers, work]:
                task.cancel()
            done, _ = await asyncio.wait([work], timeout=_WORK_STOPS_S)
            if not done:
                log.error("abandon_work", after_s=_WORK_STOPS_S)
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
                log.error("keep_configuration", reason=str(error))
                supervisor.view.note_refusal(str(error))
                told = f"kept the old configuration: {error}"
            else:
                self.loaded = loaded
                self._access.follow(access)
                log.info("reload_configuration", source=loaded.source)
                told = f"{self._mode.name}: configuration reloaded"
            self._service.ready(told)

    def _follow_mode(self, mode: str) -> None:
        self._mode.name = mode

    def _access_after(self, loaded: LoadedConfig) -> Access:
        """The rules of a new configuration, at the address that we really listen on."""
        stays = {key: getattr(self.loaded.config, key) for key in ("listen", "token_file")}
        config = msgspec.structs.replace(loaded.config, **stays)
        return Access.configured(config, state_folder(self.loaded))


async def tell_status(service: ServiceManager, view: DaemonView) -> None:
    """Keep the service manager's line about us up to date, for ever.

    A fault in the making of a sentence is logged; it must not end the daemon.
    """
    while True:
        try:
            service.status(view.sentence())
        except Exception:
            log.exception("fail_status_line")
        await asyncio.sleep(_STATUS_EVERY_S)
