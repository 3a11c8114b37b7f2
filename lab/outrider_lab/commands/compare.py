"""Compare policies on workload files, job by job."""

from pathlib import Path

import click

from outrider.cli.options import Seconds, file_path, json_option, seed_range
from outrider.cli.policies_on_traces import Asked, policies_on_traces, refuse_repeats
from outrider.cli.printing import print_json, shown
from outrider.cli.word_completion import policy_names
from outrider_lab.commands.options import many_runs_options

SECTION = "Judge"


@click.command("compare", short_help="Compare policies on workload files, job by job.")
@policies_on_traces(
    "A policy to compare; give it again for more. The published baselines always run beside.",
    file_path(exists=True, dir_okay=False),
)
@click.option(
    "--baseline", default="fifo", metavar="NAME", show_default=True, shell_complete=policy_names,
    help="The policy all others are held against.",
)  # fmt: skip
@click.option(
    "--seeds", default="0-0", metavar="A-B", show_default=True,
    help="Seeds of the policies' chance and of the estimates'; a job's figures are means over "
    "them.",
)  # fmt: skip
@click.option(
    "--block", "block_s", type=Seconds(min=0, min_open=True), metavar="S",
    help="Jobs submitted within such a stretch are drawn together for the intervals; never below "
    "the mean wait. [default: chosen from the waits' autocorrelation]",
)  # fmt: skip
@many_runs_options
@json_option
def command(
    asked: Asked,
    baseline: str,
    seeds: str,
    block_s: float | None,
    workers: int | None,
    resume: bool | None,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Compare policies on workload files, job by job.

    Use it to see whether a policy is better than what others published, and how surely. Each TRACE
    is a Standard Workload Format file (.swf, .swf.gz); every policy runs it by itself, and beside
    it the published baselines fifo (FCFS), sjf, wfp3, unicep and f1. Differences are taken job by
    job, with 95 % intervals from resampled stretches of time: "better" and "worse" are said only
    where the interval leaves out 0, and nothing is said of fewer than ten stretches. The best
    published baseline is chosen on each trace after the fact, by its mean bounded slowdown.

    Example:
      outrider compare kth.swf.gz lcg.swf.gz --policy edf --estimates lognormal:1.0

    Waits are shown in minutes (in --json: seconds). Exit code 1: a run failed; it is named, and the
    others are compared.
    """
    from outrider_lab.commands.comparison_tables import show_comparison
    from outrider_lab.commands.many_runs import Keeping, carried_out, name_failures
    from outrider_lab.comparison.function import study_of

    refuse_repeats([shown(trace) for trace in asked.traces], "TRACE")
    named = tuple(dict.fromkeys((*asked.policies, baseline)))
    given, preset = asked.given_to(named)
    study = study_of(
        [shown(trace) for trace in asked.traces],
        {name: (given[name], preset[name]) for name in named},
        baseline,
        seed_range(seeds),
        asked.terms(),
        asked.share_table(),
        block_s,
    )
    with carried_out(study, Keeping("compare", workers, resume, runs)) as result:
        if as_json:
            print_json(result)
        else:
            show_comparison(result)
        return name_failures(result)
