"""The twin's answers to corrupted site records with known truth: refused, right or wrong.

    python bench/corruptions.py [--seeds 16] [--first-seed 901] [--past 8] [--machines 80]
        [--replicates 10] [--policies survival,lowest_watts] [--small] [--json]

Each seed is another campus with the journal of a daemon that watches it, under random_match: the
correct one, and one for each corruption of `tests/twin/corruptions.py`. An answer is refused; or
right, if every interval of the past (energy, badput, evictions, mean overhead, whole and up to a
day; each policy) contains the truth; or wrong. The truth is the mean of three replays of the
correct site. The output by corruption: the number of each, reasons of refusals, intervals that
miss, and the share that is refused or right with its 95 % interval (Clopper and Pearson 1934).
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from math import log
from pathlib import Path
from typing import Any, Final

from options import parsed
from scipy.special import betaincinv

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from twin import RANDOM, WEEK_S, drawn_campus, make

from outrider.service.host.logs import Mode, set_up_logs
from outrider.twin.asking import ask_twin
from outrider.twin.measures import MEASURES, Stretch, log_ratios, whole
from outrider.twin.replicates import simulate
from outrider.twin.twin_site import Pending, TwinSite
from tests.twin.corruptions import (
    Corrupted,
    Corruption,
    Right,
    broken_machines,
    late_machines,
    late_negotiation,
    missed_sessions,
)
from tests.twin.sites import journal_of

CORRUPTIONS: Final[dict[str, Corruption]] = {
    "none": lambda right, _: Corrupted(right.journal, right.campus),
    "late_negotiation": late_negotiation,
    "late_machines": late_machines,
    "broken_machines": broken_machines,
    "missed_sessions": missed_sessions,
}
JUDGED: Final = [measure for measure in MEASURES if not measure.name.startswith("overhead_p")]
TRUTHS: Final = 3
_TAIL: Final = 0.025


def truths(corrupted: Corrupted, policy: str, until_s: float) -> list[Stretch]:
    """Return the true costs of the past under a policy, one per replay."""
    site = TwinSite(corrupted.campus, Pending([]), "first_fit", 0.0)
    replays = [
        whole(simulate(site, site.campus, make(policy, 7_000 + seed), until_s))
        for seed in range(TRUTHS)
    ]
    more_s = corrupted.more_overhead_s
    return [replay._replace(overhead_s=replay.overhead_s + more_s) for replay in replays]


def verdict(given: argparse.Namespace, right: Right, corrupt: Corruption) -> dict[str, Any]:
    """Return why the twin refused a journal, or which of its intervals miss the truth."""
    with tempfile.TemporaryDirectory() as name:
        corrupted = corrupt(right, Path(name))
        policies = given.policies.split(",")
        answer = ask_twin(
            corrupted.journal, policies, make, replicates=given.replicates, seed=right.seed
        )
    failed = answer.fidelity.failed if answer.fidelity is not None else []
    if answer.refused is not None:
        return {"refused": ", ".join(failed) or "record"}
    missed, theirs = [], truths(corrupted, RANDOM, right.until_s)
    for policy, ratios in answer.past.items():
        ours = truths(corrupted, policy, right.until_s)
        for measure in JUDGED:
            ratio, value = ratios[measure.name], float(log_ratios(measure, ours, theirs).mean())
            if ratio is not None and not log(ratio.low) <= value <= log(ratio.high):
                off = log(ratio.estimate) - value
                missed.append(f"{policy} {measure.name}: {off:+.3f} on the logarithm")
    return {"missed": missed, "dead_found": len(answer.fitted["dead_machines"])}


def of_seed(given: argparse.Namespace, seed: int) -> dict[str, dict[str, Any]]:
    """Return the verdict on each corruption of one site."""
    campus, until_s = drawn_campus(given, seed), given.past * WEEK_S
    with tempfile.TemporaryDirectory() as name:
        right = Right(campus, journal_of(campus, Path(name), seed, until_s), seed, until_s)
        return {wrong: verdict(given, right, corrupt) for wrong, corrupt in CORRUPTIONS.items()}


def share(good: int, n: int) -> dict[str, Any]:
    """Return a share with its 95 % interval."""
    low = betaincinv(good, n - good + 1, _TAIL) if good else 0.0
    high = betaincinv(good + 1, n - good, 1.0 - _TAIL) if good < n else 1.0
    return {"n": n, "good": good, "share": good / n, "low": float(low), "high": float(high)}


def summed_up(verdicts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of refused, right and wrong answers, with their causes."""
    of = list(verdicts)
    refused = Counter(one["refused"] for one in of if "refused" in one)
    wrong = [one["missed"] for one in of if one.get("missed")]
    return {
        "refused": dict(refused), "right": len(of) - refused.total() - len(wrong), "wrong": wrong,
        "refused_or_right": share(len(of) - len(wrong), len(of)),
    }  # fmt: skip


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description="The twin's answers to corrupted records.")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=901)
    parser.add_argument("--past", type=int, default=8, help="weeks, even")
    parser.add_argument("--machines", type=int, default=80)
    parser.add_argument("--replicates", type=int, default=10)
    parser.add_argument("--policies", default="survival,lowest_watts")
    given = parsed(parser, seeds=1, past=2, machines=20, replicates=2, policies="lowest_watts")
    given.next = 0
    set_up_logs(Mode("observe"), level="warning")
    sites = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        sites.append(of_seed(given, seed))
        if not given.json:
            print(json.dumps({seed: sites[-1]}), file=sys.stderr, flush=True)
    results = {wrong: summed_up(site[wrong] for site in sites) for wrong in CORRUPTIONS}
    corrupted = [one["refused_or_right"] for wrong, one in results.items() if wrong != "none"]
    good = sum(one["good"] for one in corrupted)
    all_of_them = share(good, sum(one["n"] for one in corrupted))
    summary = {"sites": len(sites), "corruptions": results, "refused_or_right": all_of_them}
    print(json.dumps(summary, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
