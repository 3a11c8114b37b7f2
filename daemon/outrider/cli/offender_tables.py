"""Who waits, where work is thrown away and which machines are black holes, as tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from outrider.cli.printing import count, duration, figure, print_table, ratio

_SHOWN: Final = 5
"""Rows of a table; --json has twice as many."""
_NOT_NAMED: Final = "(not named)"
"""An event log of HTCondor names no users."""


def print_offenders(told: Mapping[str, Any]) -> None:
    """Print tables of what `outrider.report.logs.read_logs` tells; an empty one is left out."""
    found = told["offenders"]
    _table(
        "users whose jobs waited longest in all",
        ("user", "jobs", "wait, mean", "wait, p95", "wait, max"),
        [
            (
                one["user"] or _NOT_NAMED,
                count(one["n"]),
                *(duration(one[k]) for k in ("mean", "p95", "max")),
            )
            for one in told["users_who_wait"]
        ],
    )
    again = [one for one in found["jobs"] if one["thrown_away"] > 1]
    for title, word, rows in (
        ("users by badput", "user", found["users"]),
        ("machines by badput", "machine", found["machines"]),
        ("jobs whose runs were thrown away more than once", "job", again),
    ):
        columns = (word, "runs", "badput [CPU h]", "of all", "reason of most")
        _table(title, columns, [_thrown_away(one, word) for one in rows])
    for line in _black_holes(found):
        click.echo(line)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        print_table(title, columns, rows[:_SHOWN])


def _thrown_away(one: Mapping[str, Any], word: str) -> tuple[str, ...]:
    runs, hours = count(one["thrown_away"]), figure(one["badput_h"])
    return (
        one[word] or _NOT_NAMED,
        runs,
        hours,
        ratio(one["badput_share"]),
        next(iter(one["reasons"]), ""),
    )


def _black_holes(found: Mapping[str, Any]) -> Iterator[str]:
    rule = found["rule"]
    within = duration(rule["within_s"])
    if not rule["machines"]:
        yield f"black holes: not known, no run is on record that failed or lasted {within}"
        return
    tried = f"of {count(rule['machines'])} machines"
    if not found["black_holes"]:
        yield f"black holes: none {tried} beyond chance (runs that end within {within})"
        return
    yield f"black holes {tried}, where many more jobs fail within {within} than elsewhere:"
    for one in found["black_holes"]:
        yield (
            f"  {one['machine']}: {count(one['jobs_failed'])} of {count(one['jobs_tried'])} jobs"
            f" failed (at least {ratio(one['rate_at_least'])} do, {ratio(one['rate_expected'])}"
            " elsewhere)"
        )
