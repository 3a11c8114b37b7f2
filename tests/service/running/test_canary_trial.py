"""A canary by days at a simulated campus: registration, acting days, comparison."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from outrider.formats.campus.files import read_campus, write_campus
from outrider.journal import CommandRecord, Journal
from outrider.model.decisions import DecisionRow
from outrider.model.events import STARTED
from outrider.service.canary_trial.record import TrialRecord, trial_on_record
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.demo.simulated_journal import run_canary
from outrider.simulation.generators.campus import generate_campus
from tests.twin.sites import WEEK_S

PAST_WEEKS = 3.0
DAYS = 14


class Watched(NamedTuple):
    """A trial that ended, and its journal."""

    folder: Path
    found: TrialRecord


def canary(folder: Path, seed: int) -> TrialRecord:
    """Three weeks in shadow, then two in which `survival` acts on half of the days."""
    weeks = PAST_WEEKS + DAYS / 7 + 0.5
    campus = generate_campus(
        seed, weeks=weeks, machines=40, clusters=4, start=dt.date(2010, 2, 1),
        jobs=int(100 * 7 * weeks),
    )  # fmt: skip
    write_campus(campus, folder / "campus")
    found = run_canary(
        folder / "campus", folder / "state", "survival", past_s=PAST_WEEKS * WEEK_S, days=DAYS,
        seed=seed, twin={"replicates": 3},
    )  # fmt: skip
    assert found is not None
    return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A trial of the simulated canary, watched day by day."""
    folder = tmp_path_factory.mktemp("canary")
    return Watched(folder, canary(folder, 1))


def journal_of(watched: Watched) -> tuple[list[CommandRecord], list[DecisionRow]]:
    """Commands, the oldest first, and decisions."""
    with Journal(watched.folder / "state" / JOURNAL_NAME, read_only=True) as journal:
        commands = [record for _, record in reversed(journal.latest_commands(100))]
        return commands, [row for _, row in journal.decisions()]


def test_it_is_registered_before_its_first_day_with_what_the_twin_stated(watched: Watched) -> None:
    trial = watched.found.trial
    assert trial.registered_s < trial.midnights_s[0]
    assert (trial.policy, trial.days, sum(trial.acts)) == ("survival", DAYS, DAYS // 2)
    assert trial.stated_as == "past"
    content = json.loads((watched.folder / "state" / "twin.json").read_bytes())
    assert content["longest_deferral_s"] == content["answer"]["longest_deferral_s"] == 14_400.0
    energy = content["answer"]["past"]["survival"]["energy_ratio"]
    assert trial.stated["energy_ratio"] == {k: energy[k] for k in ("estimate", "low", "high")}
    first = journal_of(watched)[0][0]
    assert (first.command, first.to_mode) == ("trial", "canary")
    assert json.loads(first.detail)["acts"] == list(trial.acts)


def test_it_acts_on_its_days_alone(watched: Watched) -> None:
    trial = watched.found.trial
    gates: dict[bool, Counter[str | None]] = {True: Counter(), False: Counter()}
    for row in journal_of(watched)[1]:
        gates[trial.acts_at(row.time_s)][row.gate] += 1
    assert gates[True]["act"] > 500
    assert gates[False]["act"] == 0
    assert gates[False]["would"] > 500


def test_jobs_start_in_the_group_that_was_decided_for_on_its_days(watched: Watched) -> None:
    trial, campus = watched.found.trial, read_campus(watched.folder / "campus")
    group = dict(zip(campus.machine_names, campus.machine_cluster.tolist(), strict=True))
    with Journal(watched.folder / "state" / JOURNAL_NAME, read_only=True) as journal:
        inputs = [event for _, _, event in journal.inputs_after(0)]
    starts = [(time_s, job, extra[0]) for time_s, kind, job, extra in inputs if kind == STARTED]
    decided: dict[str, list[tuple[float, str | None]]] = {}
    for row in journal_of(watched)[1]:
        decided.setdefault(row.job, []).append((row.time_s, row.machine))
    agreed: dict[bool, Counter[bool]] = {True: Counter(), False: Counter()}
    for time_s, job, machine in starts:
        last = [at for at_s, at in decided.get(job, []) if at_s <= time_s]
        if last and last[-1] is not None and trial.day_at(time_s) is not None:
            agreed[trial.acts_at(time_s)][group[last[-1]] == group[machine]] += 1
    share = {acts: n[True] / n.total() for acts, n in agreed.items()}
    assert share[True] > 0.8
    assert share[False] < 0.5  # random matching hits the group of one in some


def test_at_its_end_the_outcome_is_in_the_ledger_beside_what_was_stated(watched: Watched) -> None:
    kept, _ = trial_on_record(watched.folder / "state" / JOURNAL_NAME)
    assert kept == watched.found
    assert kept is not None
    assert kept.state == "ended"
    assert kept.ended_s is not None
    assert kept.ended_s >= kept.trial.ends_s
    last = journal_of(watched)[0][-1]
    assert (last.command, last.why) == ("trial", "ended at its registered length")
    outcome = kept.outcome
    assert outcome is not None
    assert outcome.pairs >= 5
    assert json.loads(last.detail)["measures"].keys() == outcome.measures.keys()


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_outcome_agrees_with_what_was_stated(
    seed: int, watched: Watched, tmp_path: Path
) -> None:
    found = watched.found if seed == 1 else canary(tmp_path, seed)
    assert found.outcome is not None
    for name in ("energy_ratio", "badput_ratio"):
        one = found.outcome.measures[name]
        assert one.agrees, (name, one)
