"""``outrider users``: users with their waiting and running jobs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from outrider.cli.commands.jobs import STATES
from outrider.cli.listing import Column, Row, every_row, listing_options, print_list, wanted
from outrider.cli.options import asking_options
from outrider.model.quantities import count, duration


def _count_of(field: str) -> Callable[[Row], str]:
    return lambda row: count(row[field])


def _duration_of(field: str) -> Callable[[Row], str]:
    return lambda row: duration(row[field])


COLUMNS: Final = {
    "user": Column("user", lambda row: row["user"]),
    "vo": Column("VO", lambda row: row["vo"]),
    **{state: Column(state, _count_of(state), is_figure=True) for state in STATES},
    "busy_cpus": Column("busy CPUs", lambda row: count(row["busy_cpus"]), is_figure=True),
    "wait_p50_s": Column("wait p50", _duration_of("wait_p50_s"), is_figure=True),
    "wait_p95_s": Column("wait p95", _duration_of("wait_p95_s"), is_figure=True),
    "longest_wait_s": Column("longest wait", _duration_of("longest_wait_s"), is_figure=True),
    "lost_s": Column("lost", _duration_of("lost_s"), is_figure=True),
}
SHOWN: Final = tuple(COLUMNS)


@click.command("users", short_help="List users with their waiting and running jobs.")
@click.option(
    "--vo", "vos", multiple=True, metavar="NAME",
    help="Only of this VO (HTCondor: accounting group, Slurm: account); repeat for more.",
)  # fmt: skip
@asking_options
@listing_options(COLUMNS)
def command(
    vos: tuple[str, ...],
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    **words: Any,
) -> None:
    """List users with their waiting and running jobs, one line per user and VO.

    It counts the jobs that the daemon knows now. wait p50 and p95 are percentiles of the waiting
    time so far of waiting jobs. lost is the total time of wasted runs. Without a token names are
    pseudonyms. Columns of -o: user, vo, queued, running, suspended, held, busy_cpus, wait_p50_s,
    wait_p95_s, longest_wait_s, lost_s. `outrider status` shows the VOs' usage and shares.


    Example:
      outrider users --sort -longest_wait_s
      outrider users --vo cms --json
    """
    from outrider.cli.configuration import daemon_address, read

    asked = wanted(COLUMNS, words)
    address = daemon_address(url, read(config), token_file, ca)

    def look() -> tuple[list[Row], dict[str, Any]]:
        rows, rest = every_row(address, "/api/v1/users", "users")
        rest.pop("total")
        return [row for row in rows if not vos or row["vo"] in vos], rest

    print_list("users", COLUMNS, SHOWN, asked, look)
