"""Many runs: known ones are taken from a file, failures are named and hold up nobody."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from outrider import __version__
from outrider_lab.running.carrying_out import CarriedOut, carry_out
from outrider_lab.running.resume_file import ResumeFile
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.workers import Finished, side_by_side

Workers = Callable[[Sequence[RunSpec]], Iterator[Finished]]
"""Does `carry_out` on every spec and yields each as it ends; the order is its own."""


class RunEnd(NamedTuple):
    """How a run ended.

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
    """Who is told how far many runs are."""

    def begin(self, runs: int, kept: int) -> None:
        """So many runs there are, of which so many were known before."""
        ...

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """A run ended; if it failed and this was not its last attempt, it is tried again."""
        ...


def local_workers(processes: int) -> Workers:
    """Processes on this machine; each stays with a trace while it can.

    Args:
        processes: at least 1.
    """
    return lambda specs: side_by_side(specs, carry_out, processes, lambda spec: spec.trace)


def run_all(
    specs: Sequence[RunSpec],
    workers: int | Workers,
    resume: ResumeFile | None = None,
    progress: Progress | None = None,
    retries: int = 0,
) -> list[RunEnd]:
    """Carry out every spec that the file does not know.

    Args:
        specs: each once.
        workers: processes on this machine, or who else does the work.
        resume: open; what it knows is not run again, and what ends well is kept there.
        progress: is told of every end.
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
    carried: CarriedOut = finished.result
    if carried.version != __version__:
        error = f"its worker has Outrider {carried.version}; this is {__version__}"
        return RunEnd(spec, None, error, attempt)
    return RunEnd(spec, json.loads(carried.text), None, attempt)
