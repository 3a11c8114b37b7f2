"""Client of the running daemon: its address, credentials, queries and commands."""

import contextlib
import ipaddress
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import click

from outrider.cli.exit_codes import DONE, NO
from outrider.cli.options import config_option, json_option
from outrider.cli.printing import echo
from outrider.model.credentials import file_of
from outrider.model.errors import ConfigurationError, PeerError

if TYPE_CHECKING:
    from outrider.cli.http_client import Reply
    from outrider.service.config.reading import ReadConfig

DEFAULT_URL: Final = "http://127.0.0.1:9690"
DEFAULT_SOCKET: Final = Path("/run/outrider/outrider.sock")
"""Socket of the daemon that the shipped systemd unit runs."""
UNIT_CONFIG: Final = Path("/etc/outrider/outrider.toml")
"""The configuration that the shipped unit runs."""
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound
_EXPLAIN: Final = "/api/v1/explain/"

T = TypeVar("T")


class DaemonAddress(NamedTuple):
    """Address of a daemon, with the credentials that it needs.

    Attributes:
        url: scheme, host and port, or ``unix:`` and the path of its socket.
        token_file: file with the Bearer token to send; None: no token. A socket needs none.
        ca: PEM file whose certificates are trusted in addition to the system's, or None.
        socket: socket of the same daemon, tried first; `url` is used if that fails.
        finds_socket: ask again over the socket that the daemon reports, if it is this user's own.
        state: the daemon's state directory, whose owner may be the daemon's user; None: unknown.
    """

    url: str = DEFAULT_URL
    token_file: str | None = None
    ca: str | None = None
    socket: Path | None = None
    finds_socket: bool = False
    state: Path | None = None

    @classmethod
    def configured(cls, read: "ReadConfig") -> "DaemonAddress":
        """Return the address on which a daemon with this configuration listens."""
        from outrider.service.config.declarations import listen_address
        from outrider.service.config.reading import state_folder

        config = read.config
        host, port = listen_address(config)
        socket = socket_of(None, read)
        if port == 0:  # any free one
            return cls(f"unix:{socket}", state=state_folder(read))
        host = _EVERYWHERE.get(host, host)
        scheme = "https" if config.tls_cert else "http"
        place = f"[{host}]" if ":" in host else host
        return cls(
            f"{scheme}://{place}:{port}",
            config.token_file,
            config.tls_cert,
            socket,
            finds_socket=config.token_file is None,
            state=state_folder(read),
        )

    def ask(self, path: str) -> dict[str, Any]:
        """Return the daemon's answer to a GET request.

        Args:
            path: below the address, its parts quoted.

        Raises:
            UnknownJobError: the daemon does not know the job.
            DaemonStartsError: it is still starting.
            PeerError: no daemon can be reached, or it gives no valid answer in time.
            ConfigurationError: the address is invalid, or the token cannot be read.
        """
        place, reply = self._get(path)
        status, body = reply.status, reply.body
        refused = status in (401, 403, 421)
        try:
            answer = json.loads(body)
        except ValueError as error:
            if refused:
                raise _refusal(place, status, {}) from error
            raise PeerError(f"{place}{path}: is not an Outrider server") from error
        if not isinstance(answer, dict):
            raise PeerError(f"{place}{path}: is not an Outrider server")
        if refused:
            raise _refusal(place, status, answer)
        if status in (300, 404) and "error" in answer and path.startswith(_EXPLAIN):
            raise UnknownJobError(str(answer["error"]), answer.get("candidates", []))
        if status == 503:
            raise DaemonStartsError(f"{place}{path}: answered 503: {answer.get('error', '')}")
        if status != 200:
            raise PeerError(f"{place}{path}: answered {status}: {answer.get('error', '')}")
        if "mode" not in answer:  # every answer that commands ask for contains it
            raise PeerError(f"{place}{path}: is not an Outrider server")
        return answer

    def _get(self, path: str) -> tuple[str, "Reply"]:
        from outrider.cli import http_client  # imported late: the help of a command needs none

        headers = {"Accept": "application/json"}
        if self.socket is not None:
            place = f"unix:{self.socket}"
            try:
                peers = trusted_at(self.socket, self.state)
                return place, http_client.get(place, path, headers, None, trusted=peers)
            except PeerError as error:
                if not isinstance(error.__cause__, OSError):
                    raise
                is_stranger = isinstance(error.__cause__, http_client.StrangerError)
                if is_stranger or isinstance(error.__cause__, PermissionError):
                    echo(f"outrider: {error}; asking {self.url}", err=True)
        if self.ca is not None and not self.url.startswith("https:"):
            raise ConfigurationError(f"{self.url}: --ca is for an address that begins with https:")
        trusted: set[int] | None = None
        if self.url.startswith("unix:"):
            trusted = trusted_at(Path(self.url.removeprefix("unix:")), self.state)
        elif self.token_file is not None:
            headers["Authorization"] = f"Bearer {self._token(self.token_file)}"
            if self.url.startswith("http:"):  # any user can take the port while the daemon is down
                trusted = trusted_with(file_of(self.token_file), self.state)
        ca = None if self.ca is None else file_of(self.ca)
        reply = http_client.get(self.url, path, headers, ca, trusted=trusted)
        if self.finds_socket and self.token_file is None and _is_own_socket(reply.socket):
            place = f"unix:{reply.socket}"
            with contextlib.suppress(PeerError):
                return place, http_client.get(place, path, headers, None)
        return self.url, reply

    def _token(self, file: str) -> str:
        from outrider.service.web.access import read_token

        if self.url.startswith("http:") and not _is_this_host(urlsplit(self.url).hostname or ""):
            raise ConfigurationError(
                f"{self.url}: the token would be sent unencrypted over the network; use https://"
            )
        return read_token(file_of(file))


