"""Execution of many runs: known ones are read from a file, failures are reported and skipped."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from outrider import __version__
from outrider.replay.run import free_ended_runs
from outrider_lab.running.resume_file import ResumeFile
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.workers import Finished, side_by_side

Workers = Callable[[Sequence[RunSpec]], Iterator[Finished]]
"""Does `execute_run` on every spec and yields each as it ends; the order is its own."""


class RunEnd(NamedTuple):
    """End of a run, with its result or error.

    Attributes:
        spec: of the run.
        result: plain data; None if it failed.
        error: what went wrong, in words; None if nothing did.
        attempts: how often it was tried, this time included.
    """

    spec: RunSpec
    result: Any
    error: str | None
    attempts: int


class Progress(Protocol):
    """Interface of the display of progress of many runs."""

    def begin(self, runs: int, kept: int) -> None:
        """Begin with a number of runs, some of which were known before."""
        ...

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """Count the end of a run; a failure before its last attempt is tried again."""
        ...


def local_workers(processes: int) -> Workers:
    """Return workers: processes on this machine, each with one trace while it can.

    Args:
        processes: at least 1.
    """
    return lambda specs: side_by_side(specs, execute_run, processes, lambda spec: spec.trace)


def run_all(
    specs: Sequence[RunSpec],
    workers: int | Workers,
    resume: ResumeFile | None = None,
    progress: Progress | None = None,
    retries: int = 0,
) -> list[RunEnd]:
    """Execute every spec that the file does not contain.

    Args:
        specs: each once.
        workers: processes on this machine, or a dask client.
        resume: open; what it knows is not run again, and what ends well is kept there.
        progress: receives the end of every run.
        retries: how often a failed run is tried again, after all others.

    Returns:
        how each ended, in the order of the specs.

    Raises:
        ConfigurationError: the file holds runs that are none of these, or of another version.
    """
    ends: list[RunEnd | None] = [None] * len(specs)
    keys = [spec.key for spec in specs]
    known = {} if resume is None else resume.known(dict(zip(keys, specs, strict=True)))
    for number, key in enumerate(keys):
        if key in known:
            ends[number] = RunEnd(specs[number], known[key].result, None, known[key].attempts)
    if progress is not None:
        progress.begin(len(specs), len(known))
    work = local_workers(workers) if isinstance(workers, int) else workers
    left = [number for number, end in enumerate(ends) if end is None]
    for attempt in range(1, retries + 2):
        if not left:
            break
        trying, left = left, []
        for finished in work([specs[number] for number in trying]):
            number = trying[finished.number]
            end = ends[number] = _end_of(specs[number], finished, attempt)
            if end.error is None and resume is not None:
                resume.add(keys[number], end.spec, attempt, finished.result.text)
            if end.error is not None:
                left.append(number)
            if progress is not None:
                progress.ended(end, end.error is None or attempt > retries)
    return [end for end in ends if end is not None]


def _end_of(spec: RunSpec, finished: Finished, attempt: int) -> RunEnd:
    if finished.error is not None:
        return RunEnd(spec, None, finished.error, attempt)
    output: RunOutput = finished.result
    if output.version != __version__:
        error = f"its worker has Outrider {output.version}; this is {__version__}"
        return RunEnd(spec, None, error, attempt)
    return RunEnd(spec, json.loads(output.text), None, attempt)


# -- carrying out ----------------------------------------------------------------------------------
# Carrying out one run, wherever this is called: the one function that workers do.


class RunOutput(NamedTuple):
    """Output of a run.

    Attributes:
        version: of the Outrider that ran it.
        text: the result as JSON; with ``NaN`` and ``Infinity``, as Python's own `json` has them.
    """

    version: str
    text: str


def execute_run(spec: RunSpec) -> RunOutput:
    """Run a spec in this process.

    The result goes as text even to who asked: what is read back from a file of finished runs is
    then what a run that has just ended brings, to the last type and digit.

    Raises:
        OutriderError: the trace or the policy cannot be made, or the policy failed.
        TypeError: the result is no plain data.
    """
    module, _, name = spec.work.partition(":")
    free_ended_runs()
    result = getattr(import_module(module), name)(spec)
    return RunOutput(__version__, json.dumps(result, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return msgspec.to_builtins(value)


# -- study -----------------------------------------------------------------------------------------
# A study: which runs answer a question, and what is made of what they brought.
#
# Papers' reproductions, comparisons and the drift suite are studies; `run_study` is the loop that
# they have in common.

Row = TypeVar("Row", bound=Hashable)
"""Common part of runs that differ only in their seed: the subject of a row of the output."""
Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class Study(Protocol[Row]):
    """A question that many runs answer."""

    def points(self) -> list[tuple[Row, int]]:
        """Return every row with every seed, in the order in which the runs begin."""
        ...

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """Return the run of a row with a seed."""
        ...

    def sum_up(self, results: Mapping[Row, Mapping[int, Any]]) -> dict[str, Any]:
        """Summarise the results of runs that did not fail, by row and seed."""
        ...


def specs_of(study: Study[Row]) -> list[RunSpec]:
    """Return the runs of a study, in the order of its points."""
    return [study.spec_of(row, seed) for row, seed in study.points()]


def check_policies(study: Study[Row]) -> None:
    """Make each policy once, to refuse what is wrong before a long run, not after it.

    Raises:
        ConfigurationError, PluginError: a policy is not installed, or a setting is wrong.
    """
    for spec in {str(spec.policy): spec for spec in specs_of(study)}.values():
        spec.make_policy()


def run_study(
    study: Study[Row],
    workers: int | Workers,
    resume: ResumeFile | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Execute the runs of a study, and return its result.

    Args:
        study: its runs.
        workers: processes, or who else does the work.
        resume: open; see `run_all`.
        progress: receives the end of every run.

    Returns:
        what the study made of it, and `failed`: the runs that did, in words, each with its error.
    """
    points = study.points()
    ends = run_all(specs_of(study), workers, resume, progress)
    results: dict[Row, dict[int, Any]] = {}
    for (row, seed), end in zip(points, ends, strict=True):
        if end.error is None:
            results.setdefault(row, {})[seed] = end.result
    in_order = {row: dict(sorted(of_row.items())) for row, of_row in results.items()}
    return study.sum_up(in_order) | {"failed": failures(ends)}


def by_seed(
    results: Mapping[Key, Mapping[int, Found]], seeds: Iterable[int]
) -> dict[int, dict[Key, Found]]:
    """Return, for each seed, the result of every row that did not fail."""
    return {
        seed: {row: of_row[seed] for row, of_row in results.items() if seed in of_row}
        for seed in seeds
    }


def failures(ends: list[RunEnd]) -> list[dict[str, str]]:
    """Return the runs that failed, in words, each with its error."""
    failed = [{"run": str(end.spec), "error": end.error} for end in ends if end.error is not None]
    return sorted(failed, key=lambda failure: failure["run"])
