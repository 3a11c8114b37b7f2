"""Start time forecasts over a log for ``outrider forecast``: answers and their scores."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.cli.printing import echo, print_table, shown
from outrider.cli.traces import check_traces
from outrider.forecast.expected_starts import KNOWN_DISCIPLINES
from outrider.forecast.forecasts import Forecasts, forecasts
from outrider.forecast.questions import Questions
from outrider.forecast.running import HAS_COMPILER
from outrider.forecast.scores import scores
from outrider.forecast.walk import recorded_log, simulated_log, walk
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError, TraceError, nearest
from outrider.model.modes import Discipline
from outrider.model.printable import csv_cell
from outrider.model.quantities import count, figure, percent
from outrider.replay.workload_terms import WorkloadTerms
from outrider.simulation.estimates import (
    LEARNED,
    EstimateRule,
    default_rule,
    estimate_rule,
    estimated,
    oracle_used,
)

_COLUMNS: Final = ("job", "asked_s", "low_s", "median_s", "high_s")
_DIGITS: Final = 1  # of a second


class Asked(NamedTuple):
    """Arguments of ``outrider forecast``.

    Attributes:
        trace: a workload file.
        machines: CPUs, in place of the header's.
        discipline: the scheduling rule that is simulated forward.
        estimates: rule of `outrider.simulation.estimates`; None: its default.
        recorded: True to forecast the recorded starts, not those of a replay under the rule.
        train_ratio: fraction of the jobs, the first ones, used for learning only.
        replicates: simulations per answer.
        seed: random seed of the replicates, and of random estimates.
        out: the file of answers.
    """

    trace: Path
    machines: int | None
    discipline: Discipline
    estimates: str | None
    recorded: bool
    train_ratio: float
    replicates: int
    seed: int
    out: Path


def check_asked(asked: Asked) -> None:
    """Check the arguments before a long run.

    Raises:
        TraceError: there is no such file, or it is a campus.
        ConfigurationError: the discipline, the estimates or the file of answers cannot be used.
    """
    check_traces([asked.trace], [], WorkloadTerms())
    if asked.trace.is_dir():
        raise TraceError(
            f"{shown(asked.trace)}: a campus; expected a workload file (.swf, .swf.gz)"
        )
    if asked.discipline not in KNOWN_DISCIPLINES:
        right = nearest(asked.discipline, KNOWN_DISCIPLINES)
        raise ConfigurationError(
            f"--discipline {asked.discipline}: starts cannot be forecast under it; {right}"
        )
    if asked.estimates is not None and estimate_rule(asked.estimates).kind == LEARNED:
        raise ConfigurationError(
            f"--estimates {LEARNED}: starts cannot be forecast from learned estimates; expected "
            "requested, exact or lognormal:SIGMA"
        )
    if not asked.out.parent.is_dir():
        raise ConfigurationError(f"--out {shown(asked.out)}: there is no such folder")


def forecast(asked: Asked, progress: Callable[[float], None] | None) -> dict[str, Any]:
    """Forecast the starts of a log's jobs, write the answers, and score them.

    Args:
        asked: arguments that `check_asked` accepted.
        progress: called periodically with the fraction of the log that has been processed.

    Raises:
        TraceError: the file cannot be read, or contains no waits although they were requested.
    """
    workload = read_swf(asked.trace, machines=asked.machines)
    rule = default_rule(workload) if asked.estimates is None else estimate_rule(asked.estimates)
    workload = estimated(workload, rule, asked.seed)
    log = recorded_log(workload) if asked.recorded else simulated_log(workload, asked.discipline)
    rng = np.random.default_rng(asked.seed)
    questions = walk(log, asked.discipline, asked.replicates, rng, progress)
    answers = forecasts(questions, log.total_cpus)
    judged = questions.job >= int(asked.train_ratio * len(log))
    _write(asked.out, _rows(workload, questions, answers, judged))
    return _described(asked, workload, rule) | {
        "refused": None if judged.any() else "no job had to wait: there is nothing to forecast",
        "questions": int(judged.sum()),
        "unknown": int((judged & ~answers.known).sum()),
        "scores": scores(questions, answers, judged),
        "out": shown(asked.out),
    }


def _described(asked: Asked, workload: Workload, rule: EstimateRule) -> dict[str, Any]:
    return {
        "trace": shown(asked.trace),
        "cpus": sum(machine.cpus for machine in workload.machines),
        "discipline": asked.discipline,
        "starts": "recorded" if asked.recorded else "replayed",
        "estimates": rule.word,
        "truth": oracle_used(workload.class_source, rule.word),
        "train_ratio": asked.train_ratio,
        "replicates": asked.replicates,
        "seed": asked.seed,
        "compiled": HAS_COMPILER,
        "jobs": {"submitted": len(workload.submit_s), "skipped": dict(workload.skipped)},
    }


def _rows(
    workload: Workload, questions: Questions, answers: Forecasts, judged: NDArray[np.bool_]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the file, in the order of the questions."""
    starts_s = questions.asked_s[:, None] + answers.wait_s
    (rows,) = judged.nonzero()
    for row in rows.tolist():
        answer: tuple[object, ...] = ("", "", "")
        asked_s = float(questions.asked_s[row])
        if answers.known[row]:
            answer = tuple(max(asked_s, round(at_s, _DIGITS)) for at_s in starts_s[row].tolist())
        yield (workload.job_names[int(questions.job[row])], asked_s, *answer)


def _write(path: Path, rows: Iterator[tuple[object, ...]]) -> None:
    """Write the file atomically: whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(map(csv_cell, row) for row in rows)
    part.replace(path)


def show_forecast(result: dict[str, Any]) -> None:
    """Print the result of `forecast` for people."""
    if result["refused"]:
        echo(result["refused"])
        return
    when = {"submission": "at submission", "hourly": "at full hours"}
    of = [result["scores"][kind] for kind in when]
    rows = [
        ["questions", *(count(one["questions"]) for one in of)],
        ["not known", *(count(one["unknown"]) for one in of)],
        ["answered by the learned model", *(count(one["learned"]) for one in of)],
        ["within the 80 % interval", *(percent(one["coverage_ratio"]) for one in of)],
        ["... in a bad week (p10)", *(percent(one["coverage_p10_of_weeks_ratio"]) for one in of)],
        ["mean width [min]", *(figure(one["width_s"], 60.0) for one in of)],
        ["width, of recent waits'", *(percent(one["width_ratio"]) for one in of)],
        ["pinball loss, of recent waits'", *(percent(one["pinball_ratio"]) for one in of)],
    ]
    title = f"{result['trace']}: {result['starts']} starts, {result['discipline']}"
    print_table(title, ["", *when.values()], rows)
    echo(f"answers: {result['out']}")
