"""Small hand-made entries, and what a journal holds of them."""

from typing import Any

from outrider.journal import Entry, Journal, OutcomeRecord
from outrider.model.decisions import DecisionRow
from outrider.model.events import COMPLETED, NamedEvent


def decision(time_s: float = 10.0, job: str = "1.0", **other: Any) -> DecisionRow:
    fields: dict[str, Any] = {
        "action": "start", "machine": "lab-1", "cpus": 1, "reason": "best", "policy": "bandit",
        "mode": "shadow", "propensity": 0.9, "scores": {"lab": 1.5, "queue": -0.25},
        "input_age_s": 0.5,
    }  # fmt: skip
    return DecisionRow(time_s=time_s, job=job, **(fields | other))


def outcome(time_s: float = 20.0, job: str = "1.0") -> OutcomeRecord:
    return OutcomeRecord(time_s, job, "lab-1", "evicted", "owner", 9.5, "bandit", -0.5, True)


def numbered_entry(number: int, rows: int = 3) -> Entry:
    """An entry that can be recognised: `rows` events and a decision, the cursor is its number."""
    events: list[tuple[str, NamedEvent]] = [
        ("log", (float(number), COMPLETED, f"{number}.{part}", None)) for part in range(rows)
    ]
    return Entry(
        inputs=events,
        decisions=[decision(float(number), f"{number}.0")],
        cursors={"log": number},
    )


def entry_numbers(journal: Journal) -> list[int]:
    """The numbers of the entries whose events the journal holds, in order, one for each event."""
    return [int(event[0]) for _, _, event in journal.inputs_after(0)]


def big_entry(number: int) -> Entry:
    """An entry of 20 kB."""
    entry = numbered_entry(number)
    entry.meta = {f"ballast {number}": "x" * 20_000}
    return entry
