"""Coverage of the twin's intervals, on campuses with known truth, and its speed.

    python bench/twin.py [--seeds 12] [--first-seed 801] [--past 8] [--next 8] [--machines 250]
        [--replicates 20] [--truths 3] [--policies survival,bandit,lowest_watts]
        [--speed] [--small] [--json]

Each seed is another campus (with random size, groups and first day) and the journal of a daemon
that watches it, under random_match, up to the end of the past. The truth comes from replays of the
campus itself. The output: fidelity, and by measure the share of 90 % intervals that contain the
truth, the error below which 95 % of the estimates are (against each of `--truths` replays, any of
which might have happened; and against their mean, without their randomness), the mean of the latter
on the logarithm, half widths, and the share of predicted energy savings that come true. `--speed`
instead times 20 replicates of two policies on 16 weeks of 1,359 machines; the budget is an hour of
one core.
"""

import argparse
import datetime as dt
import json
import sys
import tempfile
import time
from collections import defaultdict
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
from calibration import calibration_s
from options import parsed

from outrider.api.policy import Policy
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import write_campus
from outrider.plugins.finding import make_policy
from outrider.service.demo.simulated_journal import write_journal
from outrider.service.host.logs import Mode, set_up_logs
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.asking import ask_twin
from outrider.twin.measures import MEASURES, Estimate, Stretch, log_ratios, whole
from outrider.twin.replicates import simulate
from outrider.twin.twin_site import Pending, TwinSite

RANDOM: Final = "random_match"
WEEK_S: Final = 7 * 86_400.0
BUDGET_S: Final = 3_600.0


def make(name: str, seed: int) -> Policy:
    """Return a policy with default settings."""
    return make_policy(name, {}, seed, "bench")


