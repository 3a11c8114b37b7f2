"""Python bytecodes that a replay executes, by function: a profile without noise.

    python bench/bytecodes.py [--policy random_match] [--events 20000] [--skip 300000] [--rows 40]
        [--small] [--json]

The interpreter counts every instruction while a part of a generated campus is replayed. On a shared
machine this shows a gain of one per cent, which no clock does. C code (numpy, heaps, dictionaries)
is not included, so confirm a gain found here with `replay.py`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any

from options import parsed

from outrider.journal import LedgerHash
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun, hashed
from outrider.simulation.generators.campus import generate_campus


class Counted:
    """Counts of instructions and calls, by the name of the function."""

    def __init__(self) -> None:
        self.instructions: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> "Counted":
        """Count one event of the interpreter (`sys.settrace`)."""
        name = frame.f_code.co_qualname
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self.calls[name] += 1
        elif event == "opcode":
            self.instructions[name] += 1
        return self


def a_run(policy_name: str) -> CampusRun:
    """Return a run of half a year of 200 machines that hashes decisions as `replay` does."""
    policy = make_policy(policy_name, {}, 0, "bench")
    policy.wants_scores = False
    campus = generate_campus(7, machines=200, clusters=6, weeks=26.0)
    return CampusRun(campus, [policy], hashed(LedgerHash(), campus))


def measure(
    policy_name: str, events_n: int, skipped_n: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the totals and a row per function, the most costly first, after skipped events."""
    run = a_run(policy_name)
    events: Iterator[Any] = run.simulation.events()
    run.engine.feed(islice(events, skipped_n))
    starts, counted = run.accounting.starts, Counted()
    sys.settrace(counted)
    run.engine.feed(islice(events, events_n))
    sys.settrace(None)
    starts = run.accounting.starts - starts
    total, calls = counted.instructions.total(), counted.calls.total()
    whole = {
        "policy": policy_name,
        "events_per_start": round(events_n / starts, 2),
        "bytecodes_per_event": round(total / events_n, 1),
        "calls_per_event": round(calls / events_n, 2),
        "bytecodes_per_start": round(total / starts, 1),
    }
    rows = [
        {
            "function": name,
            "share": round(n / total, 4),
            "bytecodes_per_start": round(n / starts, 1),
            "calls_per_start": round(counted.calls[name] / starts, 2),
        }
        for name, n in counted.instructions.most_common()
    ]
    return whole, rows


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--policy", default="random_match")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--skip", type=int, default=300_000, help="events before the counted ones")
    given = parsed(parser, events=1_000, skip=5_000)
    whole, rows = measure(given.policy, given.events, given.skip)
    if given.json:
        print(json.dumps(whole | {"functions": rows}))
        return
    print("  ".join(f"{name} {value}" for name, value in whole.items()))
    for row in rows[: given.rows]:
        print(
            f"{row['share']:6.1%} {row['bytecodes_per_start']:8.1f} per start "
            f"{row['calls_per_start']:6.2f} calls  {row['function']}"
        )


if __name__ == "__main__":
    main()
