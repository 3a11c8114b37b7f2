"""``outrider forecast``: until when the jobs of a log wait, as it could have been told then."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.model.modes import DISCIPLINES, STRICT, Discipline


@click.command("forecast", short_help="Say when the waiting jobs of a log would start.")
@click.argument("trace", metavar="TRACE", type=file_path())
@click.option(
    "--machines", type=click.IntRange(min=1), metavar="N",
    help="CPUs of the site, in place of the header's MaxProcs.",
)  # fmt: skip
@click.option(
    "--discipline", type=click.Choice(DISCIPLINES), default=STRICT, show_default=True,
    help="Who may start before a job that does not fit.",
)  # fmt: skip
@click.option(
    "--estimates", metavar="RULE",
    help="What the scheduler is told of run times: requested, exact or lognormal:SIGMA. "
    "[default: requested, where users did]",
)  # fmt: skip
@click.option(
    "--recorded",
    is_flag=True,
    help="Forecast the starts that the log recorded, whatever its rule was, not those of a replay.",
)
@click.option(
    "--train", "train_ratio", type=click.FloatRange(0.0, 1.0), default=0.0, show_default=True,
    metavar="RATIO", help="From so many of the jobs, the first ones, it only learns.",
)  # fmt: skip
@click.option(
    "--replicates", type=click.IntRange(min=2), default=100, show_default=True, metavar="N",
    help="How often the site is run forward for each answer.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed. [default: 0]"
)
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="Where the answers go, as CSV: job,asked_s,low_s,median_s,high_s.",
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
    """Say when the waiting jobs of a log would start, hour by hour.

    Use it to see how far such answers hold at your site before users rely on them. TRACE is a
    workload file in Standard Workload Format (.swf, .swf.gz). It asks about every job that does not
    start at once: at its submission, and then at each full hour of the log's clock while it waits.
    Each answer is an 80 % interval and a median, in seconds of the log's clock, from what was known
    at that moment; empty cells mean "not known". `outrider replay TRACE --policy fifo --jobs FILE`
    says when they did start.

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
        said: dict[str, Any] = forecast(asked, progress)
    if as_json:
        print_json(provenance([trace]) | said)
    else:
        show_forecast(said)
