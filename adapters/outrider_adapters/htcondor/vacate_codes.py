"""What HTCondor's ``VacateReasonCode`` means to Outrider.

Version 23 gives 1005 to most evictions, which says nothing; later ones tell them apart.
"""

from collections.abc import Mapping
from typing import Final

UNSAID: Final = "unknown"

_COULD_NOT_BEGIN: Final = (
    6,  # FailedToCreateProcess: the executable cannot be run there
    1003,  # JobNotStarted: a step of its set-up failed
    1006,  # FailedToActivateClaim
    *range(1026, 1037),  # ActivationRefused...
)

REASONS: Final[Mapping[int, str]] = {
    **dict.fromkeys(_COULD_NOT_BEGIN, "failed_start"),
    1014: "drained",  # StartdDraining
    1018: "preempted",  # StartdPreemptingClaimRank
    1019: "preempted",  # StartdPreemptingClaimUserPrio
    1023: "removed",  # JobRemoved
}
"""Codes that say why by themselves."""

NO_MATTER_OF_SLOTS: Final = frozenset(
    {
        1004,  # UserVacateJob
        1008,  # ReconnectFailed: nobody knows what became of the run
        1010,  # StartdVacateCommand
        1017,  # StartdReleaseCommand
        1022,  # ScheddVacate
    }
)
"""Codes of runs that were given up at a request, or lost from sight.

Whoever has the slot afterwards was not the cause; what was, is not known.
"""
