"""How a command ends: errors as one clear line on standard error, and the exit code they have."""

import errno
import os
import sys

import click

from outrider.cli.bad_words import bad_word_text
from outrider.cli.exit_codes import BAD_USE, DONE, INTERRUPTED, OWN_FAULT, READER_GONE
from outrider.cli.printing import echo
from outrider.cli.root import COMPLETION_VARIABLE, outrider
from outrider.model.errors import OutriderError

TRACEBACK_VARIABLE = "OUTRIDER_TRACEBACK"
_DISK_SAYS_NO = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def run(words: list[str]) -> int:
    """Run the command that the words name; see `outrider.cli.entry.main` for what it returns."""
    if COMPLETION_VARIABLE in os.environ:
        outrider.main(words, "outrider", complete_var=COMPLETION_VARIABLE)
    try:
        code = _invoke(words)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_output()
        return READER_GONE
    except click.ClickException as error:
        _show(error)
        return BAD_USE
    except Exception as error:  # noqa: BLE001 - the last place where it can be told in words
        return _told(error)
    return code


def _show(error: click.ClickException) -> None:
    """Say which word of the command line cannot be used, below the command's usage."""
    context = getattr(error, "ctx", None)
    if context is not None:
        echo(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.", err=True)
    echo(f"\nError: {bad_word_text(error)}", err=True)


def _give_up_output() -> None:
    """Python flushes once more at exit, and would complain there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoke(words: list[str]) -> int:
    try:
        with outrider.make_context("outrider", list(words), obj=words) as context:
            code = outrider.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    return code if isinstance(code, int) else DONE


def _told(error: Exception) -> int:
    """Say what went wrong; the traceback only where it was asked for."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OutriderError):
        echo(f"outrider: {error}", err=True)
        return error.exit_code
    if isinstance(error, OSError) and (error.filename or error.errno in _DISK_SAYS_NO):
        if not error.filename:
            _give_up_output()
        place = error.filename or "the output"
        echo(f"outrider: {place}: {error.strerror}", err=True)
        return BAD_USE
    echo(
        f"outrider: a fault of Outrider's own: {type(error).__name__}: {error}\n"
        f"Please report it; {TRACEBACK_VARIABLE}=1 before the command shows where it happened.",
        err=True,
    )
    return OWN_FAULT
