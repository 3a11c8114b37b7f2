"""The long run of the fuzz: ``python -m tests.fuzzing.run --events 1000000 fifo bandit survival``.

Without names of policies: every one that the daemon may ask. Prints a line for each.
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
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = 0
    for policy in given.policies or fuzzable():
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            daemon = FuzzedDaemon(Path(folder), policy, given.seed)
            try:
                daemon.run(given.events)
                found = "nothing found"
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                failed += 1
                found = f"{type(error).__name__}: {error}"
            finally:
                daemon.close()
        seconds = time.monotonic() - began_s
        aside = ", ".join(f"{why} {n:,}" for why, n in sorted(daemon.set_aside.items()))
        print(  # noqa: T201 - a script
            f"{policy}: seed {given.seed}, {daemon.events:,} events, {daemon.restarts} restarts, "
            f"{seconds:.0f} s; set aside: {aside}; {found}",
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
