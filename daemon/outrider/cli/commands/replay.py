"""``outrider replay``: simulation of a trace under each policy."""

from pathlib import Path

import click

from outrider.cli.options import Seconds, file_path, json_option, seed_range
from outrider.cli.policies_on_traces import Asked, policies_on_traces, refuse_repeats
from outrider.cli.printing import echo, print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.model.errors import ConfigurationError


@click.command("replay", short_help="Simulate a trace under policies and compare the results.")
@policies_on_traces(
    "A policy to run the trace under; repeat for more. `outrider plugins` lists them."
)
@click.option(
    "--seed",
    metavar="S",
    type=click.IntRange(min=0),
    help="Random seed of the policies. [default: 0]",
)
@click.option("--seeds", metavar="A-B", help="Run every policy once with each seed from A to B.")
@click.option(
    "--until", "until_s", type=Seconds(min=0), metavar="S",
    help="Stop after this second of the trace.",
)  # fmt: skip
@click.option(
    "--ledger", type=file_path(dir_okay=False), metavar="FILE",
    help="Record every decision with its scores, for `outrider ledger`. With several runs each "
    "gets its own file: runs.sqlite becomes runs-POLICY-SEED.sqlite (with several traces "
    "runs-TRACE-POLICY-SEED.sqlite).",
)  # fmt: skip
@click.option(
    "--jobs", type=file_path(dir_okay=False), metavar="FILE",
    help="Write a row for every job: its submission, start, end, and the reasons it waited. FILE "
    "ends in .csv, .parquet or .jsonl; with several runs each gets one, named as with --ledger.",
)  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Skip and count bad rows instead of failing.")
@json_option
def command(
    asked: Asked,
    seed: int | None,
    seeds: str | None,
    until_s: float | None,
    ledger: Path | None,
    jobs: Path | None,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Simulate a trace under policies and compare the results.

    Use it before you use a policy at a site, and to choose its settings. Each TRACE is a campus
    folder (site.toml, machines.csv, owners.csv, jobs.csv) or a workload file in Standard Workload
    Format (.swf, .swf.gz). Each policy runs each trace separately, starts with an empty queue, and
    acts on the simulated site. The policy `recorded` repeats what the scheduler of a workload file
    did. The same trace, policy, settings and seed give the same decisions and the same
    ledger_sha256.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
      outrider replay campus --policy random_match --policy bandit --set bandit.epsilon=0.05
      outrider generate grid --row 0.2 --seed 1 --out grid.swf
      outrider replay grid.swf --policy fifo --policy sjf --estimates lognormal:1.0

    Waits and overheads are shown in minutes (in --json: seconds), energies in kilowatt-hours (in
    --json: watt-hours).
    """
    from outrider.cli.provenance import provenance
    from outrider.cli.tables import show_runs
    from outrider.cli.traces import check_traces
    from outrider.formats.tables import check_file, format_of
    from outrider.replay.run import free_ended_runs
    from outrider.replay.trials import Terms, notes_on, plan, read_trace, run_trial

    if seed is not None and seeds is not None:
        raise ConfigurationError("--seed and --seeds: use one of them")
    seed_list = range(seed or 0, (seed or 0) + 1) if seeds is None else seed_range(seeds)
    traces, policies = asked.traces, asked.policies
    settings, presets = asked.given_to(policies)
    terms = Terms(settings, presets, until_s, asked.share_table(), asked.terms())
    check_traces(traces, policies, terms.workload)
    for name in policies:  # refuse what is wrong before a long run, not after it
        terms.make(name, 0)
    for option, file in (("--ledger", ledger), ("--jobs", jobs)):
        if file is not None:
            refuse_repeats([trace.resolve().name for trace in traces], f"{option}: traces named")
    if jobs is not None:
        check_file(jobs, format_of(jobs, None, "--jobs"), "--jobs")
    runs = []
    for path in traces:
        trace = read_trace(path, terms.workload, skip_bad)
        for note in notes_on(trace, terms.shares):
            echo(f"outrider: warning: {shown(path)}: {note}", err=True)
        for trial in plan(shown(path), list(policies), seed_list, len(traces) > 1, ledger, jobs):
            free_ended_runs()
            with progress_bar(f"{trace.name} {trial.policy} {trial.seed}") as progress:
                runs.append(run_trial(trial, trace, terms, progress))
    if as_json:
        print_json(provenance(traces) | {"runs": runs})
    else:
        show_runs(runs)
