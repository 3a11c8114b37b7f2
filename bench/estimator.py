"""Cost and accuracy of run time estimators, compared with scikit-learn's gradient boosting.

Each runs through a trace as in `outrider estimate`: it estimates at submission and learns at the
end. ``boosting`` is the usual alternative: three quantile models on the logarithm of the run time,
fitted again every 2,000 ends to the last 20,000 jobs, from request, CPUs, hour, day, the last two
and mean run times of the user and those of identical jobs. It predicts all jobs of a fit in one
call; single calls would cost milliseconds each. Losses are sums of the pinball losses of the three
quantiles, in log seconds, over the jobs for which all estimators have an estimate.

    OMP_NUM_THREADS=1 python bench/estimator.py [TRACE.swf.gz ...] [--first 60000]
        [--small] [--json]

Without a trace a generated workload is used, which shows costs; its losses do not apply to a site.
"""

import argparse
import dataclasses
import json
import random
import time
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from calibration import calibration_s
from options import parsed

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.simulation.generators.grids import perez_grid
from outrider_lab.estimates import QUANTILES, collect_estimates, pinball
from outrider_policies.estimators import LastTwoRunTimes, LearnedRunTimes, UserRunTimes
from outrider_policies.estimators.learned import LearnedSettings

EVERY, WINDOW, FIRST_FIT = 2000, 20_000, 500
NAN = float("nan")


class Boosting(RunTimeEstimator):
    """Gradient boosting estimator that records its inputs and predicts them in batches."""

    def __init__(self, jobs: int) -> None:
        super().__init__(PolicySettings(), random.Random(1))
        self.predictions = np.full((jobs, 3), NAN)
        self._models: list[Any] = []
        self._rows = np.full((jobs, 9), NAN)
        self._asked = 0
        self._answered = 0
        self._done: list[tuple[int, float]] = []
        self._last: dict[Any, tuple[float, float]] = {}
        self._mean: dict[str, float] = {}

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        like = (spec.user, spec.estimate_s, spec.cpus)
        self._rows[self._asked] = (
            log(spec.estimate_s) if spec.estimate_s else -1.0, spec.cpus, now % 86_400 / 3600,
            now % 604_800 / 86_400, *self._last.get(spec.user, (NAN, NAN)),
            *self._last.get(like, (NAN, NAN)), self._mean.get(spec.user, NAN),
        )  # fmt: skip
        self._asked += 1
        return None

    def learn(self, job: Job, run_s: float, now: float) -> None:
        y, spec = log(max(run_s, 1.0)), job.spec
        self._done.append((job.number, y))
        for key in (spec.user, (spec.user, spec.estimate_s, spec.cpus)):
            self._last[key] = (y, self._last.get(key, (NAN, NAN))[0])
        self._mean[spec.user] = 0.9 * self._mean.get(spec.user, y) + 0.1 * y
        if len(self._done) >= FIRST_FIT and (len(self._done) - FIRST_FIT) % EVERY == 0:
            self.answer()
            self._fit()

    def answer(self) -> None:
        """Predict the jobs submitted since the current models were fitted."""
        asked = slice(self._answered, self._asked)
        if self._models and self._asked > self._answered:
            predicted = np.stack(
                [model.predict(self._rows[asked]) for model in self._models], axis=1
            )
            self.predictions[asked] = np.exp(np.sort(predicted, axis=1))
        self._answered = self._asked

    def _fit(self) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        numbers, y = zip(*self._done[-WINDOW:], strict=True)
        rows = self._rows[list(numbers)]
        self._models = [
            HistGradientBoostingRegressor(
                loss="quantile", quantile=level, max_iter=60, early_stopping=False
            ).fit(rows, y)
            for level in QUANTILES
        ]


def first(workload: Workload, n: int) -> Workload:
    columns = ("job_names", "submit_s", "run_s", "cpus", "requested_s", "wait_s", "estimate_s",
               "user", "vo", "job_class")  # fmt: skip
    return dataclasses.replace(workload, **{c: getattr(workload, c)[:n] for c in columns})


def unclassed() -> Workload:
    """Return a grid without its classes, which depend on the run times."""
    grid = perez_grid(0.5, 1)
    return dataclasses.replace(grid, job_class=["batch"] * len(grid.job_class))


def measure(workload: Workload) -> dict[str, Any]:
    rng = random.Random(1)
    boosting = Boosting(len(workload.run_s))
    estimators: dict[str, RunTimeEstimator] = {
        "user": UserRunTimes(PolicySettings(), rng),
        "last_two": LastTwoRunTimes(PolicySettings(), rng),
        "learned": LearnedRunTimes(LearnedSettings(), rng),
        "boosting": boosting,
    }
    cpu_s, predicted = {}, {}
    for name, estimator in estimators.items():
        began_s = time.process_time()
        predicted[name] = collect_estimates(workload, {name: estimator}).quantiles[name]
        if name == "boosting":
            boosting.answer()
            predicted[name] = boosting.predictions
        cpu_s[name] = time.process_time() - began_s
    known = [np.isfinite(q).all(axis=1) for q in predicted.values() if np.isfinite(q).any()]
    scored = np.logical_and.reduce(known)
    y = np.log(np.maximum(workload.run_s[scored], 1.0))
    out: dict[str, Any] = {"trace": workload.name, "jobs": len(scored), "scored": int(scored.sum())}
    for name, quantiles in predicted.items():
        if not np.isfinite(quantiles).any():
            out[name] = None
            continue
        q = np.log(np.maximum(quantiles[scored], 1.0))
        out[name] = {
            "log_loss": float(pinball(y, q).mean(axis=0).sum()),
            "coverage": float(((y >= q[:, 0]) & (y <= q[:, 2])).mean()),
            "us_per_job": 1e6 * cpu_s[name] / len(scored),
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost and losses of run time estimators.")
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--first", type=int, default=10**9, help="jobs of each trace")
    given = parsed(parser, first=300)
    makers: list[Callable[[], Workload]] = [partial(read_swf, trace) for trace in given.traces]
    makers = makers or [unclassed]
    results = [measure(first(make(), given.first)) for make in makers]
    calibrated_s = calibration_s()
    if given.json:
        print(json.dumps({"results": results, "calibration_s": calibrated_s}, indent=2))
        return
    for result in results:
        print(f"{result['trace']}: {result['scored']:,} of {result['jobs']:,} jobs")
        for name in ("user", "last_two", "learned", "boosting"):
            one = result[name]
            if one is None:
                print(f"  {name:9s} has no estimates")
                continue
            print(f"  {name:9s} log loss {one['log_loss']:.3f}   coverage {one['coverage']:.1%}"
                  f"   {one['us_per_job']:5.0f} us per job")  # fmt: skip
    print(f"calibration {calibrated_s:.3f} s")


if __name__ == "__main__":
    main()
