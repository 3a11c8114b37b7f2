"""Requests to the helper and its answers: one line of JSON each."""

import socket
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.job_updates import CANNOT_BE_REACHED, Edit

MAX_BYTES: Final = 65_536
"""Maximum length of a line, including its end."""
MAX_JOBS: Final = 100
MAX_AHEAD_S: Final = 86_400
"""Maximum time from now to a new start time."""
_TASKS: Final = r"[0-9]{1,7}(-[0-9]{1,7})?"
# a job number, a component of a heterogeneous job, or tasks of an array
_ID: Final = (
    rf"\A[1-9][0-9]{{0,9}}(\+[0-9]{{1,4}}|_[0-9]{{1,7}}|_\[{_TASKS}(,{_TASKS}){{0,99}}\])?\Z"
)
_VALUE: Final = Meta(ge=-2_000_000_000, le=2_000_000_000)
_TIME: Final = Meta(ge=0, le=4_294_967_295)


class Update(
    msgspec.Struct, frozen=True, tag_field="verb", tag="update", forbid_unknown_fields=True
):
    """Give jobs a start time, a site factor or a nice value, as `Edit`."""

    jobs: Annotated[
        tuple[Annotated[str, Meta(pattern=_ID, max_length=2_000)], ...],
        Meta(min_length=1, max_length=MAX_JOBS),
    ]
    begin_s: Annotated[int, _TIME] | None = None
    site_factor: Annotated[int, _VALUE] | None = None
    nice: Annotated[int, _VALUE] | None = None


class RenewFence(
    msgspec.Struct, frozen=True, tag_field="verb", tag="renew_fence", forbid_unknown_fields=True
):
    """Let a fence of the daemon's own user expire at this time."""

    number: Annotated[int, Meta(ge=1, le=4_294_967_295)]
    until_s: Annotated[int, _TIME]


class Check(msgspec.Struct, frozen=True, tag_field="verb", tag="check", forbid_unknown_fields=True):
    """Do nothing, and answer so."""


Request = Update | RenewFence | Check


class Answer(msgspec.Struct, frozen=True, rename={"error": "said"}):
    """Result of a request.

    Attributes:
        ok: whether it was done.
        error: why it was not done; empty if it was. The protocol's key is ``said``.
    """

    ok: bool
    error: str = ""


_REQUESTS: Final = msgspec.json.Decoder(Request)


def read_request(line: bytes) -> Request:
    """Parse a request from its line.

    Raises:
        ValueError: the line is invalid; the message contains no text of the client.
    """
    try:
        request: Request = _REQUESTS.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(f"invalid request: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("invalid request: not UTF-8") from None
    return request


# -- client ----------------------------------------------------------------------------------------
# The daemon's side of the helper's socket.

_EXTRA_S: Final = 5.0
"""Extra seconds for an answer: the helper ends a command that is too slow, and reports it."""
_ANSWERS: Final = msgspec.json.Decoder(Answer)


class HelperClient:
    """Client of the helper, as an `Updater`.

    Args:
        path: of its socket.
        within_s: how long a command may take.
    """

    def __init__(self, path: str, within_s: float) -> None:
        self._path = path
        self._within_s = within_s + _EXTRA_S

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """Implement `Updater.update` by the helper."""
        self._ask(Update(tuple(jobs), edit.begin_s, edit.site_factor, edit.nice))

    def renew_fence(self, number: int, until_s: int) -> None:
        """Implement `Updater.renew_fence` by the helper."""
        self._ask(RenewFence(number, until_s))

    def check(self) -> None:
        """Check that it runs and accepts this user. Raises `CommandError`: it does not."""
        self._ask(Check())

    def _ask(self, request: Request) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._within_s)
                connection.connect(self._path)
                connection.sendall(msgspec.json.encode(request) + b"\n")
                line = connection.makefile("rb").readline(MAX_BYTES)
            answer = _ANSWERS.decode(line)
        except OSError as error:
            raise CommandError(
                f"the helper at {self._path} {CANNOT_BE_REACHED}: {error}; use: "
                "systemctl enable --now outrider-slurm.socket, for this user"
            ) from error
        except msgspec.MsgspecError as error:
            raise CommandError(
                f"the helper at {self._path} does not accept this user; use: its name as "
                "--user of outrider-slurm.service"
            ) from error
        if not answer.ok:
            raise CommandError(answer.error)
