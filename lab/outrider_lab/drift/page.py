"""The drift suite as an HTML page, from the result object alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from outrider.report.rendering import heading, made_by, page, prose, table
from outrider.simulation.estimates import in_words
from outrider_lab.reporting.page import failed_runs, shown

LABELS: Final = {
    "slowdown": "slowdown",
    "interactive_wait_s": "interactive wait [s]",
    "batch_wait_s": "batch wait [s]",
    "utility": "utility [ratio]",
}
_ROW_COLUMNS: Final = ("policy", "seeds", *(f"{label}, {w}" for w in ("before", "after")
                                            for label in LABELS.values()))  # fmt: skip


def html(result: Mapping[str, Any]) -> str:
    """Return the page of what `run_suite` returned."""
    return page("Learning under drift", _parts(result))


def _parts(result: Mapping[str, Any]) -> Iterator[Markup]:
    seeds = result["settings"]["seeds"]
    yield prose(
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}); with a seed, all meet the same jobs. "
        "Figures are means over seeds of each seed's mean over the jobs submitted "
        "before or after the change. Slowdown: turnaround by run time at speed 1 (10 s at least). "
        "Utility: what completing was worth, by what it could have been."
    )
    yield prose(f"{in_words(result['settings']['truth'])}. What drifts is the world.")
    yield heading("Does learning on line beat the frozen self?")
    yield prose(
        "Learning over frozen after the change, as a ratio, over all worlds that drift; the figure "
        "is slowdown where jobs are put in order, utility where runs are shrunk and preempted. "
        "95 % intervals over seeds (Student's t). Stopped: learned until the change; frozen: never "
        "learned here."
    )
    columns = ("policy", "against", "figure", "ratio", "95 %", "seeds", "verdict")
    yield table(columns, [verdict_cells(one) for one in result["verdicts"]])
    for world in result["settings"]["worlds"]:
        rows = [row for row in result["rows"] if row["world"] == world]
        if not rows:
            continue
        yield heading(f"{world}: {rows[0]['changes']}")
        yield table(_ROW_COLUMNS, [_row_cells(row) for row in rows])
        compared = [one for one in result["comparisons"] if one["world"] == world]
        yield table(
            ("after the change", *LABELS.values()), [_difference_cells(one) for one in compared]
        )
    yield from failed_runs(result["failed"])
    yield from made_by(result)


def named(row: Mapping[str, Any]) -> str:
    """Return a treatment: its policy and, if it can learn, when it does."""
    return row["policy"] if row["mode"] == "static" else f"{row['policy']}, {row['mode']}"


def verdict_cells(one: Mapping[str, Any]) -> list[str]:
    """Return a verdict over worlds as cells of a table."""
    interval = "-" if one["interval"] is None else " to ".join(f"{x:.3f}" for x in one["interval"])
    ratio = "-" if one["ratio"] is None else f"{one['ratio']:.3f}"
    return [f"{one['policy']} ({one['kind']})", one["against"], one["figure"], ratio, interval,
            str(one["seeds"]), one["verdict"]]  # fmt: skip


def _row_cells(row: Mapping[str, Any]) -> list[str]:
    found = [row[window][figure] for window in ("before", "after") for figure in LABELS]
    return [named(row), str(row["seeds"]),
            *("-" if one is None else shown(one["mean"]) for one in found)]  # fmt: skip


def _difference_cells(one: Mapping[str, Any]) -> list[str]:
    return [f"{one['policy']} less {one['against']}",
            *(_difference(one["windows"]["after"][figure]) for figure in LABELS)]  # fmt: skip


def _difference(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "-"
    if found["interval"] is None:
        return shown(found["difference"])
    low, high = found["interval"]
    return f"{shown(low)} to {shown(high)}: {found['verdict']}"
