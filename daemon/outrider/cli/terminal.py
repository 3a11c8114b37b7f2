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
        what to call with the ratio done; None where nobody watches.
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
# What `--watch` does, alike in every command that shows what is now.

_EVERY_S = 2.0
watch_option = click.option(
    "--watch", "watch_s", type=click.FloatRange(min=0.5), is_flag=False, flag_value=_EVERY_S,
    metavar="[S]",
    help="Ask again every S seconds (every 2 without a number), until Ctrl-C.",
)  # fmt: skip


def check_watch(watch_s: float | None, is_for_programs: bool) -> None:
    """Refuse to watch what is printed for programs. Raises `click.UsageError`."""
    if watch_s is not None and is_for_programs:
        raise click.UsageError("--watch is for people: it goes with neither --csv nor --json")


def print_lines(look: Callable[[], Iterable[str]], watch_s: float | None) -> None:
    """Print what is now, once or again and again.

    On a terminal each time replaces the one before; in a pipe they follow each other.

    Args:
        look: asks, and gives the lines.
        watch_s: seconds until it is asked again; None: once.

    Raises:
        PeerError: nobody answers, and nobody watches. Who watches is told of it, and it goes on.
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
