"""End of a command: errors as one line on standard error, and the exit code."""

import errno
import os
import sys

import click

from outrider.cli.bad_words import usage_error_text
from outrider.cli.exit_codes import BAD_USE, DONE, INTERRUPTED, OWN_FAULT, READER_GONE
from outrider.cli.printing import echo
from outrider.cli.root import COMPLETION_VARIABLE, outrider
from outrider.model.errors import OutriderError

TRACEBACK_VARIABLE = "OUTRIDER_TRACEBACK"
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def run(words: list[str]) -> int:
    """Run a command; see `outrider.cli.entry.main` for the exit codes."""
    if COMPLETION_VARIABLE in os.environ:
        outrider.main(words, "outrider", complete_var=COMPLETION_VARIABLE)
    try:
        code = _invoke(words)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return READER_GONE
    except click.ClickException as error:
        _show(error)
        return BAD_USE
    except Exception as error:  # noqa: BLE001 - the last place that can show a readable message
        return _report(error)
    return code


def _show(error: click.ClickException) -> None:
    """Print the invalid argument below the command's usage."""
    context = getattr(error, "ctx", None)
    if context is not None:
        echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.", err=True)
    echo(f"\nError: {usage_error_text(error)}", err=True)


def _discard_output() -> None:
    """Send standard output to nowhere: Python flushes again at exit, which would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoke(words: list[str]) -> int:
    try:
        with outrider.make_context("outrider", list(words), obj=words) as context:
            code = outrider.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    return code if isinstance(code, int) else DONE


def _report(error: Exception) -> int:
    """Print an error, with a traceback only if requested, and return its exit code."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OutriderError):
        echo(f"outrider: {error}", err=True)
        return error.exit_code
    if isinstance(error, OSError) and (error.filename or error.errno in _DISK_ERRORS):
        if not error.filename:
            _discard_output()
        place = error.filename or "the output"
        echo(f"outrider: {place}: {error.strerror}", err=True)
        return BAD_USE
    echo(
        f"outrider: internal error (please report): {type(error).__name__}: {error}\n"
        f"Run the command again with {TRACEBACK_VARIABLE}=1 to see where it happened.",
        err=True,
    )
    return OWN_FAULT
