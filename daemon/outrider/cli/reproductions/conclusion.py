"""What every reproduction begins and ends with: a folder for the report, and what is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path
from outrider.cli.printing import figure, print_json, print_table, shown

Result = dict[str, Any]

report_option = click.option(
    "--report", type=file_path(file_okay=False), metavar="DIR",
    help="Write index.html (tables, figures, claims) and result.json there.",
)  # fmt: skip


def make_folder(report: Path | None) -> None:
    """Refuse a report that could not be written before a long run, not after it.

    Raises:
        ConfigurationError: what draws figures is not installed.
    """
    from outrider.lab.drawing import require_matplotlib

    if report is not None:
        require_matplotlib("--report")
        report.mkdir(parents=True, exist_ok=True)


def conclude(
    result: Result,
    report: Path | None,
    as_json: bool,
    page: Callable[[Result], str],
    show: Callable[[Result], None],
    told: Callable[[Result], Result] = dict,
) -> int:
    """Write the report, print the result, name what failed.

    Args:
        result: of the reproduction.
        report: folder of ``index.html`` and ``result.json``, or None.
        as_json: print one JSON document in place of tables.
        page: the HTML page of a result.
        show: prints tables for people.
        told: the result as machines get it.

    Returns:
        The exit code: 1 if a run failed.
    """
    if report is not None:
        _write(result, report, page, told)
    if as_json:
        print_json(told(result))
    else:
        show(result)
        if report is not None:
            click.echo(f"report: {shown(report / 'index.html')}")
    for failure in result["failed"]:
        click.echo(f"outrider: failed: {failure['cell']}: {failure['error']}", err=True)
    return int(bool(result["failed"]))


def _write(
    result: Result, folder: Path, page: Callable[[Result], str], told: Callable[[Result], Result]
) -> None:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(told(result)), indent=2)
    (folder / "result.json").write_bytes(text)
    if result["rows"]:  # without any there is nothing to draw; the failures are told
        (folder / "index.html").write_text(page(result), encoding="utf-8")


def show_claims(result: Result) -> None:
    """Every claim with what was measured and the verdict."""
    claims = [
        (one["claim"], one["where"], figure(one["measured"], digits=3), one["verdict"])
        for one in result["claims"]
    ]
    print_table("claims", ("", "section", "measured", "verdict"), claims, figures=False)
