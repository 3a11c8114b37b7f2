"""``outrider generate journal``: what a daemon beside a simulated campus records."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import Seconds, file_path, json_option
from outrider.cli.printing import count, figure, print_json, shown
from outrider.cli.progress import progress_bar
from outrider.cli.word_completion import policy_names


@click.command("journal", short_help="A journal: what a daemon beside a campus records.")
@click.option(
    "--campus", type=file_path(file_okay=False), required=True, metavar="DIR",
    help="The campus: a folder as `outrider generate campus` writes it.",
)  # fmt: skip
@click.option(
    "--incumbent", default="random_match", show_default=True, metavar="NAME",
    shell_complete=policy_names, help="The policy that starts jobs, in place of a batch system.",
)  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
    help="Seed of the incumbent, as that of `outrider replay`.",
)  # fmt: skip
@click.option(
    "--until", "until_s", metavar="S", type=Seconds(min=0),
    help="The journal as it was after this second of the campus. [default: its last]",
)  # fmt: skip
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="File to write, a journal.sqlite; it must not be there yet.",
)  # fmt: skip
@json_option
def journal(
    campus: Path, incumbent: str, seed: int, until_s: float | None, out: Path, as_json: bool
) -> None:
    """Write the journal of a daemon that watches a campus, without waiting for it.

    Use it where a journal of weeks is needed and no daemon has run for weeks. The daemon's own
    code writes it, in mode observe: the incumbent starts the jobs of the campus, exactly as in
    `outrider replay --policy INCUMBENT --seed N`, and what happens is recorded as events. The file
    is the journal.sqlite of a state directory. With --until it begins as the whole one does;
    jobs and owners that are there then are there at its end.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
      outrider generate journal --campus campus --until 1209600 --out journal.sqlite
      outrider export campus --ledger journal.sqlite --out seen
    """
    from outrider.service.demo.simulated_journal import write_journal
    from outrider.service.host.logs import Mode, set_up_logs

    set_up_logs(Mode("observe"), level="warning")
    with progress_bar("watching") as progress:
        told = write_journal(
            campus, out, incumbent=incumbent, seed=seed, until_s=until_s, progress=progress
        )
    facts: dict[str, Any] = {
        "out": shown(out), "campus": shown(campus), "incumbent": incumbent, "seed": seed, **told
    }  # fmt: skip
    if as_json:
        print_json(facts)
        return
    jobs = facts["jobs"]
    click.echo(
        f"{facts['out']}: {count(facts['events'])} events in {figure(facts['span_s'], 86_400)} "
        f"days; machines: {count(facts['machines'])}, jobs: {count(jobs['submitted'])}, of which "
        f"{count(jobs['completed'])} completed and {count(jobs['removed'])} were removed"
    )
