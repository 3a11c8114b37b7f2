"""The helper's side of its socket: who may ask, what, and what is made of it."""

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
    MOST_AHEAD_S,
    MOST_BYTES,
    Answer,
    RenewFence,
    Request,
    Update,
    read_request,
)
from outrider_adapters.slurm.acting.job_updates import Edit, Scontrol
from outrider_adapters.slurm.commands import SlurmCommands

_ASKS_WITHIN_S: Final = 5.0
"""For a whole request, from the connection on; so long may one client keep others waiting."""
_CREDENTIALS: Final = struct.Struct("3i")


class Helper:
    """Answers one connection after the other, a request each.

    Args:
        user: whose requests are heard, by name; root's are, too.
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
        """Answer until nobody has connected for so many seconds."""
        listener.settimeout(idle_s)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                return
            with connection:
                try:
                    self._serve_one(connection)
                except OSError as error:  # it went away, or took too long
                    self._log(f"no answer: {error}")

    def _serve_one(self, connection: socket.socket) -> None:
        pid, uid, _ = _CREDENTIALS.unpack(
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if uid not in self._allowed():
            self._log(f"refused: uid {uid}, pid {pid} is not {self._user}")
            return
        connection.settimeout(_ASKS_WITHIN_S)
        try:
            request = read_request(_line(connection, time.monotonic() + _ASKS_WITHIN_S))
            answer = self._answer(request)
            asked = msgspec.json.encode(request).decode()
        except ValueError as error:
            asked, answer = "a request", Answer(False, str(error)[:300])
        said = "".join(c if c.isprintable() else " " for c in answer.said)
        self._log(f"{asked} by uid {uid}, pid {pid}: {said or 'done'}")
        connection.settimeout(_ASKS_WITHIN_S)
        connection.sendall(msgspec.json.encode(answer) + b"\n")

    def _allowed(self) -> set[int]:
        try:
            return {0, pwd.getpwnam(self._user).pw_uid}
        except KeyError:  # a user of systemd's that does not run now
            return {0}

    def _answer(self, request: Request) -> Answer:
        """Do it. Raises `ValueError`: it asks for too much."""
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
        if start_s is not None and start_s > self._clock() + MOST_AHEAD_S:
            raise ValueError(f"a start time more than {MOST_AHEAD_S} s ahead")

    def _check_fence(self, number: int) -> None:
        """A deadline ends a job: so it is given to none but the daemon's own fence."""
        fences = fence_jobs(self._commands, {self._user, "root"})
        if not any(job.number == number and job.begins_s for job in fences):
            raise ValueError(f"{number} is no fence of {self._user}")


def _line(connection: socket.socket, until_s: float) -> bytes:
    """What comes up to the end of a line.

    Raises:
        ValueError: it is too long, or ends before its line does.
        OSError: it does not come in time.
    """
    read = b""
    while not read.endswith(b"\n"):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request did not come in time")
        connection.settimeout(left_s)
        more = connection.recv(MOST_BYTES + 1 - len(read))
        read += more
        if not more:
            raise ValueError("no request: it ends before its line does")
        if len(read) > MOST_BYTES:
            raise ValueError(f"no request: more than {MOST_BYTES} bytes")
    return read
