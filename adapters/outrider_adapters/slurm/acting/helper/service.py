"""Server of the helper: checks clients and requests, and executes them."""

import pwd
import socket
import struct
import time
from collections.abc import Callable
from typing import Final

import msgspec

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.fence_jobs import fence_jobs
from outrider_adapters.slurm.acting.helper.requests import (
    MAX_AHEAD_S,
    MAX_BYTES,
    Answer,
    RenewFence,
    Request,
    Update,
    read_request,
)
from outrider_adapters.slurm.acting.job_updates import Edit, Scontrol
from outrider_adapters.slurm.commands import SlurmCommands

_REQUEST_TIMEOUT_S: Final = 5.0
"""Timeout of a whole request, from the connection on; bounds how long a client blocks others."""
_CREDENTIALS: Final = struct.Struct("3i")


class Helper:
    """Server that handles one connection after the other, a request each.

    Args:
        user: name of the user whose requests are accepted; root's are, too.
        commands: of the Slurm.
        log: takes a line for each request.
        clock: Unix seconds now.
    """

    def __init__(
        self,
        user: str,
        commands: SlurmCommands,
        log: Callable[[str], object],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._user = user
        self._commands = commands
        self._scontrol = Scontrol(commands)
        self._log = log
        self._clock = clock

    def serve(self, listener: socket.socket, idle_s: float) -> None:
        """Serve until there was no connection for so many seconds."""
        listener.settimeout(idle_s)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                return
            with connection:
                try:
                    self._serve_one(connection)
                except OSError as error:  # the client left, or took too long
                    self._log(f"no answer: {error}")

    def _serve_one(self, connection: socket.socket) -> None:
        pid, uid, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if uid not in self._allowed():
            self._log(f"refused: uid {uid}, pid {pid} is not {self._user}")
            return
        connection.settimeout(_REQUEST_TIMEOUT_S)
        try:
            request = read_request(_line(connection, time.monotonic() + _REQUEST_TIMEOUT_S))
            answer = self._answer(request)
            asked = msgspec.json.encode(request).decode()
        except ValueError as error:
            asked, answer = "a request", Answer(False, str(error)[:300])
        error_text = "".join(c if c.isprintable() else " " for c in answer.error)
        self._log(f"{asked} by uid {uid}, pid {pid}: {error_text or 'done'}")
        connection.settimeout(_REQUEST_TIMEOUT_S)
        connection.sendall(msgspec.json.encode(answer) + b"\n")

    def _allowed(self) -> set[int]:
        try:
            return {0, pwd.getpwnam(self._user).pw_uid}
        except KeyError:  # a dynamic user of systemd that does not exist now
            return {0}

    def _answer(self, request: Request) -> Answer:
        """Execute a request of a client. Raises `ValueError`: it exceeds a limit."""
        try:
            if isinstance(request, Update):
                edit = Edit(request.begin_s, request.site_factor, request.nice)
                if edit == Edit():
                    raise ValueError("nothing to give; expected begin_s, site_factor or nice")
                self._check_time(request.begin_s)
                self._scontrol.update(request.jobs, edit)
            elif isinstance(request, RenewFence):
                self._check_time(request.until_s)
                self._check_fence(request.number)
                self._scontrol.renew_fence(request.number, request.until_s)
        except CommandError as error:
            return Answer(False, str(error))
        return Answer(True)

    def _check_time(self, start_s: int | None) -> None:
        if start_s is not None and start_s > self._clock() + MAX_AHEAD_S:
            raise ValueError(f"a start time more than {MAX_AHEAD_S} s ahead")

    def _check_fence(self, number: int) -> None:
        """Check that a job is the daemon's own fence: a deadline would end any other job."""
        fences = fence_jobs(self._commands, {self._user, "root"})
        if not any(job.number == number and job.begins_s for job in fences):
            raise ValueError(f"{number} is not a fence of {self._user}")


def _line(connection: socket.socket, until_s: float) -> bytes:
    """Return one line from a connection.

    Raises:
        ValueError: it is too long, or the connection ends before the line does.
        OSError: it does not arrive in time.
    """
    read = b""
    while not read.endswith(b"\n"):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request did not arrive in time")
        connection.settimeout(left_s)
        more = connection.recv(MAX_BYTES + 1 - len(read))
        read += more
        if not more:
            raise ValueError("invalid request: it ends before its line does")
        if len(read) > MAX_BYTES:
            raise ValueError(f"invalid request: more than {MAX_BYTES} bytes")
    return read
