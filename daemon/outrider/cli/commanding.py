"""Commanding the running daemon: over its Unix socket, where the kernel says who asks."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from outrider.cli.exit_codes import DONE, NO
from outrider.cli.options import config_option, json_option
from outrider.model.errors import ConfigurationError, PeerError

if TYPE_CHECKING:
    from outrider.service.config.reading import ReadConfig

PATH: Final = "/api/v1/commands"
WITHIN_S: Final = 60.0
"""The daemon itself gives up waiting before that."""
_AWAY: Final = (FileNotFoundError, ConnectionRefusedError)

socket_option = click.option(
    "--socket", "socket_path", type=click.Path(path_type=Path), metavar="PATH",
    help="The daemon's Unix socket. [default: that of --config, else that of the systemd service]",
)  # fmt: skip
why_option = click.option(
    "--why", default="", metavar="TEXT",
    help="The reason. It is recorded, and shown to everybody who may look.",
)  # fmt: skip
__all__ = ["config_option", "json_option", "socket_option", "why_option"]


class NoDaemonError(PeerError):
    """Nobody listens at the socket."""


class Answer(NamedTuple):
    """What the daemon answered.

    Attributes:
        status: of HTTP.
        body: as JSON.
    """

    status: int
    body: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """0 where it was done, 1 where not."""
        return DONE if self.body.get("outcome") == "done" else NO


def socket_of(socket: Path | None, loaded: "ReadConfig | None") -> Path | None:
    """Where the daemon's socket is: the one given, the configuration's, else the unit's."""
    from outrider.cli.daemon import UNIT_CONFIG, default_socket
    from outrider.service.config.declarations import socket_path

    if socket is not None:
        return socket
    if loaded is None:
        return default_socket()
    found = socket_path(loaded.config)
    if found is None and Path(loaded.source).absolute() == UNIT_CONFIG:
        return default_socket()
    return found


def need_socket(socket: Path | None, loaded: "ReadConfig | None") -> Path:
    """As `socket_of`.

    Raises:
        NoDaemonError: the shipped unit's is not there.
        ConfigurationError: the configuration has none.
    """
    found = socket_of(socket, loaded)
    if found is not None:
        return found
    if loaded is None:
        raise NoDaemonError(
            "no daemon answers: the systemd service has no socket here; --config FILE or --socket "
            "PATH says which daemon is meant"
        )
    raise ConfigurationError(
        f"{loaded.source}: commands go over the daemon's Unix socket, and this configuration has "
        'none; right would be socket = "/run/outrider/outrider.sock", or the systemd unit, which '
        "has one"
    )


def post(socket: Path, command: dict[str, Any]) -> Answer:
    """Give a command.

    Raises:
        NoDaemonError: nobody listens there.
        PeerError: the daemon does not answer as it should, or does not let us command.
    """
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    body = json.dumps(command).encode()
    return _asked(socket, PATH, "POST", headers, body)


def get(socket: Path, path: str) -> Answer:
    """Ask over the socket. Raises as `post`."""
    return _asked(socket, path, "GET", {"Accept": "application/json"}, None)


def _asked(
    socket: Path, path: str, method: str, headers: dict[str, str], body: bytes | None
) -> Answer:
    from outrider.cli import http_client

    place = f"unix:{socket}"
    try:
        reply = http_client.ask(place, path, headers, None, WITHIN_S, method=method, body=body)
    except PeerError as error:
        if isinstance(error.__cause__, _AWAY):
            raise NoDaemonError(str(error)) from error.__cause__
        raise
    try:
        told = json.loads(reply.body)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise PeerError(f"{place}: answers, but not as Outrider would")
    if "error" in told:
        raise PeerError(f"{place}: refused ({reply.status}): {told['error']}")
    return Answer(reply.status, told)


def tell(answer: Answer) -> None:
    """Print what came of a command, the first line its end."""
    body = answer.body
    head = f"{body['command']}: {body['outcome']}"
    click.echo("\n".join([head, *(f"  {line}" for line in body["text"])]))
