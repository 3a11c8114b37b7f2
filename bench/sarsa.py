"""Cost of a `sarsa` decision with a thousand waiting jobs, and of a paper's row.

    python bench/sarsa.py [--waiting 1000] [--decisions 3000] [--jobs 6000] [--small] [--json]

A decision includes the choice of the job and of its machine: the state, the values of all waiting
jobs, the guards. The costs of recording the decision and of learning from an outcome are shown
separately. Arrivals at the load of the paper's rows keep the queue's length. Times are CPU times of
the thread, without other work of the machine.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from calibration import calibration_s
from options import parsed

from outrider.formats.workload import Workload
from outrider.plugins.finding import stream
from outrider.replay.grid_run import GridRun
from outrider.simulation.generators.grids import perez_grid
from outrider_policies.sarsa import Sarsa, SarsaSettings

ROW, SEED = 0.5, 20_000
ROW_JOBS = 6_000
BUDGET_MS = 1.0
BUDGET_RUN_S = 10.0


class Clock:
    """Timer of a policy's answers, by method."""

    def __init__(self, policy: Any) -> None:
        self.seconds: dict[str, list[float]] = {}
        for name in ("rank", "choose", "on_dequeue", "observe"):
            self.seconds[name] = []
            setattr(policy, name, self._timed(getattr(policy, name), self.seconds[name]))

    def _timed(self, method: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
        def timed(*given: Any) -> Any:
            began_s = time.thread_time()
            answer = method(*given)
            seconds.append(time.thread_time() - began_s)
            return answer

        return timed

    def percentiles(self) -> Iterator[tuple[str, float, float]]:
        """Yield (what, median, ninety-ninth percentile) in milliseconds."""
        ranks, choices = self.seconds["rank"], self.seconds["choose"]
        decisions = np.array(ranks[: len(choices)]) + np.array(choices[: len(ranks)])
        for name, seconds in (
            ("decision", decisions),
            ("noting it", np.array(self.seconds["on_dequeue"])),
            ("learning from an outcome", np.array(self.seconds["observe"])),
        ):
            p50, p99 = np.percentile(seconds, (50, 99)) * 1e3
            yield name, float(p50), float(p99)


def with_so_many_waiting(waiting: int, decisions: int) -> Workload:
    """Return a row of the paper on top of jobs that are all queued at the beginning.

    There are half as many more: since the short ones start first, the queue shrinks for a while.
    """
    there = waiting * 3 // 2
    work = perez_grid(ROW, SEED, jobs=there + decisions)
    arrives_s = work.submit_s[:decisions].copy()
    work.submit_s[:there] = 0.0
    work.submit_s[there:] = arrives_s
    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=ROW_JOBS, help="of the row")
    given = parsed(parser, waiting=20, decisions=50, jobs=200)

    policy = Sarsa(SarsaSettings(), stream(0, "policy:sarsa"))
    clock = Clock(policy)
    work = with_so_many_waiting(given.waiting, given.decisions)
    run = GridRun(work, [policy], lambda *row: None, until_s=float(work.submit_s[-1]))
    run.run()
    found: dict[str, Any] = {
        f"{what}, ms": {"p50": round(p50, 3), "p99": round(p99, 3)}
        for what, p50, p99 in clock.percentiles()
    }
    found["still waiting"] = len(work.job_names) - len(clock.seconds["choose"])

    alone = Sarsa(SarsaSettings(), stream(0, "policy:sarsa"))
    alone.wants_scores = False
    began_s = time.process_time()
    GridRun(perez_grid(ROW, SEED, jobs=given.jobs), [alone], lambda *row: None).run()
    found["one seed of one row, CPU s"] = round(time.process_time() - began_s, 2)
    found["calibration_s"] = round(calibration_s(), 4)
    found["within budget"] = bool(
        found["decision, ms"]["p99"] < BUDGET_MS
        and found["one seed of one row, CPU s"] < BUDGET_RUN_S
    )
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        shown = (
            "  ".join(f"{k} {v:.3f}" for k, v in value.items())
            if isinstance(value, dict)
            else value
        )
        print(f"{name:32} {shown}")


if __name__ == "__main__":
    main()
