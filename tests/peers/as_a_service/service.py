"""Outrider as a service in a booted machine: set up by its command, run by systemd."""

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
"""Path with DynamicUser= of what the daemon knows as /var/lib/outrider."""
SOCKET: Final = "/run/outrider/outrider.sock"


class Service:
    """Service of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def configure(self, text: str) -> None:
        """Write the daemon's configuration."""
        self.machine.put(CONFIG, text)

    def drop_in(self, name: str, text: str) -> None:
        """Write an administrator's drop-in; systemd reads it at `daemon-reload`."""
        self.machine.put(f"{UNITS}/{UNIT}.d/{name}.conf", text)

    def install(self) -> str:
        """Install as an administrator does, with each printed command; return the output."""
        message = self.machine.run(COMMAND, "install-service", "--config", CONFIG)
        then = takewhile(
            lambda line: line.startswith(" "), message.partition("Then:\n")[2].splitlines()
        )
        commands = [line.split() for line in then]
        assert [words[0] for words in commands] == [
            "systemd-sysusers", "systemctl", "systemctl", "outrider",
        ], message  # fmt: skip
        for words in commands[:-1]:
            self.machine.run(*words)
        return message

    def told(self, name: str) -> str:
        """Return a property of the unit, as printed by `systemctl show`."""
        return self.machine.run("systemctl", "show", "--value", "-p", name, UNIT).strip()

    def pid(self) -> int:
        """Return the main process by the numbers of its machine; 0: there is none."""
        return int(self.told("MainPID"))

    def is_active(self) -> bool:
        """Return whether it has reported that it is ready."""
        return self.told("ActiveState") == "active"

    def status(self) -> dict[str, Any]:
        """Return the answer of `outrider status --json`: over the socket, as root."""
        asked = HTTPConnection("localhost", timeout=30)
        asked.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(asked):
            asked.sock.settimeout(30)
            asked.sock.connect(str(self.machine.inside(SOCKET)))
            asked.request("GET", "/api/v1/status")
            found: dict[str, Any] = json.load(asked.getresponse())
        return found

    def lines(self, *words: str) -> list[dict[str, Any]]:
        """Return its lines in systemd's journal, oldest first."""
        message = self.machine.run("journalctl", "-u", UNIT, "-o", "json", "--no-pager", *words)
        return [json.loads(line) for line in message.splitlines()]

    def of_process(self) -> dict[str, str]:
        """Return the kernel's data on its main process (/proc/PID/status)."""
        message = self.machine.run("cat", f"/proc/{self.pid()}/status")
        parted = (line.partition(":") for line in message.splitlines())
        return {name: value.strip() for name, _, value in parted}
