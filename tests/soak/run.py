"""Command of the long soak: ``python -m tests.soak.run --seconds 3600``. Prints what it saw."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.soak.judging import complaints
from tests.soak.soak import soak


def main() -> int:
    """Returns the exit code: 1 if anything was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="under attack")
    parser.add_argument("--seed", type=int, default=0, help="of the steady log")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = soak(Path(folder), given.seconds, given.seed)
    found = complaints(report)
    print("\n".join([*report.lines(), *(f"NOT AS IT MUST BE: {one}" for one in found)]))  # noqa: T201
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
