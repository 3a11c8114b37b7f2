"""The hash by which the decisions of two runs are compared."""

import hashlib
from collections.abc import Iterable
from typing import Final

from outrider.journal.records import AlikeDecision
from outrider.model.decisions import DecisionRow

BLOCK_LINES: Final = 2048
"""Lines hashed at a time: about 64 KiB, for full speed of SHA-256."""


class LedgerHash:
    r"""The ``ledger_sha256`` of decisions added in order.

    Over (time in ms, job, action, machine, cpus), one line for each job that was decided::

        {round(time_s * 1000)}\t{job}\t{action}\t{machine, or nothing}\t{cpus}\n

    in UTF-8. No scores, no floats, no clock: equal for equal decisions in any process. A row
    shared by alike jobs counts a line for each of them, so sharing changes nothing.
    """

    __slots__ = ("_digest", "_lines")

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._lines: list[str] = []

    def add(self, time_s: float, job: str, action: str, machine: str | None, cpus: int) -> None:
        """Count one decision about one job."""
        lines = self._lines
        lines.append(f"{round(time_s * 1000)}\t{job}\t{action}\t{machine or ''}\t{cpus}\n")
        if len(lines) >= BLOCK_LINES:
            self._flush()

    def add_decision(self, decision: DecisionRow) -> None:
        """Count one row: a line for its job, or one for each of its alike jobs."""
        jobs = decision.jobs if isinstance(decision, AlikeDecision) else (decision.job,)
        for job in jobs:
            self.add(decision.time_s, job, decision.action, decision.machine, decision.cpus)

    def hexdigest(self) -> str:
        """The hash of the decisions so far; more may be added afterwards."""
        self._flush()
        return self._digest.hexdigest()

    def _flush(self) -> None:
        self._digest.update("".join(self._lines).encode())
        self._lines.clear()


def ledger_sha256(decisions: Iterable[tuple[int, DecisionRow]]) -> str:
    """The hash of decisions as `Journal.decisions` gives them."""
    total = LedgerHash()
    for _, decision in decisions:
        total.add_decision(decision)
    return total.hexdigest()
