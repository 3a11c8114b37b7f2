"""Compile the kernels of expected starts: ``python -m tests.suite.compile_once``.

Machine code is kept beside the modules. Without it each of the processes that share the tests, and
each that they start, would compile by itself, at the same time.
"""

from outrider.forecast.expected_starts import KNOWN_DISCIPLINES
from outrider.forecast.running import HAS_COMPILER
from tests.forecast.test_rules import forward, moments


def main() -> None:
    """Run each kernel once."""
    if not HAS_COMPILER:
        return
    for discipline in KNOWN_DISCIPLINES:
        for at in moments(0, discipline)[:2]:
            forward(at, discipline)


if __name__ == "__main__":
    main()
