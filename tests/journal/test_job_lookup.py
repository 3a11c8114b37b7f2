"""Lookup by the short form of a job's name: every possible job, and no other."""

from pathlib import Path

import pytest

from outrider.journal import Entry, Journal
from tests.journal.samples import decision

NAMES = (
    "ap1.campus#12.0", "ap1.campus#12.0#1700000000", "ap1.campus#12.1", "ap1.campus#120.0",
    "ap2.campus#12.0", "ap2.campus#7.0", "hpc:12", "hpc:12_3", "hpc:123", "12.server", "12.0",
    "zeta#9.0",
)  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A journal with a decision for each of the names."""
    journal = Journal(tmp_path / "journal.sqlite")
    journal.append(Entry(decisions=[decision(float(n), name) for n, name in enumerate(NAMES)]))
    return journal


@pytest.mark.parametrize(
    ("short", "meant"),
    [
        ("12", [*NAMES[:3], "ap2.campus#12.0", "hpc:12", "hpc:12_3", "12.server", "12.0"]),
        ("12.0", ["12.0", *NAMES[:2], "ap2.campus#12.0"]),
        ("ap1.campus#12.0", NAMES[:2]),
        ("9", ["zeta#9.0"]),  # the last of the systems
        ("123", ["hpc:123"]),
        ("12_3", ["hpc:12_3"]),
        ("12.server", ["12.server"]),
        ("hpc:12", ["hpc:12"]),
        ("1", []),
        ("nothing", []),
    ],
)
def test_every_job_that_can_be_meant_is_found(
    journal: Journal, short: str, meant: list[str]
) -> None:
    with journal:
        found = journal.jobs_meant(short)
        assert sorted(found) == sorted(meant)
        assert len(found) == len(set(found))
        assert journal.jobs_meant(short, limit=1) == found[:1]
        assert journal.jobs_meant(short, limit=3) == found[:3]


def test_as_many_jobs_are_looked_at_as_are_wanted_however_many_there_are(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        rows = [decision(float(n), f"ap1#7.{n}") for n in range(500)]
        journal.append(Entry(decisions=rows))
        found = journal.jobs_meant("7")
        assert len(found) == 20
        assert set(found) < {row.job for row in rows}
