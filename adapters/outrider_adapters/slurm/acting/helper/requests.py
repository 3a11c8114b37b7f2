"""What may be asked of the helper, and what it answers: one line of JSON each."""

import socket
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.job_updates import CANNOT_BE_REACHED, Edit

MOST_BYTES: Final = 65_536
"""Of a line, its end included."""
MOST_JOBS: Final = 100
MOST_AHEAD_S: Final = 86_400
"""How far ahead a start time may lie."""
_TASKS: Final = r"[0-9]{1,7}(-[0-9]{1,7})?"
# a number, a component of a heterogeneous job, or tasks of an array
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
        Meta(min_length=1, max_length=MOST_JOBS),
    ]
    begin_s: Annotated[int, _TIME] | None = None
    site_factor: Annotated[int, _VALUE] | None = None
    nice: Annotated[int, _VALUE] | None = None


class RenewFence(
    msgspec.Struct, frozen=True, tag_field="verb", tag="renew_fence", forbid_unknown_fields=True
):
    """Let a fence of the daemon's own user lapse at this time."""

    number: Annotated[int, Meta(ge=1, le=4_294_967_295)]
    until_s: Annotated[int, _TIME]


class Check(msgspec.Struct, frozen=True, tag_field="verb", tag="check", forbid_unknown_fields=True):
    """Do nothing, and say so."""


Request = Update | RenewFence | Check


class Answer(msgspec.Struct, frozen=True):
    """What became of a request.

    Attributes:
        ok: whether it was done.
        said: why not.
    """

    ok: bool
    said: str = ""


_REQUESTS: Final = msgspec.json.Decoder(Request)


def read_request(line: bytes) -> Request:
    """A request, from its line.

    Raises:
        ValueError: it is none; the message says what is wrong, in words of ours alone.
    """
    try:
        request: Request = _REQUESTS.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(f"no request: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("no request: no UTF-8") from None
    return request


# -- client ----------------------------------------------------------------------------------------
# The daemon's side of the helper's socket.

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
        """Return whether it is there and hears this user. Raises `CommandError`: not so."""
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
                f"the helper at {self._path} {CANNOT_BE_REACHED}: {error}; use: "
                "systemctl enable --now outrider-slurm.socket, for this user"
            ) from error
        except msgspec.MsgspecError as error:
            raise CommandError(
                f"the helper at {self._path} does not hear this user; use: its name as "
                "--user of outrider-slurm.service"
            ) from error
        if not answer.ok:
            raise CommandError(answer.said)
