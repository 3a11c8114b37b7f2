"""Coverage of the intervals of off-policy checks, on campuses with known truth.

    python bench/off_policy.py [--seeds 16] [--first-seed 301] [--weeks 6] [--machines 120]
        [--bad-jobs 0] [--policies lowest_watts,bandit,survival] [--small] [--json]

Each seed is another campus and the journal of a daemon that watches it, under random_match. The
truth of one step comes from the trace: whether each start would have completed on each free
machine. The output by policy: estimated and refused seeds, 90 % intervals that contain the truth
(DR and SNIPS), those with the wrong sign, their mean half width, and the mean error with its
standard error. Then the number of refused journals whose incumbent is another policy, labelled as
random_match. No budget: this is for docs/twin-off-policy.md.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from outrider.engine.state.site import Site
from outrider.formats.campus.files import write_campus
from outrider.model.localtime import ZoneTime
from outrider.plugins.finding import make_policy
from outrider.service.demo.simulated_journal import write_journal
from outrider.service.host.logs import Mode, set_up_logs
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.off_policy.check import OffPolicyCheck, check_of
from outrider.twin.off_policy.journal import (
    DecisionsOnRecord,
    off_policy_of_journal,
    recorded_starts,
)
from tests.fixtures.one_step import AskedRunner, OneStep

RANDOM: Final = "random_match"
LIARS: Final = ("lowest_watts", "best_fit", "bandit", "fifo", "round_robin")
LEVEL: Final = 0.9


def checked(given: argparse.Namespace, seed: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the check of each policy for a seed, and the truth of one step."""
    campus = generate_campus(
        seed, weeks=given.weeks, machines=given.machines, clusters=6, bad_jobs=given.bad_jobs
    )
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / "journal.sqlite", seed=seed)
    runners = [AskedRunner(make_policy(p, {}, 0, "bench")) for p in given.policies.split(",")]
    site = Site(ZoneTime("UTC"), campus.clusters, campus.reboot_s)
    nothing = DecisionsOnRecord({}, frozenset())
    gathered, counted = recorded_starts(
        folder / "journal.sqlite", site, runners, nothing, random.Random(seed)
    )
    truth, by_policy = OneStep(campus), {}
    for runner in runners:
        table = gathered.table(runner.name)
        asked = OffPolicyCheck(policy=runner.name, incumbent=RANDOM, level=LEVEL)
        pairs = zip(runner.asked, gathered.starts, strict=True)
        changes = [truth.change(one) for one, start in pairs if start.completed is not None]
        by_policy[runner.name] = {
            "check": check_of(asked, table, counted, gathered.left_out(table)).to_json(),
            "truth": float(np.mean(changes)),
        }
    return by_policy


def summed_up(policy: str, of_seeds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row of the table."""
    fit = [by_policy for by_policy in of_seeds if not by_policy["check"]["refused"]]
    row: dict[str, Any] = {"policy": policy, "estimated": len(fit)}
    row["refused"] = len(of_seeds) - len(fit)
    if len(fit) < 2:
        return row
    row["effective_n"] = [round(by_policy["check"]["effective_n"]) for by_policy in fit]
    for name, field in (("dr", "difference"), ("snips", "snips_difference")):
        found = [(by_policy["check"][field], by_policy["truth"]) for by_policy in fit]
        errors = np.array([one["value"] - truth for one, truth in found])
        row[name] = {
            "held": sum(one["low"] <= truth <= one["high"] for one, truth in found),
            "wrong_sign": sum(
                (one["low"] > 0 > truth) or (one["high"] < 0 < truth) for one, truth in found
            ),
            "half_width": float(np.mean([(one["high"] - one["low"]) / 2 for one, _ in found])),
            "error": float(errors.mean()),
            "standard_error": float(errors.std(ddof=1) / len(errors) ** 0.5),
        }
    return row


def found_out(given: argparse.Namespace, seed: int, folder: Path) -> dict[str, bool]:
    """Return True per incumbent if the check of counts refuses it as a random policy."""
    campus = generate_campus(seed, weeks=given.weeks / 2, machines=80, clusters=5, bad_jobs=0)
    write_campus(campus, folder / "campus")
    refused = {}
    for incumbent in (RANDOM, *LIARS):
        journal = folder / f"{incumbent}.sqlite"
        write_journal(folder / "campus", journal, incumbent=incumbent, seed=seed)
        counted = off_policy_of_journal(journal, [RANDOM], (), RANDOM)[RANDOM].propensities
        refused[incumbent] = counted is not None and bool(counted.failures())
    return refused


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description="Coverage of off-policy intervals.")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=301)
    parser.add_argument("--weeks", type=float, default=6.0)
    parser.add_argument("--machines", type=int, default=120)
    parser.add_argument("--bad-jobs", type=int, default=0)
    parser.add_argument("--policies", default="lowest_watts,bandit,thompson,survival,best_fit")
    given = parsed(parser, seeds=1, weeks=1.0, machines=20, policies="lowest_watts,bandit")
    set_up_logs(Mode("observe"), level="warning")
    of_policies: dict[str, list[dict[str, Any]]] = defaultdict(list)
    refused: dict[str, int] = defaultdict(int)
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        with tempfile.TemporaryDirectory() as name:
            for policy, result in checked(given, seed, Path(name)).items():
                of_policies[policy].append(result)
        with tempfile.TemporaryDirectory() as name:
            for incumbent, is_refused in found_out(given, seed, Path(name)).items():
                refused[incumbent] += is_refused
    rows = [summed_up(policy, result) for policy, result in of_policies.items()]
    if given.json:
        print(json.dumps({"results": rows, "claims_refused": refused}, indent=2))
        return
    print(f"{'policy':<14} estimated refused | held  sign  half width  error | held  (SNIPS)")
    for row in rows:
        if "dr" not in row:
            print(f"{row['policy']:<14} {row['estimated']:>9} {row['refused']:>7} |")
            continue
        dr, snips = row["dr"], row["snips"]
        print(
            f"{row['policy']:<14} {row['estimated']:>9} {row['refused']:>7} | {dr['held']:>4} "
            f"{dr['wrong_sign']:>5}  {dr['half_width']:>10.4f}  {dr['error']:+.4f} +- "
            f"{dr['standard_error']:.4f} | {snips['held']:>4}"
        )
    print(f"labelled as {RANDOM} and refused, of {given.seeds}: {dict(refused)}")


if __name__ == "__main__":
    main()
