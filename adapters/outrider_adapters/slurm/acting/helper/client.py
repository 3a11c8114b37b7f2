"""The daemon's side of the helper's socket."""

import socket
from collections.abc import Sequence
from typing import Final

import msgspec

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.helper.requests import (
    MOST_BYTES,
    Answer,
    Check,
    RenewFence,
    Request,
    Update,
)
from outrider_adapters.slurm.acting.job_updates import CANNOT_BE_REACHED, Edit

_LONGER_S: Final = 5.0
"""Than its command may take: the helper ends that, and says so."""
_ANSWERS: Final = msgspec.json.Decoder(Answer)


class HelperClient:
    """Updates jobs by asking the helper: an `Updater`.

    Args:
        path: of its socket.
        within_s: for how long it may take.
    """

    def __init__(self, path: str, within_s: float) -> None:
        self._path = path
        self._within_s = within_s + _LONGER_S

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """As `Updater.update`."""
        self._ask(Update(tuple(jobs), edit.begin_s, edit.site_factor, edit.nice))

    def renew_fence(self, number: int, until_s: int) -> None:
        """As `Updater.renew_fence`."""
        self._ask(RenewFence(number, until_s))

    def check(self) -> None:
        """Whether it is there and hears this user. Raises `CommandError`: not so."""
        self._ask(Check())

    def _ask(self, request: Request) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._within_s)
                connection.connect(self._path)
                connection.sendall(msgspec.json.encode(request) + b"\n")
                line = connection.makefile("rb").readline(MOST_BYTES)
            answer = _ANSWERS.decode(line)
        except OSError as error:
            raise CommandError(
                f"the helper at {self._path} {CANNOT_BE_REACHED}: {error}; right would be: "
                "systemctl enable --now outrider-slurm.socket, for this user"
            ) from error
        except msgspec.MsgspecError as error:
            raise CommandError(
                f"the helper at {self._path} does not hear this user; right would be: its name as "
                "--user of outrider-slurm.service"
            ) from error
        if not answer.ok:
            raise CommandError(answer.said)
