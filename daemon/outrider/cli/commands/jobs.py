"""``outrider jobs``: the jobs that wait, run or are held now."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from outrider.cli.listing import Column, Row, every_row, listing_options, print_list, wanted
from outrider.cli.options import Seconds, asking_options
from outrider.model.quantities import MISSING, count, duration
from outrider.model.reasons import START_ANSWER_TEXTS

if TYPE_CHECKING:
    from outrider.cli.daemon import DaemonAddress

STATES: Final = ("queued", "running", "suspended", "held")
DAEMON_SORTS: Final = ("waiting_s", "run_s", "lost_s", "cpus")
"""Columns by which the daemon sorts, so that the first rows can be read without the others."""


def _start(row: Row) -> str:
    """Return when a waiting job is expected to start, from now, with the interval."""
    start = row["expected_start"]
    if start is None:
        return START_ANSWER_TEXTS.get(row["expected_start_answer"] or "", MISSING)
    low, middle, high = (
        max(0.0, start[f"{end}_s"] - row["now_s"]) for end in ("low", "median", "high")
    )
    if high <= 0.0:
        return START_ANSWER_TEXTS["next_pass"]
    if middle <= 0.0:
        return f"now, or in up to {duration(high)}"
    return f"in {duration(middle)} ({duration(low)} to {duration(high)})"


def _choices(row: Row) -> str:
    """Return what each policy last chose for it; codes from an older daemon without texts."""
    if not all("text" in chosen for chosen in row["pending"].values()):
        return _choice_codes(row)
    return "; ".join(f"{policy}: {chosen['text']}" for policy, chosen in row["pending"].items())


def _choice_codes(row: Row) -> str:
    """Return the same as codes, for programs."""
    return "; ".join(
        f"{policy}: {chosen['action']} ({chosen['reason']})"
        for policy, chosen in row["pending"].items()
    )


COLUMNS: Final = {
    "job": Column("job", lambda row: row["job"]),
    "state": Column(
        "state", lambda row: row.get("state_word") or row["state"],
        value=lambda row: row["state"],
    ),
    "user": Column("user", lambda row: row["user"]),
    "vo": Column("VO", lambda row: row["vo"]),
    "class": Column("class", lambda row: row["class"]),
    "cpus": Column("CPUs", lambda row: count(row["cpus"]), is_figure=True),
    "submit_s": Column("age", lambda row: duration(_age_s(row)), is_figure=True),
    "waiting_s": Column("waiting", lambda row: duration(row["waiting_s"]), is_figure=True),
    "run_s": Column("running", lambda row: duration(row["run_s"]), is_figure=True),
    "machine": Column("machine", lambda row: row["machine"] or MISSING),
    "runs": Column("runs", lambda row: count(row["runs"]), is_figure=True),
    "lost_s": Column("lost", lambda row: duration(row["lost_s"]), is_figure=True),
    "expected_start": Column(
        "expected start", _start,
        value=lambda row: (row["expected_start"] or {}).get("median_s"),
    ),
    "group": Column("group", lambda row: row["group"] or MISSING),
    "reason": Column(
        "reason", lambda row: row.get("reason_text") or row["reason"] or MISSING,
        value=lambda row: row["reason"],
    ),
    "pending": Column("last choices", _choices, value=_choice_codes),
}  # fmt: skip
SHOWN: Final = (
    "job", "state", "user", "vo", "cpus", "waiting_s", "run_s", "machine", "runs", "lost_s",
    "expected_start",
)  # fmt: skip


def _age_s(row: Row) -> float | None:
    submit_s = row["submit_s"]
    return None if submit_s is None else max(0.0, row["now_s"] - submit_s)


def rows_of(
    address: "DaemonAddress", most: int | None = None, **query: str
) -> tuple[list[Row], dict[str, Any]]:
    """Return a daemon's jobs, each with the time of the answer, and the answer's other fields."""
    rows, rest = every_row(address, "/api/v1/jobs", "jobs", most, **query)
    rest.pop("total")
    return [{**row, "now_s": rest["now_s"]} for row in rows], rest


@click.command("jobs", short_help="List the jobs that wait, run or are held now.")
@click.option(
    "--user", "users", multiple=True, metavar="NAME",
    help="Only of this user; repeat for more.",
)  # fmt: skip
@click.option(
    "--vo", "vos", multiple=True, metavar="NAME",
    help="Only of this VO (HTCondor: accounting group, Slurm: account); repeat for more.",
)  # fmt: skip
@click.option("--state", type=click.Choice(STATES), help="Only in this state.")
@click.option(
    "--group", metavar="NAME",
    help="Only jobs on a machine of this group; of jobs that do not run, those that may use one.",
)  # fmt: skip
@click.option(
    "--reason", metavar="TEXT", help="Only those whose reason contains this text or code."
)
@click.option(
    "--waiting-over", type=Seconds(min=0), metavar="SECONDS",
    help="Only those that have waited longer than this.",
)  # fmt: skip
@click.option(
    "--first", type=click.IntRange(min=1), metavar="N",
    help="Only the first N in the order of --sort.",
)  # fmt: skip
@asking_options
@listing_options(COLUMNS)
def command(
    users: tuple[str, ...],
    vos: tuple[str, ...],
    state: str | None,
    group: str | None,
    reason: str | None,
    waiting_over: float | None,
    first: int | None,
    url: str | None,
    config: Path | None,
    token_file: Path | None,
    ca: Path | None,
    **words: Any,
) -> None:
    """List the jobs that wait, run or are held now, with the expected start of those that wait.

    Like condor_q and squeue, but from the daemon's state: it never queries the batch system. One
    line per job, never folded. States are in the batch system's own words, in CSV and JSON in
    Outrider's. `outrider explain JOB` explains why a job waits.

    Columns of -o: job, state, user, vo, class, cpus, submit_s, waiting_s, run_s, machine, group,
    runs, lost_s, expected_start, reason (why it does not run: for a waiting job the first policy's
    reason; for a held one the batch system's, if names are shown), pending. In CSV times are Unix
    seconds, durations seconds, and the expected start is the median. --json prints the rows of
    GET /api/v1/jobs, each with the time of the answer (now_s).

    Example:
      outrider jobs --state queued --sort -waiting_s --first 20
      outrider jobs --group lab --waiting-over 86400 -o job,user,waiting_s,reason
      outrider jobs --user alice --csv -o job,waiting_s,expected_start
    """
    from outrider.cli.configuration import daemon_address, read

    asked = wanted(COLUMNS, words)
    address = daemon_address(url, read(config), token_file, ca)
    given = {
        "state": state,
        "user": users[0] if len(users) == 1 else None,
        "vo": vos[0] if len(vos) == 1 else None,
        "group": group,
        "reason": reason,
        "waiting_over_s": None if waiting_over is None else repr(waiting_over),
    }
    query = {name: word for name, word in given.items() if word is not None}
    by = asked.sort or ""
    if by.removeprefix("-") in DAEMON_SORTS:
        query["sort"] = by
    # filters and sort orders that the daemon does not support are applied here, to all rows
    is_daemon_s = len(users) < 2 and len(vos) < 2 and (not by or "sort" in query)

    def look() -> tuple[list[Row], dict[str, Any]]:
        rows, rest = rows_of(address, first if is_daemon_s else None, **query)
        kept = [
            row for row in rows
            if (not users or row["user"] in users) and (not vos or row["vo"] in vos)
        ]  # fmt: skip
        return kept, rest

    print_list("jobs", COLUMNS, SHOWN, asked, look, first)
