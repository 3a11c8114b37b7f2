"""A free port for a program that needs one as an argument: `python3 free_port.py` writes it.

A port that the kernel hands out (bind to 0, close, pass the number on) may be handed to any
connection before the program binds it, and with several test processes on one machine it is. So a
port is drawn from those that the kernel never hands out.
"""

import random
import socket
import sys
from pathlib import Path

LOWEST, HIGHEST = 10_000, 32_767
HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
DRAWS = 1_000


def never_handed_out() -> range:
    """The ports below those that the kernel gives to outgoing connections."""
    first = int(HANDED_OUT.read_text().split()[0]) if HANDED_OUT.exists() else HIGHEST + 1
    return range(LOWEST, max(first, LOWEST + DRAWS))


def free_port() -> int:
    """Return an unused loopback port that no outgoing connection will get.

    Raises:
        OSError: Every port that was drawn is in use.
    """
    draw = random.SystemRandom()  # a seeded test must not send every process to the same port
    for _ in range(DRAWS):
        port = draw.choice(never_handed_out())
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise OSError(f"{DRAWS} ports from {LOWEST} up were drawn, and each is in use")


if __name__ == "__main__":
    sys.stdout.write(f"{free_port()}\n")
