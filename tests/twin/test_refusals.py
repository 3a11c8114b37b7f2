"""Refusals and repairs of the twin where a record is insufficient, with their reasons."""

import datetime as dt
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outrider.formats.campus.campus import Campus
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.answer import Answer
from outrider.twin.asking import ask_twin, unsupported
from outrider.twin.replicates import Outcome
from outrider.twin.tally import NOTHING
from outrider.twin.twin_site import Pending, TwinSite
from tests.twin.corruptions import (
    HOUR_S,
    Right,
    broken_machines,
    late_machines,
    late_negotiation,
    missed_sessions,
)
from tests.twin.sites import WEEK_S, altered, journal_of, make


@pytest.fixture(scope="module")
def campus() -> Campus:
    """Return two months of a campus in term."""
    return generate_campus(12, weeks=8.5, machines=50, clusters=4, start=dt.date(2010, 2, 1))


@pytest.fixture(scope="module")
def journal(campus: Campus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the journal of the campus."""
    return journal_of(campus, tmp_path_factory.mktemp("right"), until_s=8 * WEEK_S)


@pytest.fixture(scope="module")
def right(campus: Campus, journal: Path) -> Right:
    """Return the campus with its journal, to be corrupted."""
    return Right(campus, journal, 5, 8 * WEEK_S)


def asked(path: Path, policy: str = "lowest_watts", next_weeks: float | None = None) -> Answer:
    return ask_twin(path, [policy], make, replicates=2, next_weeks=next_weeks)


def test_a_right_record_is_answered(journal: Path) -> None:
    answer = asked(journal, next_weeks=8)
    assert answer.refused is None
    assert answer.next is not None


def test_less_than_two_weeks_are_no_past(campus: Campus, tmp_path: Path) -> None:
    answer = asked(journal_of(campus, tmp_path, until_s=10 * 86_400.0), next_weeks=8)
    assert answer.refused is not None
    assert "10.0 days" in answer.refused
    assert "2 weeks" in answer.refused
    assert answer.past == {}
    assert answer.next is None
    found = answer.to_json()["fidelity"]
    assert (found["passed"], found["parts"]) == (False, {})


def test_four_weeks_are_a_past_and_no_ground_for_a_forecast(
    campus: Campus, tmp_path: Path
) -> None:  # fmt: skip
    answer = asked(journal_of(campus, tmp_path, until_s=4 * WEEK_S), "survival", 8)
    assert answer.refused is None
    assert answer.past.keys() == {"survival"}
    assert answer.next is None
    assert answer.next_refused is not None
    assert "8 weeks" in answer.next_refused


def test_many_jobs_of_unknown_length_are_no_past(campus: Campus, tmp_path: Path) -> None:
    endless = replace(campus, kill_s=np.full(len(campus.kill_s), np.nan))
    answer = asked(journal_of(endless, tmp_path, until_s=4 * WEEK_S))
    assert answer.refused is not None
    assert "had not ended when the record did" in answer.refused


def test_sessions_that_are_not_on_record_are_noticed(right: Right, tmp_path: Path) -> None:
    answer = asked(missed_sessions(right, tmp_path).journal)
    assert answer.refused is not None
    assert "have no log-in on record" in answer.refused


def test_a_batch_system_that_is_an_hour_late_is_noticed(right: Right, tmp_path: Path) -> None:
    answer = asked(late_negotiation(right, tmp_path).journal)
    assert answer.refused is not None
    assert answer.fidelity is not None
    assert "start_delay_s" in answer.fidelity.failed


def test_machines_that_are_given_an_hour_late_are_simulated_so(
    right: Right, tmp_path: Path
) -> None:
    answer = asked(late_machines(right, tmp_path).journal)
    assert answer.refused is None
    assert answer.fitted["idle_before_job_s"] == pytest.approx(HOUR_S, abs=60.0)


def test_machines_on_which_nothing_starts_are_left_out_and_named(
    right: Right, tmp_path: Path
) -> None:  # fmt: skip
    corrupted = broken_machines(right, tmp_path)
    answer = asked(corrupted.journal)
    assert set(answer.fitted["dead_machines"]) <= corrupted.dead
    assert len(answer.fitted["dead_machines"]) >= 0.9 * len(corrupted.dead)
    assert answer.refused is None


def outcome(*work_s: float) -> Outcome:
    work = np.array(work_s)
    return Outcome([], NOTHING, np.array([]), np.array([]), work, work, np.array([]), 0.0)


def test_work_where_none_was_done_supports_no_candidate(campus: Campus) -> None:
    four = replace(
        campus, machine_names=["a", "b", "c", "d"], machine_cluster=np.arange(4, dtype=np.int32)
    )
    site = TwinSite(four, Pending([]), "first_fit", 0.0)
    was = [outcome(60.0, 30.0, 9.1, 0.9)]
    assert unsupported(site, [outcome(10.0, 10.0, 70.0, 10.0)], was) is None
    why = unsupported(site, [outcome(10.0, 10.0, 69.0, 11.0)], was)
    assert why is not None
    assert "11%" in why
    assert campus.clusters[3].name in why
    assert (
        unsupported(site, [outcome(0.0, 0.0, 0.0, 100.0)], [outcome(97.0, 0.0, 0.0, 3.0)]) is None
    )


def test_a_journal_that_names_no_incumbent_is_refused(journal: Path, tmp_path: Path) -> None:
    path = altered(journal, tmp_path / "nameless.sqlite", lambda events: events)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'null' WHERE key = 'incumbent'")
        connection.execute("UPDATE meta SET crc = NULL")
    answer = asked(path)
    assert answer.incumbent is None
    assert answer.refused is not None
    assert "represents the batch system" in answer.refused
