"""Result of the twin for a journal, and its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from outrider.twin.fidelity import NOT_SIMULATED, Fidelity
from outrider.twin.kill_clock import KillClock
from outrider.twin.measures import LEVEL, Estimate

MAX_LOG_CHANGE: Final = 0.2
"""A forecast holds while log load and log share of waste change by less than this."""

Ratios = dict[str, Estimate | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of the twin for a journal.

    Attributes:
        begin_s, end_s: the window of the journal, Unix seconds.
        incumbent: the policy that represents the batch system; None: it is not on record.
        longest_deferral_s: for how long candidates kept a job in the queue at most; infinite:
            without a bound.
        fidelity: comparison of the simulated incumbent with the record; None: not made.
        refused: why there is no answer; None: there is one.
        past: by candidate, the estimates for the past, by the names of `MEASURES`.
        next: by candidate, the forecast of the next window; None: not requested, or refused.
        next_refused: why there is no forecast though it was requested.
        candidates_refused: why there is no answer for some candidates.
        kill_clock: whether users kill sooner while jobs wait; None: too few kills are on record.
        past_by_clock: estimates for the past if users kill by that clock; empty: it makes no
            difference. The intervals of `past` and `next` include that difference.
        fitted: what was fitted to the record: dead machines, factors on watts, the delay.
        basis: the figures a forecast rests on: mean number of busy CPUs, and the share of waste.
    """

    begin_s: float
    end_s: float
    incumbent: str | None
    longest_deferral_s: float = inf
    fidelity: Fidelity | None = None
    refused: str | None = None
    past: dict[str, Ratios] = field(default_factory=dict)
    next: dict[str, Ratios] | None = None
    next_refused: str | None = None
    candidates_refused: dict[str, str] = field(default_factory=dict)
    kill_clock: KillClock | None = None
    past_by_clock: dict[str, Ratios] = field(default_factory=dict)
    fitted: dict[str, Any] = field(default_factory=dict)
    basis: dict[str, float | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``outrider twin --json``."""
        clock = self.kill_clock
        return {
            "window": {"begin_s": self.begin_s, "end_s": self.end_s},
            "incumbent": self.incumbent,
            "longest_deferral_s": finite_or_none(self.longest_deferral_s),
            "fidelity": (self.fidelity or NOT_SIMULATED).to_json(),
            "refused": self.refused,
            "past": _ratios_json(self.past),
            "next": None if self.next is None else _ratios_json(self.next),
            "next_refused": self.next_refused,
            "candidates_refused": self.candidates_refused,
            "kill_clock": None if clock is None else clock.to_json(),
            "past_by_clock": _ratios_json(self.past_by_clock),
            "fitted": self.fitted,
            "basis": self.basis | {"most_log_change": MAX_LOG_CHANGE},
        }


def finite_or_none(bound: float) -> float | None:
    """Return a bound for JSON: null if infinite."""
    return None if bound == inf else bound


def _ratios_json(by_policy: Mapping[str, Ratios]) -> dict[str, Any]:
    return {
        policy: {
            name: None if ratio is None else ratio._asdict() | {"level": LEVEL}
            for name, ratio in ratios.items()
        }
        for policy, ratios in by_policy.items()
    }
