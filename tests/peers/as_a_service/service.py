"""Outrider as a service in a booted machine: set up by its own command, asked by systemd's."""

import contextlib
import json
import socket
from http.client import HTTPConnection
from itertools import takewhile
from typing import Any, Final

from tests.cli.running import COMMAND
from tests.peers.as_a_service.machine import UNITS, Machine

UNIT: Final = "outrider.service"
CONFIG: Final = "/etc/outrider/outrider.toml"
STATE: Final = "var/lib/private/outrider"
"""Where DynamicUser= has what the daemon knows as /var/lib/outrider."""
SOCKET: Final = "/run/outrider/outrider.sock"


class Service:
    """The service of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def configure(self, text: str) -> None:
        """Write the daemon's configuration."""
        self.machine.put(CONFIG, text)

    def drop_in(self, name: str, text: str) -> None:
        """Write an administrator's own drop-in; systemd reads it at `daemon-reload`."""
        self.machine.put(f"{UNITS}/{UNIT}.d/{name}.conf", text)

    def install(self) -> str:
        """Do what an administrator does: install, then each command that is printed. Returns it."""
        said = self.machine.run(COMMAND, "install-service", "--config", CONFIG)
        then = takewhile(
            lambda line: line.startswith(" "), said.partition("Then:\n")[2].splitlines()
        )
        commands = [line.split() for line in then]
        assert [words[0] for words in commands] == [
            "systemd-sysusers", "systemctl", "systemctl", "outrider",
        ], said  # fmt: skip
        for words in commands[:-1]:
            self.machine.run(*words)
        return said

    def told(self, name: str) -> str:
        """A property of the unit, as `systemctl show` prints it."""
        return self.machine.run("systemctl", "show", "--value", "-p", name, UNIT).strip()

    def pid(self) -> int:
        """The main process, as its machine counts; 0: there is none."""
        return int(self.told("MainPID"))

    def is_active(self) -> bool:
        """Return whether it has said that it is ready."""
        return self.told("ActiveState") == "active"

    def status(self) -> dict[str, Any]:
        """What `outrider status --json` would say: over the socket, as root."""
        asked = HTTPConnection("localhost", timeout=30)
        asked.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(asked):
            asked.sock.settimeout(30)
            asked.sock.connect(str(self.machine.inside(SOCKET)))
            asked.request("GET", "/api/v1/status")
            found: dict[str, Any] = json.load(asked.getresponse())
        return found

    def lines(self, *words: str) -> list[dict[str, Any]]:
        """Its lines in systemd's journal, the oldest first."""
        said = self.machine.run("journalctl", "-u", UNIT, "-o", "json", "--no-pager", *words)
        return [json.loads(line) for line in said.splitlines()]

    def of_process(self) -> dict[str, str]:
        """What the kernel says of its main process (/proc/PID/status)."""
        said = self.machine.run("cat", f"/proc/{self.pid()}/status")
        parted = (line.partition(":") for line in said.splitlines())
        return {name: value.strip() for name, _, value in parted}
