"""A study: which runs answer a question, and what is made of what they brought.

Papers' reproductions, comparisons and the drift suite are studies; `run_study` is the loop that
they have in common.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from outrider_lab.running.resume_file import ResumeFile
from outrider_lab.running.run_all import Progress, RunEnd, Workers, run_all
from outrider_lab.running.run_spec import RunSpec

Row = TypeVar("Row", bound=Hashable)
"""What runs that differ only in their seed have in common: what a row of the output is about."""

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class Study(Protocol[Row]):
    """A question that many runs answer."""

    def points(self) -> list[tuple[Row, int]]:
        """Every row with every seed, in the order in which the runs begin."""
        ...

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """The run of a row with a seed."""
        ...

    def sum_up(self, results: Mapping[Row, Mapping[int, Any]]) -> dict[str, Any]:
        """What is made of the results of runs that did not fail, by row and seed."""
        ...


def specs_of(study: Study[Row]) -> list[RunSpec]:
    """The runs of a study, in the order of its points."""
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
    """Carry out a study.

    Args:
        study: its runs.
        workers: processes, or who else does the work.
        resume: open; see `run_all`.
        progress: is told of every end.

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
    """For each of the seeds, what every row brought that did not fail."""
    return {
        seed: {row: of_row[seed] for row, of_row in results.items() if seed in of_row}
        for seed in seeds
    }


def failures(ends: list[RunEnd]) -> list[dict[str, str]]:
    """The runs that failed, in words, each with its error."""
    failed = [{"run": str(end.spec), "error": end.error} for end in ends if end.error is not None]
    return sorted(failed, key=lambda failure: failure["run"])
