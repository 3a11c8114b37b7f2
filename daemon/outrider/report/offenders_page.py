"""The part of the page that lists the worst offenders."""

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from outrider.report.page import heading, name, prose, subheading, table
from outrider.report.words import cost_cells, cost_heads, count, number, percent, reasons, window


def worst_offenders(told: Mapping[str, Any]) -> Iterator[Markup]:
    """Users, machines, black holes and jobs; nothing for an empty window."""
    found, tariff = told["offenders"], told["tariff"]
    if found is None:
        return
    heads = ("badput", "of all badput", *cost_heads("its energy", tariff), "runs", "goodput")
    yield heading("Where work was thrown away")
    yield prose(
        f"Runs that ended in {window(told['window'])} before their job was done, whoever is to "
        "blame: a user whose jobs are evicted by owners is listed as is one who removes them. The "
        "reasons say which."
    )
    yield subheading("Users, by badput")
    yield table(
        ("user", "reasons", *heads),
        [(name(one["user"]), reasons(one["reasons"]), *_badput(one, tariff))
         for one in found["users"]],
        in_words=2,
    )  # fmt: skip
    yield subheading("Machines, by badput")
    yield table(
        ("machine", "reasons", *heads, "starts"),
        [(name(one["machine"]), reasons(one["reasons"]), *_badput(one, tariff),
          count(one["starts"])) for one in found["machines"]],
        in_words=2,
    )  # fmt: skip
    yield from _starts(found)
    yield subheading("Jobs that ran and were thrown away most often")
    yield table(
        ("job", "user", "reasons", *heads),
        [(name(one["job"]), name(one["user"]), reasons(one["reasons"]), *_badput(one, tariff))
         for one in found["jobs"]],
        in_words=3,
    )  # fmt: skip


def _badput(one: Mapping[str, Any], tariff: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        number(one["badput_h"], "h"), percent(one["badput_share"]),
        *cost_cells(one["badput"], tariff), count(one["thrown_away"]),
        number(one["goodput_h"], "h"),
    )  # fmt: skip


def _starts(found: Mapping[str, Any]) -> Iterator[Markup]:
    rule = found["rule"]
    minutes = f"{rule['within_s'] / 60.0:g} minutes"
    yield subheading("Machines, by failed starts")
    yield prose(
        f"A start failed where the run ended within {minutes} as {', '.join(rule['reasons'])}. A "
        "job counts once on each machine."
    )
    yield table(
        ("machine", "jobs tried", "jobs failed"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]))
         for one in found["failed_starts"]],
    )  # fmt: skip
    yield subheading("Black holes")
    yield prose(
        f"Machines whose rate of failed starts is, by a one-sided bound at "
        f"{percent(1.0 - rule['alpha'])} over all {count(rule['machines'])} machines together, "
        f"beyond {rule['times']:g} times that of the same users' jobs elsewhere, with jobs of "
        f"{count(rule['fewest_users'])} users or more. Jobs that fail and count as completed (the "
        "journal has no exit codes) cannot be seen."
    )
    if not found["black_holes"]:
        yield prose("None was found.")
        return
    yield table(
        ("machine", "jobs tried", "jobs failed", "of users", "rate", "at least", "elsewhere"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]),
          count(one["users"]), percent(one["rate"]), percent(one["rate_at_least"]),
          percent(one["rate_expected"])) for one in found["black_holes"]],
    )  # fmt: skip
