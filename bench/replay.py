"""Replay speed of a campus under each policy, in events per second and as a ratio.

    python bench/replay.py [FOLDER] [--weeks 4] [--machines 400] [--policy NAME ...]
        [--small] [--json]

Without a folder a campus is generated. The ratio is the seconds per million events / the seconds of
a fixed calibration loop in the same process, so it does not depend on the machine.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibration import calibration_s
from options import parsed

from outrider.api import Policy, PolicySettings
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus
from outrider.model.decisions import Decision
from outrider.plugins.finding import stream
from outrider.replay.run import CampusRun
from outrider.simulation.generators.campus import generate_campus
from outrider_policies.bandits.bandit import Bandit, BanditSettings
from outrider_policies.rules.placements import Fifo, LowestWatts, RandomMatch
from outrider_policies.survival import Survival, SurvivalSettings

MAKERS: dict[str, Callable[[int], Policy]] = {
    "fifo": lambda seed: Fifo(PolicySettings(), stream(seed, "policy:fifo")),
    "random_match": lambda seed: RandomMatch(PolicySettings(), stream(seed, "policy:random_match")),
    "lowest_watts": lambda seed: LowestWatts(PolicySettings(), stream(seed, "policy:lowest_watts")),
    "bandit": lambda seed: Bandit(BanditSettings(), stream(seed, "policy:bandit")),
    "survival": lambda seed: Survival(SurvivalSettings(), stream(seed, "policy:survival")),
}


def measure(campus: Campus, name: str, seed: int, unit_s: float) -> dict[str, Any]:
    """Measure one replay without scores, as in ``outrider replay`` without ``--ledger``."""
    policy = MAKERS[name](seed)
    policy.wants_scores = False
    rows = 0

    def count(decision: Decision) -> None:
        nonlocal rows
        rows += 1

    out = CampusRun(campus, [policy], count).run()
    return {
        "policy": name,
        "events": out["events"],
        "decisions": rows,
        "starts": out["starts"],
        "wall_s": round(out["wall_s"], 2),
        "cpu_s": round(out["cpu_s"], 2),
        "events_per_s": round(out["events"] / out["cpu_s"]),
        "calibrations_per_million": round(out["cpu_s"] / unit_s / out["events"] * 1e6, 1),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="a campus; default: generate one")
    parser.add_argument("--weeks", type=float, default=4.0)
    parser.add_argument("--machines", type=int, default=400)
    parser.add_argument("--policy", action="append", choices=sorted(MAKERS))
    parser.add_argument("--seed", type=int, default=1)
    given = parsed(parser, weeks=0.2, machines=20)
    start_s = time.process_time()
    if given.folder is None:
        clusters = max(1, given.machines // 37)
        campus = generate_campus(
            given.seed, weeks=given.weeks, machines=given.machines, clusters=clusters
        )
    else:
        campus = read_campus(given.folder)
    made_s = time.process_time() - start_s
    unit_s = calibration_s()
    print(f"{campus.name}: ready in {made_s:.1f} CPU-seconds", file=sys.stderr)
    runs = [measure(campus, name, given.seed, unit_s) for name in given.policy or MAKERS]
    result = {
        "campus": campus.name,
        "machines": len(campus.machine_names),
        "owner_sessions": len(campus.login_s),
        "jobs": len(campus.job_names),
        "made_cpu_s": round(made_s, 2),
        "calibration_s": round(unit_s, 4),
        "runs": runs,
    }
    if given.json:
        print(json.dumps(result))
        return
    for run in runs:
        print("  ".join(f"{name} {value}" for name, value in run.items()))


if __name__ == "__main__":
    main()