def trusted_with(token_file: Path, state: Path | None) -> set[int]:
    """Return the users to whom the token is sent: root, this one, the daemon's, and its owner.

    The owner of the token's file has it already.
    """
    return {0, os.geteuid(), *_owners(token_file, state)}


def trusted_at(socket: Path, state: Path | None = None) -> set[int]:
    """Return the users who may listen at a socket: root, this one, and the daemon's.

    The daemon's user owns the state directory, or the folder of the socket if no other user can
    write there.
    """
    folder = socket.parent
    try:
        is_private = not folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    except OSError:
        is_private = False
    return {0, os.geteuid(), *_owners(folder if is_private else None, state)}


def _owners(*paths: Path | None) -> set[int]:
    """Return the owners of these files and folders, as far as they can be examined."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            found |= set() if path is None else {path.stat().st_uid}
    return found


def default_socket() -> Path | None:
    """Return the socket of the shipped unit's daemon, or None if it does not exist."""
    return DEFAULT_SOCKET if os.path.exists(DEFAULT_SOCKET) else None  # noqa: PTH110 - never raises


def _is_own_socket(path: str) -> bool:
    """Return whether a path is a socket of this user: any program may listen at the port."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


def _is_this_host(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refusal(place: str, status: int, answer: dict[str, Any]) -> PeerError:
    reason = str(answer.get("error", "")) or "no reason given"
    hint = "; use --token-file FILE" if status == 401 else ""
    return PeerError(f"{place}: access denied ({status}): {reason}{hint}")


class UnknownJobError(PeerError):
    """Error for a job that the daemon does not know, or whose name is ambiguous.

    Attributes:
        candidates: names of the jobs that may be meant; empty if the daemon knows no such job.
    """

    exit_code = 1

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = list(candidates)


class DaemonStartsError(PeerError):
    """A daemon answers that it has not read its journal and its sources yet."""


def explain_path(job: str) -> str:
    """Return the path that explains a job, with its name quoted."""
    return f"{_EXPLAIN}{quote(job, safe='')}"


# -- commanding ------------------------------------------------------------------------------------
# Commands to the running daemon go over its Unix socket, where the kernel identifies the client.

PATH: Final = "/api/v1/commands"
WITHIN_S: Final = 60.0
"""Client time limit of a command; the daemon stops waiting earlier."""
_AWAY: Final = (FileNotFoundError, ConnectionRefusedError)
socket_option = click.option(
    "--socket", "socket_path", type=click.Path(path_type=Path), metavar="PATH",
    help="The daemon's Unix socket. [default: from --config, else that of the systemd service]",
)  # fmt: skip
why_option = click.option(
    "--why", default="", metavar="TEXT",
    help="The reason. It is recorded, and shown on the page and by `outrider mode`.",
)  # fmt: skip
__all__ = ["config_option", "json_option", "socket_option", "why_option"]


class NoDaemonError(PeerError):
    """Error: no process listens at the socket."""


class Answer(NamedTuple):
    """The daemon's answer to a command or query.

    Attributes:
        status: HTTP status.
        body: decoded JSON object.
    """

    status: int
    body: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if the command was done, else 1."""
        return DONE if self.body.get("outcome") == "done" else NO


