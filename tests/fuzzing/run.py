"""The long run of the fuzz: ``python -m tests.fuzzing.run --events 100000 --seeds 10 fifo bandit``.

Without names of policies: every one that the daemon may ask. Prints a line for each daemon. Ten
daemons of 100,000 events find more than one of a million, in which most jobs wait for ever and each
event costs more and more.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzzing.daemon import FuzzedDaemon
from tests.fuzzing.policies import fuzzable


def main() -> int:
    """Returns the exit code: 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="*", metavar="POLICY")
    parser.add_argument("--events", type=int, default=20_000, help="told to each daemon")
    parser.add_argument("--seed", type=int, default=0, help="of the first daemon")
    parser.add_argument("--seeds", type=int, default=1, help="daemons of each policy")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.seeds)
    policies = given.policies or fuzzable()
    sound = [fuzz(policy, seed, given.events) for policy in policies for seed in seeds]
    return int(not all(sound))


def fuzz(policy: str, seed: int, events: int) -> bool:
    """Fuzz one daemon, and print what was found; True: nothing."""
    began_s = time.monotonic()
    found = ""
    with tempfile.TemporaryDirectory() as folder:
        daemon = FuzzedDaemon(Path(folder), policy, seed)
        try:
            daemon.run(events)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            found = f"{type(error).__name__}: {error}"
        finally:
            daemon.close()
    seconds = time.monotonic() - began_s
    aside = ", ".join(f"{why} {n:,}" for why, n in sorted(daemon.set_aside.items()))
    print(  # noqa: T201 - a script
        f"{policy}: seed {seed}, {daemon.events:,} events, {daemon.restarts} restarts, "
        f"{seconds:.0f} s; set aside: {aside}; {found or 'nothing found'}",
        flush=True,
    )
    return not found


if __name__ == "__main__":
    raise SystemExit(main())
