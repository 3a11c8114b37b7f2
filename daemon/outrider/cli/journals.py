"""Journals as commands read them: opened to read alone, their times in words."""

from pathlib import Path
from typing import TYPE_CHECKING

from outrider.cli.printing import clock

if TYPE_CHECKING:
    from outrider.journal import Journal


def open_journal(file: Path) -> "Journal":
    """A journal, to read, even while a daemon writes it. Raises `LedgerError`."""
    from outrider.journal import Journal

    return Journal(file, read_only=True)


def zone_of(journal: "Journal") -> str:
    """The time zone of its site."""
    from outrider.journal import TIMEZONE_KEY

    zone: str = journal.meta(TIMEZONE_KEY, "UTC")
    return zone


def time_in_words(time_s: float, zone: str) -> str:
    """Unix times as dates at the site, times of a trace as seconds since its start."""
    return clock(time_s, zone) if time_s > 1e9 else f"{time_s:.1f} s"
