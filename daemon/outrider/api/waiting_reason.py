"""Why a job waits, as its batch system says it: what an adapter answers when somebody asks."""

from collections.abc import Iterable

import msgspec


class Clause(msgspec.Struct, frozen=True):
    """One of the conditions that a job puts on its machines; all of them have to hold.

    Attributes:
        text: as the batch system writes it.
        machines: how many machines meet it, whatever the other conditions say.
        without_it: how many machines would meet all the others if this one were not there.
    """

    text: str
    machines: int
    without_it: int


def removing_most(clauses: Iterable[Clause], machines: int) -> Clause | None:
    """The clause that by itself removes most machines; None where each is met by all of them.

    Of equals it is the one without which most machines are left.

    Args:
        clauses: the conditions.
        machines: how many there are in all.

    >>> memory, name = Clause("Memory >= 4096", 3, 1), Clause('Name == "m7"', 1, 3)
    >>> removing_most([memory, name], 9).text
    'Name == "m7"'
    """
    found = min(clauses, key=lambda one: (one.machines, -one.without_it), default=None)
    return found if found is not None and found.machines < machines else None


class WaitingReason(msgspec.Struct, frozen=True):
    """Why a job is not running, in the batch system's own terms and numbers.

    It may name users: the daemon shows it only to those who may see their names.

    Attributes:
        code: the batch system's own word or number for it (``Priority``, ``JobHeldUser``); empty
            where it has none.
        sentence: the reason in words that a user understands, with the batch system's numbers.
        never: whether the job never starts as it stands, however long it waits.
        remedies: what would change it, a sentence each, the most promising first.
        machines: how many machines may run it at all; None: not known.
        clauses: its conditions, where the batch system tells them apart.
        expected_start_s: when the batch system itself expects it to start, Unix seconds; None: it
            has no plan for it.
        ahead: how many waiting jobs stand before it in the batch system's order; None: not known.
        removes_most: the text of the clause that removes most machines (`removing_most`); None:
            there is none, or the batch system does not tell them apart.
    """

    code: str
    sentence: str
    never: bool = False
    remedies: tuple[str, ...] = ()
    machines: int | None = None
    clauses: tuple[Clause, ...] = ()
    expected_start_s: float | None = None
    ahead: int | None = None
    removes_most: str | None = None
