"""Steps shared by the commands of all papers: validate, run, report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from outrider.cli.printing import echo, print_json, print_table, shown
from outrider.model.quantities import figure
from outrider_lab.commands.many_runs import Keeping, executed, name_failures
from outrider_lab.commands.options import Asked
from outrider_lab.reporting.claims import in_words
from outrider_lab.running.run_all import Row, Study, check_policies

Result = dict[str, Any]


class Output(NamedTuple):
    """Output of a paper's result.

    Attributes:
        page: the HTML page of a result.
        show: prints tables for people.
        report: the result as machines get it.
    """

    page: Callable[[Result], str]
    show: Callable[[Result], None]
    report: Callable[[Result], Result] = dict


def reproduce(paper: str, study: Study[Row], asked: Asked, output: Output) -> int:
    """Execute a paper's study and report its result.

    Returns:
        the exit code: 1 if a run failed.

    Raises:
        OutriderError: something is wrong; nothing has run.
    """
    make_folder(asked.report)
    check_policies(study)
    label = f"reproduce {paper}"
    keeping = Keeping(label, asked.workers, asked.resume, asked.runs, asked.report)
    with executed(study, keeping) as result:
        return conclude(result, asked.report, asked.as_json, output)


def make_folder(report: Path | None) -> None:
    """Refuse a report that could not be written before a long run, not after it.

    Raises:
        ConfigurationError: what draws figures is not installed.
    """
    from outrider_lab.reporting.drawing import require_matplotlib

    if report is not None:
        require_matplotlib("--report")
        report.mkdir(parents=True, exist_ok=True)


def conclude(result: Result, report: Path | None, as_json: bool, output: Output) -> int:
    """Write the report, print the result, name what failed.

    Args:
        result: of the reproduction.
        report: folder of ``index.html``, ``result.json`` and ``rows.csv``, or None.
        as_json: print one JSON document in place of tables.
        output: page, tables and report of the result.

    Returns:
        The exit code: 1 if a run failed.
    """
    if report is not None:
        _write(result, report, output)
    if as_json:
        print_json(output.report(result))
    else:
        output.show(result)
        if report is not None:
            echo(f"report: {shown(report / 'index.html')}")
    return name_failures(result)


def _write(result: Result, folder: Path, output: Output) -> None:
    import msgspec

    from outrider_lab.reporting.flat_rows import rows_as_csv

    reported = output.report(result)
    (folder / "result.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(reported), indent=2)
    )
    if result["rows"]:  # without any there is nothing to draw; failures are listed
        rows = rows_as_csv(msgspec.to_builtins(reported["rows"]))
        (folder / "rows.csv").write_text(rows, encoding="utf-8")
        (folder / "index.html").write_text(output.page(result), encoding="utf-8")


def size_in_words(result: Result) -> str:
    """Return whether a run was large enough to judge by."""
    return "quick, too small for verdicts" if result["settings"]["quick"] else "full size"


def show_claims(result: Result) -> None:
    """Print every claim with its measurement and the verdict."""
    claims = [
        (one["claim"], one["where"], figure(one["measured"], digits=3), one["verdict"])
        for one in result["claims"]
    ]
    title = in_words(result["verdicts"])
    print_table(title, ("", "section", "measured", "verdict"), claims, figures=False)
