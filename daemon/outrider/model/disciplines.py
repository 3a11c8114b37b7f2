"""Queue disciplines: who may start before a job that does not fit now.

The names are those of the setting `discipline`, which means the same in replay and daemon. Whatever
the discipline, nobody waits behind a job that its policy defers, nor behind one that fits on no
machine that is open.
"""

from typing import Final, Literal, get_args

Discipline = Literal["first_fit", "strict", "easy", "conservative"]

FIRST_FIT: Final = "first_fit"
"""What does not fit lets all others pass, as a negotiator does."""
STRICT: Final = "strict"
"""Nobody passes: plain FCFS where the order is that of arrival."""
EASY: Final = "easy"
"""The first that does not fit gets a reservation; others pass if they do not delay it."""
CONSERVATIVE: Final = "conservative"
"""Every job that does not fit gets a reservation; others pass if they delay none before them."""

DISCIPLINES: Final[tuple[Discipline, ...]] = get_args(Discipline)
ALIASES: Final[dict[str, Discipline]] = {"none": STRICT, "easy": EASY}
"""What `--backfill` says."""
