"""The console script: the version at once, everything else with one exit code for each ending.

Nothing large may be imported at the top of this module: ``outrider --version`` pays for it.
"""

import os
import sys

from outrider.cli.exit_codes import DONE


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: words after the program's name; None: those of this process.

    Returns:
        The exit code: 0 done; 1 it ran and the answer is no; 2 bad use, configuration or trace;
        3 a peer could not be reached; 70 a fault of Outrider's own; 130 interrupted; 141 whoever
        read the output has gone.
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
        _give_up_untaken_lines()


def _give_up_untaken_lines() -> None:
    """Return where nobody takes the last lines of standard error, let them go nowhere.

    The interpreter would try once more as it ends, and make 120 of whatever the exit code is.
    """
    try:
        sys.stderr.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def _open_standard_streams() -> None:
    """Return where one of the three is closed, let it be nowhere.

    Python has None for such a stream, on which whatever writes a line fails. And the next file that
    is opened, which may be the journal, would get its number, and with it what C libraries print.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    while nowhere <= 2:  # the lowest that is free
        nowhere = os.dup(nowhere)
    os.close(nowhere)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", buffering=1, closefd=False)
