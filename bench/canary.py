"""Coverage of a canary's outcome by the twin's stated interval, over many seeds.

Each seed is a separate generated campus. A daemon watches it in shadow for some weeks. The twin
evaluates that journal, as `outrider run-twin` does. Then `survival` acts through the adapter's
lever in a trial by days, which is registered with the twin's statement. The output by seed and
measure: the stated interval, the outcome with its interval, whether the estimate is within the
stated interval, whether the two agree, and the truth. The truth comes from replays of the trial's
days under each policy alone, from the beginning of the campus. Wide intervals show how little a
canary of this length can determine.

    python bench/canary.py [--seeds 10] [--first 1] [--machines 150] [--past 8] [--days 28]
        [--longest-deferral 4] [--json]

Deferrals are limited as in `[acting]`, in the trial, in the twin and in the truth.
`--longest-deferral` is in hours.

It takes some minutes per seed. There is no budget: it is for docs/acting.md.
"""

import argparse
import datetime as dt
import json
import logging
import tempfile
import time
from collections.abc import Callable
from math import ceil, exp
from pathlib import Path
from typing import Any, Final

import numpy as np
import structlog
from options import parsed

from outrider.api.policy import Policy
from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import write_campus
from outrider.plugins.finding import make_policy
from outrider.service.canary_trial.trial import MEASURES
from outrider.service.demo.simulated_journal import run_canary
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.measures import Stretch, capped_mean_s
from outrider.twin.replicates import simulate
from outrider.twin.twin_site import Pending, TwinSite

WEEK_S: Final = 7 * 86_400.0
INCUMBENT: Final = "random_match"
POLICY: Final = "survival"
TRUTHS: Final = 3
"""Replays with other seeds; their mean is the truth."""
FIGURES: Final[dict[str, Callable[[Stretch], float]]] = {
    "energy_ratio": lambda s: s.energy_j / s.goodput_s,
    "badput_ratio": lambda s: s.badput_s / s.goodput_s,
    "evictions_ratio": lambda s: s.evictions / (s.end.completed - s.begin.completed),
    "overhead_capped_mean_ratio": capped_mean_s,
}
"""Figures of the days of a trial, as the trial computes them."""


def make(name: str, seed: int) -> Policy:
    """Return a policy with default settings."""
    return make_policy(name, {}, seed, "bench")


def stretch(
    campus: Campus, policy: str, seed: int, window_s: tuple[float, float], longest_s: float
) -> Stretch:
    """Return the window of a replay under one policy alone."""
    site = TwinSite(campus, Pending([]), "first_fit", 0.0)

    def until(end_s: float) -> Any:
        back = None if policy == INCUMBENT else HandBack(longest_s, make(INCUMBENT, seed))
        return simulate(site, campus, make(policy, seed), end_s, back)

    before, after = map(until, window_s)
    return Stretch(before.total, after.total, after.overhead_s[before.total.completed :])


def truth(campus: Campus, window_s: tuple[float, float], longest_s: float) -> dict[str, float]:
    """Return the true ratios in the days of the trial: the policy alone / the incumbent."""
    logs: dict[str, list[float]] = {name: [] for name in FIGURES}
    for seed in range(1, TRUTHS + 1):
        of_policy, of_incumbent = (
            stretch(campus, policy, seed, window_s, longest_s) for policy in (POLICY, INCUMBENT)
        )
        for name, figure in FIGURES.items():
            logs[name].append(float(np.log(figure(of_policy) / figure(of_incumbent))))
    return {name: exp(float(np.mean(values))) for name, values in logs.items()}


def run(seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Return the stated interval, the trial's outcome and the truth for one campus."""
    past_s, began = given.past * WEEK_S, time.monotonic()
    weeks, longest_s = given.past + given.days / 7 + 0.5, given.longest_deferral * 3_600.0
    campus = generate_campus(
        seed, weeks=weeks, machines=given.machines, clusters=4, start=dt.date(2010, 2, 1),
        jobs=ceil(given.jobs_per_day * 7 * weeks),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_campus(campus, Path(folder) / "campus")
        found = run_canary(
            Path(folder) / "campus", Path(folder) / "state", POLICY, past_s=past_s,
            days=given.days, seed=seed, acting={"longest_deferral_s": longest_s},
            twin={"replicates": given.replicates, "next_weeks": given.days / 7},
        )  # fmt: skip
    if found is None or found.outcome is None:
        raise RuntimeError(f"seed {seed}: the trial has not ended")
    midnight_s = past_s + 86_400.0 - past_s % 86_400.0
    true = truth(campus, (midnight_s, midnight_s + given.days * 86_400.0), longest_s)
    return {
        "seed": seed,
        "jobs": len(campus.job_names),
        "pairs": found.outcome.pairs,
        "stated_as": found.trial.stated_as,
        "measures": {
            name: {
                "stated": one.stated, "estimate": one.estimate, "low": one.low, "high": one.high,
                "within": one.within, "agrees": one.agrees, "true": true.get(name),
            }
            for name, one in found.outcome.measures.items()
        },
        "s": time.monotonic() - began,
    }  # fmt: skip


def line(row: dict[str, Any], name: str) -> str:
    """Return one measure of one seed as a line."""
    one = row["measures"][name]
    if one["estimate"] is None:
        return f"{row['seed']:>4}  {name:<27} {row['pairs']} pairs: not known"
    stated, true = one["stated"], one["true"]
    shown = "nothing stated"
    if stated is not None:
        shown = f"{stated['estimate']:.3f} ({stated['low']:.3f}-{stated['high']:.3f})"
    return (
        f"{row['seed']:>4}  {name:<27} {row['stated_as']:<4} {shown:<22} {one['estimate']:.3f} "
        f"({one['low']:.3f}-{one['high']:.3f})  within {one['within']!s:<5} agrees "
        f"{one['agrees']!s:<5} true {'-' if true is None else format(true, '.3f')}"
    )


def main() -> None:
    """Print a line for each seed and measure, and the coverage."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    parser = argparse.ArgumentParser(description="Canary outcomes vs. the twin's stated intervals.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--machines", type=int, default=150)
    parser.add_argument("--past", type=float, default=8.0, help="weeks in shadow")
    parser.add_argument("--days", type=int, default=28, help="of the trial")
    parser.add_argument("--jobs-per-day", type=float, default=350.0)
    parser.add_argument("--longest-deferral", type=float, default=4.0, help="hours")
    parser.add_argument("--replicates", type=int, default=5)
    given = parsed(parser, seeds=1, machines=20, past=2.0, days=14, jobs_per_day=20.0, replicates=2)
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(run(seed, given))
        if not given.json:
            print("\n".join(line(rows[-1], measure.name) for measure in MEASURES), flush=True)
    if given.json:
        print(json.dumps({"results": rows}, indent=2))
        return
    for measure in MEASURES:
        judged = [row["measures"][measure.name] for row in rows]
        known = [one for one in judged if one["within"] is not None]
        true = [one for one in judged if one["estimate"] is not None and one["true"] is not None]
        covered = sum(one["low"] <= one["true"] <= one["high"] for one in true)
        stated = [one for one in true if one["stated"] is not None]
        foreseen = sum(
            one["stated"]["low"] <= one["true"] <= one["stated"]["high"] for one in stated
        )
        print(
            f"{measure.name}: within {sum(one['within'] for one in known)}, agrees "
            f"{sum(one['agrees'] for one in known)} of {len(known)}; the outcome's interval "
            f"contains the truth in {covered} of {len(true)}, the stated one in {foreseen} of "
            f"{len(stated)}"
        )


if __name__ == "__main__":
    main()
