"""The garbage collector, asked not to hold up decisions."""

import gc

_YOUNG, _MIDDLE, _FULL = 700, 10, 1_000


def calm_collector() -> None:
    """Call when the daemon is ready: full collections become a hundred times rarer.

    A full collection looks at every job that is known: some 20 ms at 10,000 jobs, in the middle
    of a round. It is there for cycles of objects, and the engine makes none; those of others
    (tracebacks, closed connections) are mostly caught young. What was built until now is never
    looked at again.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _FULL)
