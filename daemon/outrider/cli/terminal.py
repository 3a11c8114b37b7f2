"""Progress bars and ``--watch`` on a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import click

from outrider.cli.printing import echo
from outrider.model.errors import PeerError

# -- progress --------------------------------------------------------------------------------------
# A progress bar on standard error, on a terminal only.

Report = Callable[[float], None]
"""Called with the ratio that is done, 0 to 1."""


@contextmanager
def progress_bar(label: str) -> Iterator[Report | None]:
    """Show a bar while the block runs.

    Yields:
        function to call with the ratio done; None if standard error is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=1.0)
        yield lambda ratio: bar.update(task, completed=ratio)


# -- watching --------------------------------------------------------------------------------------
# The `--watch` option of every command that shows the current state.

_EVERY_S = 2.0
watch_option = click.option(
    "--watch", "watch_s", type=click.FloatRange(min=0.5), is_flag=False, flag_value=_EVERY_S,
    metavar="[S]",
    help="Repeat every S seconds (every 2 without a number), until Ctrl-C.",
)  # fmt: skip


def check_watch(watch_s: float | None, is_for_programs: bool) -> None:
    """Reject ``--watch`` together with output for programs. Raises `click.UsageError`."""
    if watch_s is not None and is_for_programs:
        raise click.UsageError("--watch cannot be combined with --csv or --json")


def print_lines(look: Callable[[], Iterable[str]], watch_s: float | None) -> None:
    """Print the current state once, or periodically.

    On a terminal each output replaces the one before; in a pipe they follow each other.

    Args:
        look: queries the daemon and returns the lines.
        watch_s: seconds between two queries; None: query once.

    Raises:
        PeerError: no daemon answers. With `watch_s` the error is printed and the loop continues.
    """
    while True:
        try:
            lines = list(look())
        except PeerError as error:
            if watch_s is None:
                raise
            lines = [f"outrider: {error}; asking again"]
        if watch_s is not None:
            click.clear()
        for line in lines:
            echo(line)
        if watch_s is None:
            return
        time.sleep(watch_s)
