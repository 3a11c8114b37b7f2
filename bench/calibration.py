"""Calibration loop, with which figures of different machines can be compared as ratios."""

import time

STEPS = 300_000


def calibration_s() -> float:
    """Return the best time of five runs of a loop of tuples, dicts and floats in plain Python."""
    best = float("inf")
    for _ in range(5):
        start_s = time.perf_counter()
        seen: dict[int, float] = {}
        total = 0.0
        for step in range(STEPS):
            pair = (step * 7919 % 1009, step * 0.5)
            total += pair[1]
            seen[pair[0]] = total
        best = min(best, time.perf_counter() - start_s)
    return best
