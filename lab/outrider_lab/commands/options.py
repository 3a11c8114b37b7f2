"""Options of commands that run many; their help must not wait for the lab to be imported."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import click

from outrider.cli.options import file_path, json_option

F = TypeVar("F", bound=Callable[..., Any])

report_option = click.option(
    "--report", type=file_path(file_okay=False), metavar="DIR",
    help="Write index.html (tables, figures, claims) and result.json there.",
)  # fmt: skip

_OPTIONS: Final = (
    click.option(
        "--workers", metavar="N", type=click.IntRange(min=1),
        help="Processes; each holds a trace in memory. [default: the cores there are]",
    ),
    click.option(
        "--resume/--no-resume", "resume", default=None,
        help="Continue with the finished runs of the same command that was stopped, or start over. "
        "Without either option, existing finished runs are an error.",
    ),
    click.option(
        "--runs", type=file_path(dir_okay=False), metavar="FILE",
        help="File for finished runs until all are done. [default: runs.jsonl in the folder "
        "of --report where there is one, else a file of this very command below "
        "~/.local/state/outrider]",
    ),
)  # fmt: skip


def many_runs_options(command: F) -> F:
    """Return a command with these options, whose values `Keeping` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Asked(NamedTuple):
    """Options of a reproduction command, as the user gave them."""

    seeds: str
    quick: bool
    workers: int | None
    resume: bool | None
    runs: Path | None
    report: Path | None
    as_json: bool


def reproduction_options(
    seeds: str, full: str, quick_seeds: str, what_quick: str
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options shared by the commands of all papers, passed as one `Asked`.

    Args:
        seeds: what a seed stands for, in words.
        full: the seeds at full size, as ``1-20``.
        quick_seeds: those of a quick run.
        what_quick: what a quick run leaves out, in words.
    """
    options = (
        click.option(
            "--seeds", metavar="A-B", help=f"{seeds} [default: {full}; quick: {quick_seeds}]"
        ),
        click.option("--quick", is_flag=True, help=what_quick),
        *_OPTIONS,
        report_option,
        json_option,
    )

    def with_options(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def asked(
            seeds: str | None, quick: bool, workers: int | None, resume: bool | None,
            runs: Path | None, report: Path | None, as_json: bool, **others: Any,
        ) -> int:  # fmt: skip
            drawn = seeds or (quick_seeds if quick else full)
            return command(Asked(drawn, quick, workers, resume, runs, report, as_json), **others)

        for option in reversed(options):
            asked = option(asked)
        return asked

    return with_options
