"""Status messages to systemd: the protocol of sd_notify(3), without its library."""

import os
import socket
import time
from collections.abc import Mapping

from outrider.model.errors import ConfigurationError


class ServiceManager:
    """The service manager that started the daemon; without NOTIFY_SOCKET there is none.

    Every method that sends a message returns whether it was delivered. A service manager that
    cannot be reached is no reason to stop, so no exception is raised.

    Args:
        environ: the environment with NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.

    Raises:
        ConfigurationError: NOTIFY_SOCKET is no address of a local socket.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address[:1] not in ("", "/", "@"):
            raise ConfigurationError(
                f'environment: NOTIFY_SOCKET = "{self._address}"; expected a path beginning with '
                '"/", or "@" for an abstract socket'
            )
        self.watchdog_every_s = _watchdog_every_s(environ)
        """Seconds between two `alive` (half of the watchdog's limit); None: no watchdog."""

    @property
    def is_there(self) -> bool:
        """True if a service manager started the daemon."""
        return bool(self._address)

    def starting(self, status: str, extend_s: float) -> bool:
        """Report that the start continues, and may take this many more seconds."""
        extend = f"EXTEND_TIMEOUT_USEC={round(extend_s * 1e6)}"
        return self._send(extend, "WATCHDOG=1", f"STATUS={_one_line(status)}")

    def ready(self, status: str) -> bool:
        """Report that the start or a reload is done."""
        return self._send("READY=1", f"STATUS={_one_line(status)}")

    def status(self, status: str) -> bool:
        """Set the line that ``systemctl status`` shows."""
        return self._send(f"STATUS={_one_line(status)}")

    def alive(self) -> bool:
        """Reset systemd's watchdog timer."""
        return self._send("WATCHDOG=1")

    def reloading(self) -> bool:
        """Report that a reload begins; `ready` ends it."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> bool:
        """Report that the daemon is stopping, and why."""
        return self._send("STOPPING=1", f"STATUS={_one_line(status)}")

    def _send(self, *lines: str) -> bool:
        if not self._address:
            return False
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode(errors="replace"), address)
        except OSError:  # there may be no descriptor left for the socket, either
            return False
        return True


def _one_line(status: str) -> str:
    return " ".join(status.split())


def _watchdog_every_s(environ: Mapping[str, str]) -> float | None:
    usec = environ.get("WATCHDOG_USEC", "")
    meant_for = environ.get("WATCHDOG_PID") or str(os.getpid())
    if not usec.isascii() or not usec.isdigit() or int(usec) == 0 or meant_for != str(os.getpid()):
        return None
    return int(usec) / 2e6
