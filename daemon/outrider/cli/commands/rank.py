"""``outrider rank``: ranking of several sites for one more job."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from outrider.cli.listing import Column, Row, listing_options, print_list, wanted
from outrider.cli.options import file_path
from outrider.model.errors import PeerError
from outrider.model.quantities import MISSING, count, duration, figure


def _wait(row: Row) -> str:
    if row["wait_s"] is None:
        return MISSING
    low, high = duration(row["wait_low_s"]), duration(row["wait_high_s"])
    return f"{duration(row['wait_s'])} ({low} to {high})"


COLUMNS: Final = {
    "site": Column("site", lambda row: row["site"]),
    "utility": Column("utility", lambda row: figure(row["utility"], digits=3), is_figure=True),
    "wait_s": Column("wait", _wait),
    "wait_low_s": Column("at least", lambda row: duration(row["wait_low_s"]), is_figure=True),
    "wait_high_s": Column("at most", lambda row: duration(row["wait_high_s"]), is_figure=True),
    "vo": Column("VO", lambda row: row["vo"] or MISSING),
    "class": Column("class", lambda row: row["class"] or MISSING),
    "cpus": Column("CPUs", lambda row: count(row["cpus"]), is_figure=True),
    "free_machines": Column("free", lambda row: count(row["free_machines"]), is_figure=True),
    "queued_jobs": Column("queued", lambda row: count(row["queued_jobs"]), is_figure=True),
    "why_not": Column("why not", lambda row: row["why_not"]),
}
SHOWN: Final = (
    "site", "utility", "wait_s", "vo", "class", "cpus", "free_machines", "queued_jobs", "why_not"
)  # fmt: skip


def rows_of(site: str, answer: Row, vo: str | None, job_class: str | None) -> list[Row]:
    """Return a row for each matching kind of job at a site, or one row without figures.

    Args:
        site: address of the site.
        answer: answer of GET /api/v1/utility.
        vo: only this VO; None: all.
        job_class: only this class; None: all.
    """
    one_more = answer.get("one_more_job") or {"not_said": "its Outrider is too old", "kinds": []}
    kinds = [
        kind for kind in one_more["kinds"]
        if vo in (None, kind["vo"]) and job_class in (None, kind["class"])
    ]  # fmt: skip
    if not kinds:
        return [_row(site, answer, one_more["not_said"] or "no such job arrived there recently")]
    return [
        _row(site, answer, "" if kind["wait_s"] else "unknown, or no machine could run it", kind)
        for kind in kinds
    ]


def _row(site: str, answer: Row, why_not: str, kind: Row | None = None) -> Row:
    known, index = kind or {}, answer.get("site_utility", {})
    wait = known.get("wait_s") or {}
    return {
        "site": site,
        "utility": known.get("utility"),
        "wait_s": wait.get("median"),
        "wait_low_s": wait.get("low"),
        "wait_high_s": wait.get("high"),
        **{name: known.get(name) for name in ("vo", "class", "cpus")},
        "free_machines": index.get("free_machines"),
        "queued_jobs": index.get("queued_jobs"),
        "why_not": why_not,
    }


def ranked(rows: Sequence[Row], by: str) -> list[Row]:
    """Return the rows sorted, the best first and unknown ones last.

    Args:
        rows: rows of all sites.
        by: ``utility``, the highest first and the shortest wait among equals; or ``wait``.
    """

    def place(row: Row) -> tuple[bool, float, float, str]:
        wait_s = row["wait_s"]
        worth = 0.0 if by == "wait" or row["utility"] is None else -row["utility"]
        unknown = wait_s is None or (by == "utility" and row["utility"] is None)
        return unknown, worth, float("inf") if wait_s is None else wait_s, row["site"]

    return sorted(rows, key=place)


@click.command("rank", short_help="Rank several sites for one more job.")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--vo", metavar="NAME", help="For a job of this VO.")
@click.option(
    "--class",
    "job_class",
    metavar="NAME",
    help="For a job of this class: interactive, batch, or another class of the sites.",
)
@click.option(
    "--by", type=click.Choice(["utility", "wait"]), default="utility", show_default=True,
    help="utility: the expected value of completing it there; wait: the expected wait.",
)  # fmt: skip
@click.option(
    "--token-file", type=file_path(dir_okay=False), metavar="FILE",
    help="File with the token to send to each.",
)  # fmt: skip
@click.option(
    "--ca", type=file_path(dir_okay=False), metavar="FILE",
    help="PEM file of the authority that signed their certificates.",
)  # fmt: skip
@listing_options(COLUMNS)
def command(
    urls: tuple[str, ...],
    vo: str | None,
    job_class: str | None,
    by: str,
    token_file: Path | None,
    ca: Path | None,
    **words: Any,
) -> int:
    """Rank several sites for one more job, sent there now.

    For brokers. Each URL is a daemon's address. The command queries GET /api/v1/utility: for each
    VO and class the expected wait, with an 80 % interval, and the expected utility by the site's
    own time utility functions (Perez et al. 2008, section II.C). Sites that do not answer come
    last, with the reason. Exit code 1: no site's wait is known. Columns of -o: site, utility,
    wait_s, wait_low_s, wait_high_s, vo, class, cpus, free_machines, queued_jobs, why_not.

    Example:
      outrider rank https://a.example.org:9690 https://b.example.org:9690 --vo cms --class batch
      outrider rank http://127.0.0.1:9690 --by wait --json
    """
    from outrider.cli.daemon import DaemonAddress

    asked = wanted(COLUMNS, words)
    token = None if token_file is None else str(token_file)
    authority = None if ca is None else str(ca)
    known = False

    def look() -> tuple[list[Row], dict[str, Any]]:
        nonlocal known
        rows: list[Row] = []
        for url in dict.fromkeys(urls):
            address = DaemonAddress(url, token, authority)
            try:
                rows += rows_of(url, address.ask("/api/v1/utility"), vo, job_class)
            except PeerError as error:
                rows.append(_row(url, {}, str(error)))
        known = any(row["wait_s"] is not None for row in rows)
        return ranked(rows, by), {"by": by}

    print_list("sites", COLUMNS, SHOWN, asked, look)
    return 0 if known else 1
