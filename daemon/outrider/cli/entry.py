"""Entry point of the console script: runs one command and returns its exit code.

Import nothing large at the top of this module: it would slow down ``outrider --version``.
"""

import os
import sys

from outrider.cli.exit_codes import DONE


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: words after the program's name; None: those of this process.

    Returns:
        The exit code: 0 done; 1 it ran and the answer is no; 2 bad use, configuration or trace;
        3 a peer could not be reached; 70 internal error; 130 interrupted; 141 the reader of the
        output has closed it.
    """
    _open_standard_streams()
    words = sys.argv[1:] if arguments is None else arguments
    if words in (["--version"], ["-V"]):
        from outrider import __version__

        print(f"outrider {__version__}")  # noqa: T201 - faster than anything that could replace it
        return DONE
    from outrider.cli.endings import run

    try:
        return run(words)
    finally:
        _discard_unread_errors()


def _discard_unread_errors() -> None:
    """Send standard error to nowhere if its reader has closed it.

    The interpreter would flush again at exit, fail, and replace the exit code by 120.
    """
    try:
        sys.stderr.flush()
    except OSError:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stderr.fileno())
        os.close(devnull)


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device.

    Python represents a closed stream by None, and writing to that fails. Also the next file that is
    opened, perhaps the journal, would get the stream's number and what C libraries print to it.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    devnull = os.open(os.devnull, os.O_RDWR)
    while devnull <= 2:  # dup takes the lowest free number
        devnull = os.dup(devnull)
    os.close(devnull)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", buffering=1, closefd=False)
