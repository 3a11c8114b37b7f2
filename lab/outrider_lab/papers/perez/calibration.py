"""Calibrated by the site's own past: trained on the first half of a trace, judged on the second.

The idea of the paper's conclusion, which it did not build: "the RL is calibrated off-line by using
the results of a real scheduler". What it brings is seen against the start that is shipped, which
knows synthetic grids only.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np

from outrider.formats.workload import Floats, Workload
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import RECORDED, GridRun
from outrider_lab.comparison.difference import Differences, Stretches
from outrider_lab.papers.perez.figures import FirstStarts
from outrider_lab.papers.perez.grid import Situation, Size
from outrider_lab.papers.perez.grid_run import arrivals, trace_of
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import WorkloadFile
from outrider_lab.training import Learner, Training, WorkloadDemonstration, train, write_start

_WORK: Final = f"{__name__}:run_calibration"
_COLUMNS: Final = ("job_names", "submit_s", "run_s", "cpus", "requested_s", "wait_s", "estimate_s",
                   "user", "vo", "job_class")  # fmt: skip
_SHORTEST_RUN_S: Final = 10.0
_BASELINES: Final = ("fifo", "sjf", "edf")
_POLICY_SEEDS: Final = range(2)
_RESAMPLING_SEED: Final = 0


def spec_of(situation: Situation, size: Size, seed: int) -> RunSpec:
    """Return the calibration of sarsa on a window: its first half calibrates, its second judges."""
    options = (("calibration", True), ("estimates", situation.estimates))
    trace = trace_of(situation, size, seed)
    return RunSpec(_WORK, trace, PolicySpec("sarsa"), seed, options)


class Outcome(NamedTuple):
    """Outcome of each job of the second half under one policy; means over the policy's seeds."""

    wait_s: Floats
    slowdown: Floats


def run_calibration(spec: RunSpec) -> dict[str, Any]:
    """Calibrate on one window, in this process.

    Returns:
        ``trace``, ``seed``, ``behaviour_policy`` (whose decisions are watched), ``jobs`` (of the
        second half) and the ``rows`` of `compare`.

    Raises:
        OutriderError: the trace cannot be read, or the policy failed or learned nothing.
    """
    workload = arrivals(spec)
    behaviour = behaviour_policy_of(workload)
    with TemporaryDirectory() as folder:
        learner = Learner(spec.policy.policy)
        rows = compare(learner, workload, Path(folder), _POLICY_SEEDS, behaviour)
    return {
        "trace": spec.trace.name if isinstance(spec.trace, WorkloadFile) else None,
        "seed": spec.seed,
        "behaviour_policy": behaviour,
        "jobs": len(halves(workload)[1].submit_s),
        "rows": rows,
    }


def halves(workload: Workload) -> tuple[Workload, Workload]:
    """Return the jobs that came first, and as many that came last."""
    middle = len(workload.submit_s) // 2
    return _part(workload, slice(middle)), _part(workload, slice(middle, None))


def _part(workload: Workload, rows: slice) -> Workload:
    columns = {name: getattr(workload, name)[rows] for name in _COLUMNS}
    return dataclasses.replace(workload, skipped={}, **columns)


def behaviour_policy_of(workload: Workload) -> str:
    """Return the trace's own scheduler if its waits are known, else FIFO, the nearest (II.A)."""
    return "fifo" if np.isnan(workload.wait_s).all() else RECORDED


def calibrate(learner: Learner, workload: Workload, behaviour: str) -> Training:
    """Train on a workload that is in hand. Raises as `outrider_lab.training.train`."""
    return train(learner, [WorkloadDemonstration(lambda: workload, workload.name, behaviour)])


def compare(
    learner: Learner,
    workload: Workload,
    folder: Path,
    seeds: Sequence[int],
    behaviour: str,
) -> list[dict[str, Any]]:
    """Train on the first half, run the second under each start, learning and frozen.

    Args:
        learner: whose policy has the settings ``start`` and ``learn``.
        workload: of one site; its second half is met from an empty queue.
        folder: for the start file.
        seeds: of the policies' chance.
        behaviour: name of a policy, or ``recorded``.

    Returns:
        A row for each policy: `variant`, mean waits of both classes, mean bounded slowdown, and
        `less_shipped`: by how much its mean bounded slowdown differs from that of the shipped
        start that learns, as `Differences.between` says it.
    """
    first, second = halves(workload)
    path = folder / "calibrated.json"
    write_start(calibrate(learner, first, behaviour), path)
    variants: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in _BASELINES}
    for words, start in (("shipped", "shipped"), ("calibrated", str(path)), ("none", "none")):
        for learns in (True, False):
            settings = {**learner.settings, "start": start, "learn": learns}
            how = "" if learns else ", frozen"
            variants[f"{learner.policy}, start {words}{how}"] = (learner.policy, settings)
    found = {}
    for words, (policy, settings) in variants.items():
        runs = [_run(policy, settings, seed, second) for seed in seeds]
        found[words] = Outcome(*(np.mean(part, axis=0) for part in zip(*runs, strict=True)))
    waits, slowdowns = (np.column_stack(part) for part in zip(*found.values(), strict=True))
    stretches = Stretches(second.submit_s, waits)
    differences = Differences(list(found), slowdowns, stretches, _RESAMPLING_SEED)
    interactive = np.array(second.job_class) == "interactive"
    shipped = f"{learner.policy}, start shipped"
    return [
        {
            "variant": words,
            "interactive_wait_s": _mean(one.wait_s[interactive]),
            "batch_wait_s": _mean(one.wait_s[~interactive]),
            "bounded_slowdown": _mean(one.slowdown),
            "less_shipped": differences.between(words, shipped),
        }
        for words, one in found.items()
    ]


def _run(policy: str, settings: dict[str, Any], seed: int, workload: Workload) -> Outcome:
    made = make_policy(policy, settings, seed, f"calibration of {policy}")
    made.wants_scores = False
    starts = FirstStarts(workload)
    GridRun(workload, [made], starts.keep, exact=False).run()
    wait_s = starts.start_s - workload.submit_s
    run_s = workload.run_s
    slowdown = np.maximum(1.0, (wait_s + run_s) / np.maximum(run_s, _SHORTEST_RUN_S))
    return Outcome(wait_s, slowdown)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
