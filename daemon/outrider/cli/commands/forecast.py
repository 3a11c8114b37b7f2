"""``outrider forecast``: start time forecasts for the waiting jobs of a log."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.model.modes import DISCIPLINES, STRICT, Discipline


@click.command("forecast", short_help="Forecast when the waiting jobs of a log would start.")
@click.argument("trace", metavar="TRACE", type=file_path())
@click.option(
    "--machines", type=click.IntRange(min=1), metavar="N",
    help="CPUs of the site, in place of the header's MaxProcs.",
)  # fmt: skip
@click.option(
    "--discipline", type=click.Choice(DISCIPLINES), default=STRICT, show_default=True,
    help="Which jobs may start before one that does not fit; see `outrider replay`.",
)  # fmt: skip
@click.option(
    "--estimates", metavar="RULE",
    help="Run times that the scheduler sees: requested, exact or lognormal:SIGMA. "
    "[default: requested, if the log has requests]",
)  # fmt: skip
@click.option(
    "--recorded",
    is_flag=True,
    help="Forecast the recorded starts, under any scheduling rule, not those of a replay.",
)
@click.option(
    "--train", "train_ratio", type=click.FloatRange(0.0, 1.0), default=0.0, show_default=True,
    metavar="RATIO", help="Fraction of the jobs, the first ones, used for learning only.",
)  # fmt: skip
@click.option(
    "--replicates", type=click.IntRange(min=2), default=100, show_default=True, metavar="N",
    help="Simulations of the site per answer.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Random seed. [default: 0]"
)
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="CSV file for the answers: job,asked_s,low_s,median_s,high_s.",
)  # fmt: skip
@json_option
def command(
    trace: Path,
    machines: int | None,
    discipline: Discipline,
    estimates: str | None,
    recorded: bool,
    train_ratio: float,
    replicates: int,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Forecast when the waiting jobs of a log would start.

    Use it to see how accurate such forecasts are at your site before users rely on them. TRACE is a
    workload file in Standard Workload Format (.swf, .swf.gz). For every job that does not start
    immediately, one forecast is made at submission and one at each full hour while it waits. Each
    is an 80 % interval and a median, in seconds of the log's clock, using only information
    available at that moment; empty cells mean "not known". `outrider replay TRACE --policy fifo
    --jobs FILE` shows when they did start.

    Example:
      outrider generate grid --row 0.2 --seed 1 --out grid.swf
      outrider forecast grid.swf --train 0.3 --out starts.csv
    """
    from outrider.cli.provenance import provenance
    from outrider.cli.starts_forecast import Asked, check_asked, forecast, show_forecast

    asked = Asked(
        trace, machines, discipline, estimates, recorded, train_ratio, replicates, seed, out
    )
    check_asked(asked)
    with progress_bar(f"{shown(trace.name)} {discipline}") as progress:
        result: dict[str, Any] = forecast(asked, progress)
    if as_json:
        print_json(provenance([trace]) | result)
    else:
        show_forecast(result)
