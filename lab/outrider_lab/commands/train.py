"""Let a policy learn before it goes live."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from outrider.cli.options import (
    Seconds,
    class_by_option,
    file_path,
    json_option,
    policy_names,
    reader_names,
    seed_range,
)
from outrider.cli.printing import echo, print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.formats.option_words import split_pair, toml_value
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import count

if TYPE_CHECKING:
    from outrider.formats.job_classes import ClassRule
    from outrider.formats.workload import Workload
    from outrider.simulation.estimates import EstimateRule
    from outrider_lab.training import Demonstration

SECTION = "Judge"

_RECORDED: Final = "recorded"
_SQLITE: Final = b"SQLite format 3\0"


@click.command("train", short_help="Let a policy learn before it goes live.")
@click.argument("policy", metavar="POLICY", shell_complete=policy_names)
@click.argument(
    "traces", nargs=-1, metavar="[TRACE]...", type=file_path(exists=True, dir_okay=False)
)
@click.option(
    "--behaviour", metavar="NAME", shell_complete=policy_names,
    help="Who decides while it watches: a policy, or `recorded`, the site's own scheduler as the "
    "trace has it. [default: recorded for logs and journals, else edf]",
)  # fmt: skip
@click.option(
    "--rows", default="", metavar="A,B",
    help="Draw grids with these shares of interactive jobs to learn from, as 0.2,0.4,0.5.",
)  # fmt: skip
@click.option(
    "--seeds", default="10000-10009", metavar="A-B", show_default=True,
    help="Of the drawn grids, one for each row and seed; from 10000 on, for those below judge.",
)  # fmt: skip
@click.option(
    "--estimates", metavar="RULE",
    help="Rule for the run times that policies know on workloads: exact, requested, "
    "lognormal:SIGMA. exact and lognormal use the true run time, and the start file says so. "
    "[default: requested; without requests exact]",
)  # fmt: skip
@class_by_option
@click.option(
    "--machines", metavar="N", type=click.IntRange(min=1),
    help="CPUs of workload files. [default: what their headers say]",
)  # fmt: skip
@click.option(
    "--vo", default="group", metavar="COLUMN", show_default=True,
    help="Column of workload files that says which VO a job belongs to.",
)  # fmt: skip
@click.option(
    "--until", "until_s", metavar="S", type=Seconds(min=0),
    help="Watch workloads until this second only, and keep the rest to judge by.",
)  # fmt: skip
@click.option(
    "--format", "format_name", default="auto", metavar="NAME", show_default=True,
    shell_complete=reader_names,
    help="Which reader understands logs that are no workload files.",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE",
    help="One setting of the policy, the value as in TOML.",
)  # fmt: skip
@click.option("--preset", metavar="NAME", help="A named bundle of its settings.")
@click.option(
    "--seed", default=0, metavar="S", type=click.IntRange(min=0), show_default=True,
    help="Seed of its chance.",
)  # fmt: skip
@click.option(
    "--out", required=True, type=file_path(dir_okay=False), metavar="FILE",
    help="Start file to write, for the policy's setting `start`.",
)  # fmt: skip
@json_option
def command(
    policy: str,
    traces: tuple[Path, ...],
    behaviour: str | None,
    rows: str,
    seeds: str,
    estimates: str | None,
    class_by: str | None,
    machines: int | None,
    vo: str,
    until_s: float | None,
    format_name: str,
    settings: tuple[str, ...],
    preset: str | None,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    """Let a policy learn before it goes live.

    Use it to calibrate a learner with your own site's past, or to make its start anew. The policy
    watches a behaviour policy decide, as it would beside a live site, and what it learned is
    written to a start file. A TRACE is a workload file (.swf), a log that `outrider ingest` reads,
    or the journal of a daemon; --rows draws synthetic grids. Nothing is learned from a trace that
    you mean to judge by: cut it with --until.

    Example:
      outrider train sarsa past.swf --behaviour recorded --out start.json
      outrider replay present.swf --policy sarsa --set sarsa.start=start.json
    """
    from outrider.formats.job_classes import class_rule
    from outrider.simulation.estimates import LEARNED, estimate_rule, in_words
    from outrider_lab.training import Learner, train, write_start

    rule = None if estimates is None else estimate_rule(estimates, "--estimates")
    if rule is not None and rule.kind == LEARNED:
        raise ConfigurationError(
            "--estimates learned: there is no estimator while a policy is trained; expected "
            "exact, requested or lognormal:SIGMA"
        )
    if not out.parent.is_dir():  # refuse what is wrong before a long run, not after it
        raise ConfigurationError(f"--out {shown(out)}: there is no folder {shown(out.parent)}")
    learner = Learner(policy, _settings(settings), preset, seed)
    learner.make()
    classes = None if class_by is None else class_rule(class_by)
    read = partial(_read, machines=machines, class_by=classes, vo=vo, rule=rule, seed=seed)
    demonstrations = [
        *_drawn(rows, seeds, behaviour, rule, until_s),
        *(_of_trace(trace, behaviour, read, until_s, format_name) for trace in traces),
    ]
    with progress_bar(f"train {policy}") as progress:
        training = train(learner, demonstrations, progress)
    write_start(training, out)
    facts: dict[str, Any] = {"out": shown(out), **training.about}
    if as_json:
        print_json(facts)
        return
    echo(
        f"{facts['out']}: {policy} learned from {count(training.runs)} runs of "
        f"{count(len(demonstrations))} traces, decided by {', '.join(facts['behaviour_policies'])}"
    )
    if facts["truth"]:
        echo(in_words(facts["truth"]))
    echo(f"use it: --set {policy}.start={facts['out']}")


def _settings(words: tuple[str, ...]) -> dict[str, Any]:
    pairs = (split_pair("--set", word, "key=value, as gamma=0.2") for word in words)
    return {key: toml_value(value) for key, value in pairs}


def _drawn(
    rows: str,
    seeds: str,
    behaviour: str | None,
    rule: "EstimateRule | None",
    until_s: float | None,
) -> "list[Demonstration]":
    """Return synthetic grids, seed by seed, each row in turn."""
    if not rows:
        return []
    from outrider_lab.training import FIRST_SEED, WorkloadDemonstration

    if behaviour == _RECORDED:
        raise ConfigurationError(
            "--behaviour recorded: traces of --rows were never scheduled; expected a policy"
        )
    drawn = seed_range(seeds)
    if drawn[0] < FIRST_SEED:
        raise ConfigurationError(
            f'--seeds "{seeds}": expected seeds from {FIRST_SEED} on, for those below judge'
        )
    shares = [_share(word) for word in rows.split(",")]
    return [
        WorkloadDemonstration(
            partial(_draw, share, seed, rule), f"row {share:g}, seed {seed}",
            behaviour or "edf", until_s,
        )
        for seed in drawn
        for share in shares
    ]  # fmt: skip


def _share(word: str) -> float:
    try:
        share = float(word)
    except ValueError:
        share = -1.0
    if not 0.0 < share < 1.0:
        raise ConfigurationError(
            f'--rows "{word}": expected a number between 0 and 1, as 0.2,0.4,0.5'
        )
    return share


def _draw(share: float, seed: int, rule: "EstimateRule | None") -> "Workload":
    from outrider.simulation.generators.grids import perez_grid

    return _estimated(perez_grid(share, seed), rule, seed)


def _of_trace(
    path: Path, behaviour: str | None, read: Any, until_s: float | None, format_name: str
) -> "Demonstration":
    from outrider_lab.training import (
        JournalDemonstration,
        LogsDemonstration,
        WorkloadDemonstration,
    )

    if ".swf" in path.suffixes:
        return WorkloadDemonstration(partial(read, path), str(path), behaviour or "edf", until_s)
    if behaviour not in (None, _RECORDED):
        raise ConfigurationError(
            f"--behaviour {behaviour}: {path} records its own scheduler's decisions; expected "
            "recorded, or a workload file (.swf)"
        )
    if until_s is not None:
        raise ConfigurationError(f"--until: {path} is no workload file (.swf)")
    with path.open("rb") as file:
        is_journal = file.read(len(_SQLITE)) == _SQLITE
    if is_journal:
        return JournalDemonstration(path)
    from outrider.replay.log_files import LogFile

    return LogsDemonstration([LogFile(path, format_name)])


def _read(
    path: Path, *, machines: int | None, class_by: "ClassRule | None", vo: str,
    rule: "EstimateRule | None", seed: int,
) -> "Workload":  # fmt: skip
    from outrider.formats.swf.reading import read_swf

    workload = read_swf(path, machines=machines, class_by=class_by, vo=vo)
    return _estimated(workload, rule, seed)


def _estimated(workload: "Workload", rule: "EstimateRule | None", seed: int) -> "Workload":
    from outrider.simulation.estimates import default_rule, estimated

    return estimated(workload, default_rule(workload) if rule is None else rule, seed)
