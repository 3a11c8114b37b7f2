"""``outrider machines``: the machines and their state."""

from pathlib import Path
from typing import Any, Final

import click

from outrider.cli.listing import Column, Row, every_row, listing_options, print_list, wanted
from outrider.cli.options import asking_options
from outrider.model.quantities import count, figure

STATES: Final = ("busy", "free", "owner", "asleep", "closed")


def _state(row: Row) -> str:
    """Return the state, and why it is drained where this client may know it."""
    draining = ", draining" if row.get("draining") else ""
    why = f" ({row['closed_because']})" if row.get("closed_because") else ""
    return f"{row['state']}{draining}{why}"


COLUMNS: Final = {
    "machine": Column("machine", lambda row: row["machine"]),
    "cluster": Column("cluster", lambda row: row["cluster"]),
    "state": Column("state", _state),
    "cpus": Column("CPUs", lambda row: count(row["cpus"]), is_figure=True),
    "busy_cpus": Column("busy CPUs", lambda row: count(row["busy_cpus"]), is_figure=True),
    "active_w": Column(
        "W when busy", lambda row: figure(row["active_w"], digits=0), is_figure=True
    ),
    "inferred": Column("known by", lambda row: "its jobs" if row["inferred"] else "itself"),
}
SHOWN: Final = ("machine", "cluster", "state", "cpus", "busy_cpus", "active_w")


@click.command("machines", short_help="List the machines and their state.")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES),
              help="Only in this state; repeat for more.")  # fmt: skip
@click.option(
    "--cluster", "clusters", multiple=True, metavar="NAME",
    help="Only of this machine group; repeat for more.",
)  # fmt: skip
@asking_options
@listing_options(COLUMNS)
def command(
    states: tuple[str, ...],
    clusters: tuple[str, ...],
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    **words: Any,
) -> None:
    """List the machines and their state.

    Like condor_status and sinfo -N, but from the daemon's state. A machine in state closed is on
    and without an owner, but accepts no jobs. One that drains runs jobs, but accepts no more. One
    line per machine, never folded. Columns of -o: machine, cluster (its machine group), state,
    cpus, busy_cpus, active_w (watts of a busy machine), inferred (known from its jobs alone).
    --json prints the rows of GET /api/v1/machines.

    Example:
      outrider machines --state free --state asleep
      outrider machines --csv -o machine,state,active_w
    """
    from outrider.cli.configuration import daemon_address, read

    asked = wanted(COLUMNS, words)
    address = daemon_address(url, read(config), token_file, ca)

    def look() -> tuple[list[Row], dict[str, Any]]:
        rows, rest = every_row(address, "/api/v1/machines", "machines")
        rest.pop("total")
        kept = [
            row for row in rows
            if (not states or row["state"] in states)
            and (not clusters or row["cluster"] in clusters)
        ]  # fmt: skip
        return kept, rest

    print_list("machines", COLUMNS, SHOWN, asked, look)
