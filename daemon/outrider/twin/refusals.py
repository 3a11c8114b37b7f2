"""When the twin refuses to answer, because it cannot know."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.twin.observed import Observed
from outrider.twin.replicates import Outcome
from outrider.twin.twin_site import ROUNDING_S, TwinSite

Floats = NDArray[np.float64]

WEEK_S: Final = 7 * 86_400.0
PAST_WEEKS: Final = 2
"""The shortest past of which an answer is given."""
NEXT_WEEKS: Final = 8
"""The shortest past from which the next window is forecast."""
MOST_PENDING: Final = 0.05
"""Largest share of jobs whose run times may have to be drawn, in a past shorter than that."""
MOST_UNEXPLAINED: Final = 0.03
"""Largest share of owners' evictions that may be without a log-in on record."""
MOST_UNPLACED: Final = 0.02
"""Largest share of jobs whose conditions a simulated site may be unable to express."""
MOST_DEAD: Final = 0.25
"""Largest share of machines that may be taken out because nothing ever starts there."""
MUCH: Final = 0.1
LITTLE: Final = 0.01
"""No support: more than `MUCH` of the work goes where less than `LITTLE` of it was done."""


def unfit_record(seen: Observed, site: TwinSite, unplaced: int, dead: int) -> str | None:
    """Why a record is no ground for an answer, whichever the candidate; None: it is one.

    Args:
        seen: the past.
        site: its simulated site.
        unplaced: jobs whose conditions the site cannot express.
        dead: machines that were taken out.
    """
    span_s = seen.span_s + ROUNDING_S
    if span_s < PAST_WEEKS * WEEK_S:
        return (
            f"the journal holds {seen.span_s / 86_400:.1f} days; right would be "
            f"{PAST_WEEKS} weeks or more"
        )
    jobs, machines = max(1, len(site.campus.run_s)), max(1, len(site.campus.machine_names))
    pending = len(site.pending.at) / jobs
    if span_s < NEXT_WEEKS * WEEK_S and pending > MOST_PENDING:
        return (
            f"{pending:.0%} of the jobs were still there at the end, and nobody knows how long "
            f"they run; right would be at most {MOST_PENDING:.0%}, or {NEXT_WEEKS} weeks"
        )
    evicted, unexplained = seen.owner_evictions.evictions, seen.owner_evictions.unexplained
    if evicted and unexplained / evicted > MOST_UNEXPLAINED:
        return (
            f"{unexplained} of {evicted} evictions by owners have no log-in on record; right would "
            "be a source that tells of every owner's session"
        )
    if unplaced / jobs > MOST_UNPLACED:
        return (
            f"{unplaced} of {jobs} jobs ask for machines that are no whole groups, which the "
            "simulated site cannot express"
        )
    if dead / machines > MOST_DEAD:
        return (
            f"on {dead} of {machines} machines nothing ever started; right would be a pool "
            "without them"
        )
    return None


def short_for_forecast(seen: Observed, whole_blocks: int) -> str | None:
    """Why a past is too short to forecast the next window from; None: it is long enough."""
    if seen.span_s + ROUNDING_S >= NEXT_WEEKS * WEEK_S and whole_blocks >= NEXT_WEEKS // 2:
        return None
    return (
        f"the journal holds {seen.span_s / 86_400:.1f} days; right would be {NEXT_WEEKS} weeks or "
        "more"
    )


def unsupported(
    site: TwinSite, candidate: Sequence[Outcome], incumbent: Sequence[Outcome]
) -> str | None:
    """Why the record tells too little of where a candidate would run; None: it tells enough."""
    groups = site.campus.machine_cluster
    ours, theirs = _by_group(candidate, groups), _by_group(incumbent, groups)
    for number in np.flatnonzero((ours > MUCH) & (theirs < LITTLE)):
        return (
            f"it would send {ours[number]:.0%} of the work to the machines of "
            f"{site.campus.clusters[number].name}, where {theirs[number]:.1%} was done: what "
            "happens there is not on record"
        )
    return None


def _by_group(outcomes: Sequence[Outcome], groups: NDArray[np.int32]) -> Floats:
    """(groups,) share of the work, mean over replicates."""
    work_s = np.mean([outcome.work_s for outcome in outcomes], axis=0)
    by_group = np.bincount(groups, weights=work_s)
    return np.asarray(by_group / max(1.0, float(work_s.sum())), dtype=np.float64)
