"""Pass criteria of a soak."""

from statistics import median
from typing import Final

from tests.soak.soak import CALM, NOT_PROBED, SoakReport

ANSWERS_WITHIN_S: Final = 2.0
"""`/healthz`, whatever goes on; but for a daemon that begins, which is probed by its own start."""
GROWS_AT_MOST_MB: Final = 30.0
"""Allowed memory growth from the middle round of attacks to the last one.

By then the daemon's memory of ended jobs is full: 200,000 of them, which take some 85 MB and the
first quarter of an hour. Every attack has occurred at least once."""
MOST_UNDER_ATTACK_MB: Final = 120.0
"""Allowed memory growth over the calm phase: unread answers, unknown names."""


def complaints(report: SoakReport) -> list[str]:
    """Return the violations, a sentence each; empty if there are none."""
    found = [
        f"{sample.during}: /healthz took {sample.answer_s:.1f} s"
        for sample in report.samples
        if sample.during not in NOT_PROBED and sample.answer_s > ANSWERS_WITHIN_S
    ]
    calm_mb = report.calm_memory_mb()
    if len(calm_mb) < 2 or not report.during(CALM):
        return [*found, "there was no calm to compare with"]
    before_mb, highest_mb = max(report.rises_mb(), key=lambda rise: rise[1] - rise[0])
    if highest_mb - before_mb > MOST_UNDER_ATTACK_MB:
        found.append(f"memory rose from {before_mb:.0f} to {highest_mb:.0f} MB")
    settled_mb, last_mb = _settled_and_last(calm_mb, len(report.attacks))
    if last_mb - settled_mb > GROWS_AT_MOST_MB:
        found.append(f"calm memory grew from {settled_mb:.0f} to {last_mb:.0f} MB")
    if report.recorded != report.written:
        found.append(f"of {dict(report.written)} written, {dict(report.recorded)} were recorded")
    return found + [f"not as undisturbed: {what}" for what in report.differences]


def _settled_and_last(calm_mb: list[float], attacks_n: int) -> tuple[float, float]:
    """Calm memory in the middle and at the end, each the median of a round of all attacks.

    What is left right after an attack differs from one to the next. In a soak of a few rounds two
    spells are compared.
    """
    rounds = len(calm_mb) // attacks_n
    if rounds < 4:
        return calm_mb[min(attacks_n, len(calm_mb) - 2)], calm_mb[-1]
    middle = rounds // 2 * attacks_n
    return median(calm_mb[middle : middle + attacks_n]), median(calm_mb[-attacks_n:])