def drawn_campus(given: argparse.Namespace, seed: int) -> Campus:
    """Return a campus of this seed that covers the past and the next window."""
    rng = np.random.default_rng(seed)
    machines = int(given.machines * rng.uniform(0.5, 1.5))
    return generate_campus(
        seed, weeks=given.past + given.next, machines=machines,
        clusters=max(2, min(8, machines // 30)),
        start=dt.date(2010, 1, 1) + dt.timedelta(days=int(rng.integers(200))),
    )  # fmt: skip


def truths(campus: Campus, policy: str, given: argparse.Namespace) -> list[tuple[Stretch, Stretch]]:
    """Return the true costs of the past and the next window, one pair per replay."""
    site = TwinSite(campus, Pending([]), "first_fit", 0.0)
    until_s, out = given.past * WEEK_S, []
    for seed in range(given.truths):
        past = simulate(site, campus, make(policy, seed), until_s)
        both = simulate(site, campus, make(policy, seed))
        later_s = both.overhead_s[past.total.completed :]
        out.append((whole(past), Stretch(past.total, both.total, later_s)))
    return out


def of_seed(given: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return the twin's answer for one campus, and the truth."""
    campus = drawn_campus(given, seed)
    with tempfile.TemporaryDirectory() as name:
        write_campus(campus, Path(name) / "campus")
        journal = Path(name) / "journal.sqlite"
        until_s = given.past * WEEK_S
        write_journal(Path(name) / "campus", journal, seed=seed, until_s=until_s)
        policies = given.policies.split(",")
        answer = ask_twin(
            journal, policies, make, replicates=given.replicates, next_weeks=given.next, seed=seed
        )
    true = {policy: truths(campus, policy, given) for policy in (RANDOM, *policies)}
    held: dict[str, list[Any]] = {"past": [], "next": []}
    for which, found in (("past", answer.past), ("next", answer.next or {})):
        for policy, ratios in found.items():
            for measure in MEASURES:
                ours, theirs = (
                    [window[which == "next"] for window in true[name]] for name in (policy, RANDOM)
                )
                ratio = ratios[measure.name]
                if ratio is not None:
                    values = log_ratios(measure, ours, theirs).tolist()
                    held[which].append((policy, measure.name, ratio, values))
    parts = None if answer.fidelity is None else dict(answer.fidelity.parts)
    return {"seed": seed, "refused": answer.refused, "fidelity": parts, **held}


def summed_up(rows: list[tuple[str, str, Estimate, list[float]]]) -> dict[str, dict[str, Any]]:
    """Return coverage, errors, half widths and true savings by measure."""
    by_measure: defaultdict[str, list[tuple[Estimate, float]]] = defaultdict(list)
    means: defaultdict[str, list[float]] = defaultdict(list)
    for _, measure, ratio, values in rows:
        known = [value for value in values if np.isfinite(value)]
        by_measure[measure] += [(ratio, value) for value in known]
        means[measure] += [float(np.mean(known)) - log(ratio.estimate)] if known else []
    out = {}
    for measure, pairs in by_measure.items():
        errors = [abs(np.exp(value) / ratio.estimate - 1.0) for ratio, value in pairs]
        of_means = np.array(means[measure])
        claims = [value < 0.0 for ratio, value in pairs if ratio.high < 1.0]
        out[measure] = {
            "n": len(pairs),
            "held": float(np.mean([log(r.low) <= value <= log(r.high) for r, value in pairs])),
            "error_q95": float(np.quantile(errors, 0.95)),
            "error_of_mean_truth_q95": float(np.quantile(np.abs(np.expm1(of_means)), 0.95)),
            "bias": float(of_means.mean()),
            "half_width_median": float(np.median([r.high / r.estimate - 1.0 for r, _ in pairs])),
            "savings_claimed": len(claims),
            "savings_true": float(np.mean(claims)) if claims else None,
        }
    return out


def coverage(given: argparse.Namespace) -> dict[str, Any]:
    """Return the summary of all seeds."""
    sites = [of_seed(given, given.first_seed + n) for n in range(given.seeds)]
    parts = [site["fidelity"] for site in sites if site["fidelity"]]
    return {
        "sites": len(sites),
        "refused": {site["seed"]: site["refused"] for site in sites if site["refused"]},
        "fidelity": {
            name: sorted(round(part[name], 5) for part in parts if part[name] is not None)
            for name in (parts[0] if parts else ())
        },
        "past": summed_up([row for site in sites for row in site["past"]]),
        "next": summed_up([row for site in sites for row in site["next"]]),
    }


def speed(given: argparse.Namespace) -> dict[str, Any]:
    """Measure a whole answer for the pool of the paper."""
    campus = generate_campus(1, weeks=16, machines=1359, clusters=37)
    with tempfile.TemporaryDirectory() as name:
        write_campus(campus, Path(name) / "campus")
        journal = Path(name) / "journal.sqlite"
        write_journal(Path(name) / "campus", journal)
        loop_s = calibration_s()
        wall, cpu = time.perf_counter(), time.process_time()
        answer = ask_twin(journal, ["survival"], make, replicates=given.replicates, next_weeks=8)
        cpu_s = time.process_time() - cpu
    return {
        "replicates": given.replicates, "refused": answer.refused,
        "wall_s": time.perf_counter() - wall, "cpu_s": cpu_s, "budget_s": BUDGET_S,
        "calibration_s": loop_s, "calibrations": cpu_s / loop_s,
    }  # fmt: skip


def main() -> int:
    """Measure, print, and return 1 if the budget was missed."""
    parser = argparse.ArgumentParser(description="Coverage of the twin's intervals.")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first-seed", type=int, default=801)
    parser.add_argument("--past", type=int, default=8, help="weeks, even")
    parser.add_argument("--next", type=int, default=8, help="weeks, even")
    parser.add_argument("--machines", type=int, default=250)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--truths", type=int, default=3, help="replays with other seeds")
    parser.add_argument("--policies", default="survival,bandit,lowest_watts")
    parser.add_argument("--speed", action="store_true")
    given = parsed(parser, seeds=1, next=2, machines=30, replicates=2, policies="lowest_watts")
    set_up_logs(Mode("observe"), level="warning")
    result = speed(given) if given.speed else coverage(given)
    print(json.dumps(result, indent=2))
    return int(given.speed and result["cpu_s"] > BUDGET_S)


if __name__ == "__main__":
    sys.exit(main())
