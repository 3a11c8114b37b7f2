"""Modes of the daemon, from observing to acting on all jobs, and queue disciplines."""

from typing import Final, Literal, get_args

MODES: Final = ("observe", "shadow", "canary", "active")


# -- disciplines -----------------------------------------------------------------------------------
# Queue disciplines: who may start before a job that does not fit now.
#
# The names are those of the setting `discipline`, which means the same in replay and daemon. Under
# every discipline, no job waits behind one that the policy defers, nor behind one that fits on no
# open machine.

Discipline = Literal["first_fit", "strict", "easy", "easy_sjbf", "conservative"]
FIRST_FIT: Final = "first_fit"
"""Jobs that do not fit are skipped, as by HTCondor's negotiator."""
STRICT: Final = "strict"
"""No job passes another: plain FCFS if the order is that of submission."""
EASY: Final = "easy"
"""The first job that does not fit has a reservation; others pass if they do not delay it."""
EASY_SJBF: Final = "easy_sjbf"
"""The same as `easy`, but jobs that pass are tried shortest estimate first."""
CONSERVATIVE: Final = "conservative"
"""Every job that does not fit has a reservation; others pass if they delay none of these."""
DISCIPLINES: Final[tuple[Discipline, ...]] = get_args(Discipline)
ALIASES: Final[dict[str, Discipline]] = {"none": STRICT, "easy": EASY}
"""Values of `--backfill`."""
