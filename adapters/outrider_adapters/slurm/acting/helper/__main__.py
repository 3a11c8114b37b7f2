"""Command of the helper, which serves the socket that systemd passes.

``outrider-slurm.socket`` starts it when the daemon connects. It ends after a while without
requests.
"""

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from typing import Final

from outrider_adapters.slurm.acting.helper.service import Helper
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings

_FIRST_FD: Final = 3
"""First descriptor that systemd passes: see sd_listen_fds(3)."""
_BAD_USE: Final = 2


def main(words: Sequence[str]) -> int:
    """Serve requests and return the exit code."""
    parser = argparse.ArgumentParser(prog="outrider-slurm", description=__doc__)
    parser.add_argument("--user", required=True, help="the daemon's user, who may send requests")
    parser.add_argument("--slurm-config", help="slurm.conf, where it is not at its usual place")
    parser.add_argument("--commands", help="folder of scontrol and squeue, else found by PATH")
    parser.add_argument("--idle-s", type=float, default=600.0, help="end after such a pause")
    options = parser.parse_args(words)
    listener = _passed_socket()
    if listener is None:
        print(  # noqa: T201 - a command
            "no socket was passed; use: started by outrider-slurm.socket",
            file=sys.stderr,
        )
        return _BAD_USE
    settings = SlurmSettings(config=options.slurm_config, commands=options.commands)
    helper = Helper(options.user, SlurmCommands(settings), _log)
    with listener:
        helper.serve(listener, options.idle_s)
    return 0


def _passed_socket() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    return socket.socket(fileno=_FIRST_FD)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - which systemd writes to the journal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