def socket_of(socket: Path | None, loaded: "ReadConfig | None") -> Path | None:
    """Return the daemon's socket: the one given, the configuration's, else the unit's."""
    from outrider.service.config.declarations import socket_path
    from outrider.service.config.reading import own_socket

    if socket is not None:
        return socket
    if loaded is None:
        return default_socket()
    found = socket_path(loaded.config)
    if found is None and Path(loaded.source).absolute() == UNIT_CONFIG:
        found = default_socket()
    return found or own_socket(loaded)


def need_socket(socket: Path | None, loaded: "ReadConfig | None") -> Path:
    """Return the daemon's socket as `socket_of` does, or raise if there is none.

    Raises:
        NoDaemonError: the shipped unit's socket does not exist.
    """
    found = socket_of(socket, loaded)
    if found is not None:
        return found
    raise NoDaemonError(
        "no daemon answers: the systemd service has no socket here; name the daemon with "
        "--config FILE or --socket PATH"
    )


def post(socket: Path, command: dict[str, Any]) -> Answer:
    """Send a command to the daemon.

    Raises:
        NoDaemonError: no process listens at the socket.
        PeerError: the answer is not valid, or the daemon denies the command.
    """
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    body = json.dumps(command).encode()
    return _asked(socket, PATH, "POST", headers, body)


def get(socket: Path, path: str) -> Answer:
    """Send a query over the socket. Raises the same errors as `post`."""
    return _asked(socket, path, "GET", {"Accept": "application/json"}, None)


def _asked(
    socket: Path, path: str, method: str, headers: dict[str, str], body: bytes | None
) -> Answer:
    from outrider.cli import http_client

    place = f"unix:{socket}"
    try:
        reply = http_client.ask(
            place, path, headers, None, WITHIN_S, method=method, body=body,
            trusted=trusted_at(socket),
        )  # fmt: skip
    except PeerError as error:
        if isinstance(error.__cause__, _AWAY):
            raise NoDaemonError(str(error)) from error.__cause__
        raise
    try:
        answer = json.loads(reply.body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise PeerError(f"{place}: is not an Outrider server")
    if "error" in answer:
        raise PeerError(f"{place}: refused ({reply.status}): {answer['error']}")
    return Answer(reply.status, answer)


def decoded(answer: Any, kind: type[T]) -> T:
    """Return an answer, or a part of it, in its shape; unknown fields are left out.

    Raises:
        PeerError: the daemon is of a version whose answer does not have this shape.
    """
    import msgspec  # imported late: the help of a command needs none

    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise PeerError(
            f"the daemon's answer cannot be read: {error}; use the outrider that the daemon runs"
        ) from error


def print_answer(answer: Answer) -> None:
    """Print the result of a command; the first line is the outcome."""
    body = answer.body
    head = f"{body['command']}: {body['outcome']}"
    echo("\n".join([head, *(f"  {line}" for line in body["text"])]))
