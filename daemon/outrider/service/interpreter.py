"""The interpreter's own settings, so that nothing holds up decisions for long."""

import gc
import sys

_YOUNG, _MIDDLE, _FULL = 700, 10, 1_000
_THREAD_TURN_S = 0.001


def share_threads() -> None:
    """Call before a thread computes for long, beside the event loop.

    A thread that computes (the start, a scrape that is rendered, a snapshot that is packed) gives
    way to the event loop after 1 ms in place of 5. The loop may wait for several such turns in a
    row.

    Full garbage collections become a hundred times rarer. One looks at every job that is known:
    some 20 ms at 10,000 jobs, in the middle of a round. It is there for cycles of objects, and
    the engine makes none; those of others (tracebacks, closed connections) are mostly caught
    young.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _FULL)
    sys.setswitchinterval(_THREAD_TURN_S)


def tune_interpreter() -> None:
    """Call when the daemon is ready: as `share_threads`, and what is there now is never collected.

    What was built until now is never looked at again.
    """
    gc.freeze()
    share_threads()
