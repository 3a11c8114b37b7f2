"""What must hold of a soak."""

from collections import Counter
from typing import Final

from tests.soak.soak import CALM, NOT_PROBED, SoakReport

ANSWERS_WITHIN_S: Final = 2.0
"""`/healthz`, whatever goes on; but for a daemon that begins, which is probed by its own start."""
GROWS_AT_MOST_MB: Final = 60.0
"""From the first calm spell after every attack was seen once, to the last one."""
MOST_UNDER_ATTACK_MB: Final = 120.0
"""Above the calm before: answers that nobody reads, names that nobody knows."""


def complaints(report: SoakReport) -> list[str]:
    """What was not as it must be, a sentence each; empty: all is well."""
    found = [
        f"{sample.during}: /healthz took {sample.answer_s:.1f} s"
        for sample in report.samples
        if sample.during not in NOT_PROBED and sample.answer_s > ANSWERS_WITHIN_S
    ]
    calm_mb = report.calm_memory_mb()
    if len(calm_mb) < 2 or not report.during(CALM):
        return [*found, "there was no calm to compare with"]
    highest_mb = max(sample.memory_mb for sample in report.samples)
    if highest_mb - min(calm_mb) > MOST_UNDER_ATTACK_MB:
        found.append(f"memory rose from {min(calm_mb):.0f} to {highest_mb:.0f} MB")
    first_mb = calm_mb[min(len(report.attacks), len(calm_mb) - 2)]
    if calm_mb[-1] - first_mb > GROWS_AT_MOST_MB:
        found.append(f"calm memory grew from {first_mb:.0f} to {calm_mb[-1]:.0f} MB")
    attacked, undisturbed = report.attacked, report.undisturbed
    steady = {kind: n for (log, kind), n in attacked.events.items() if log == "jobs"}
    if steady != dict(report.written):
        found.append(f"of {dict(report.written)} in the steady log, {steady} were recorded")
    for what in ("events", "decisions", "outcomes", "set_aside"):
        one, other = (_without_meters(getattr(ledger, what)) for ledger in (attacked, undisturbed))
        if one != other:
            found.append(f"{what} differ from the undisturbed daemon's: {_difference(one, other)}")
    if not undisturbed.decisions:
        found.append("nothing was decided")
    return found


def _without_meters(told: object) -> object:
    """What came of the meters is left out: their messages were sent once, to one daemon."""
    if isinstance(told, Counter):
        return {key: n for key, n in told.items() if key[0] != "meters"}
    return told


def _difference(one: object, other: object) -> str:
    if isinstance(one, list) and isinstance(other, list):
        at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
                  min(len(one), len(other)))  # fmt: skip
        return (
            f"{len(one)} and {len(other)}, first at {at}: {one[at : at + 1]}, {other[at : at + 1]}"
        )
    return f"{one} and {other}"
