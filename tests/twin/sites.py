"""Journals for tests of the twin: a small campus in term, correct and with faults."""

from collections.abc import Callable, Sequence
from pathlib import Path

from outrider.api.policy import Policy
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import write_campus
from outrider.journal import Entry, Journal
from outrider.journal.site_facts import facts_on_record
from outrider.model.errors import LedgerError
from outrider.model.events import NamedEvent
from outrider.plugins.finding import make_policy
from outrider.service.demo.simulated_journal import write_journal

WEEK_S = 7 * 86_400.0


def make(name: str, seed: int) -> Policy:
    """Return a policy with its own settings."""
    return make_policy(name, {}, seed, "test")


def journal_of(campus: Campus, folder: Path, seed: int = 5, until_s: float | None = None) -> Path:
    """Write what a daemon records of a campus under random matching."""
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / "journal.sqlite", seed=seed, until_s=until_s)
    return folder / "journal.sqlite"


def altered(
    path: Path,
    to: Path,
    alter: Callable[[list[NamedEvent]], Sequence[NamedEvent]],
    *,
    facts: Path | None = None,
) -> Path:
    """Write a journal of the same site with altered events, sorted.

    What the site says of itself is as in the journal `facts`, where one is given.
    """
    with Journal(path, read_only=True) as journal:
        recorded = [(label, event) for _, label, event in journal.inputs_after(0)]
    says = facts_on_record(path if facts is None else facts)
    if says is None:
        raise LedgerError(f"{path}: says nothing of its site")
    events = sorted(alter([event for _, event in recorded]), key=lambda event: event[0])
    with Journal(to) as journal:
        journal.append(Entry(inputs=[("campus", event) for event in events]))
        journal.append(Entry(meta=says.as_meta()))
    return to
