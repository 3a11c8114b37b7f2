"""Candidates that ran in the daemon's shadow: use of their recorded decisions."""

from pathlib import Path

import pytest

from outrider.acting.gate import ACT
from outrider.formats.campus.files import write_campus
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.decisions import DEFER, START, DecisionRow
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.off_policy.journal import off_policy_of_journal
from tests.replay.recordings import watch

RANDOM = "random_match"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a journal with the decisions of a daemon in shadow."""
    folder = tmp_path_factory.mktemp("recorded")
    write_campus(generate_campus(22, weeks=2.0, machines=60, clusters=4), folder / "campus")
    watch(folder / "campus", folder / "journal.sqlite", 3, ("lowest_watts", "survival"))
    return folder / "journal.sqlite"


def test_what_a_rule_decided_then_says_the_same_as_asking_it_now(journal: Path) -> None:
    """The recorded policy drew one of the groups of equal watts, so that fewer starts agree."""
    recorded = off_policy_of_journal(journal, (), ["lowest_watts"], RANDOM)["lowest_watts"]
    asked = off_policy_of_journal(journal, ["lowest_watts"], (), RANDOM)["lowest_watts"]
    assert recorded.refused == asked.refused == ()
    assert recorded.silent_n <= 0.02 * asked.starts_n
    assert recorded.starts_n + recorded.silent_n == asked.starts_n
    assert recorded.effective_n is not None
    assert asked.effective_n is not None
    assert 0.3 * asked.effective_n < recorded.effective_n < 1.05 * asked.effective_n
    assert recorded.mean_weight == pytest.approx(1.0, abs=0.15)
    assert recorded.difference is not None
    assert asked.difference is not None
    reach = recorded.difference.high - recorded.difference.low
    assert recorded.difference.value == pytest.approx(asked.difference.value, abs=reach)
    assert reach < 0.1


def test_starts_of_jobs_that_it_deferred_are_left_out_and_counted(journal: Path) -> None:
    check = off_policy_of_journal(journal, (), ["survival"], RANDOM)["survival"]
    latest: dict[str, str] = {}
    deferred = 0
    with Journal(journal, read_only=True) as opened:
        rows = [(row.time_s, 0, row.job, row.action) for _, row in opened.decisions()
                if row.policy == "survival"]  # fmt: skip
        starts = [(e[0], 1, e[2], "") for _, _, e in opened.inputs_after(0) if e[1] == ev.STARTED]
    for _, is_start, job, action in sorted(rows + starts):
        if is_start:
            deferred += latest.get(job, DEFER) == DEFER
        else:
            latest[job] = action
    assert deferred > 50
    assert deferred <= check.silent_n <= deferred + 0.2 * check.starts_n


def test_jobs_that_outrider_acted_on_are_left_out(journal: Path, tmp_path: Path) -> None:
    before = off_policy_of_journal(journal, ["lowest_watts"], (), RANDOM)["lowest_watts"]
    copy = tmp_path / "journal.sqlite"
    copy.write_bytes(journal.read_bytes())
    with Journal(copy, read_only=True) as opened:
        _, _, first = next(row for row in opened.inputs_after(0) if row[2][1] == ev.STARTED)
        starts_n = sum(
            e[1] == ev.STARTED and e[2] == first[2] for _, _, e in opened.inputs_after(0)
        )
    row = DecisionRow(first[0], first[2], START, first[3][0], 1, "best", "bandit", "canary")
    row.gate = ACT
    with Journal(copy) as opened:
        opened.append(Entry(decisions=[row]))
    after = off_policy_of_journal(copy, ["lowest_watts"], (), RANDOM)["lowest_watts"]
    assert (before.acted_n, after.acted_n) == (0, starts_n)
    assert after.starts_n + after.running_n == before.starts_n + before.running_n - starts_n


def test_a_policy_of_which_nothing_is_on_record_is_refused(journal: Path) -> None:
    check = off_policy_of_journal(journal, (), ["bandit"], RANDOM)["bandit"]
    assert check.refused == ("the journal holds no decision of bandit",)
