"""Expected starts under each policy in shadow, next to those under the incumbent."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.formats.workload import Workload
from outrider.journal import Entry, Journal, SnapshotStore
from outrider.journal.site_facts import SiteFacts
from outrider.model.events import NamedEvent
from outrider.model.machines import SiteHabits
from outrider.model.modes import STRICT
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.journal.recording import SNAPSHOTS_NAME
from outrider.service.twin import candidates_cycle, cycle, starts_file
from outrider.service.twin.candidates_cycle import CandidatesCycle, recall_core, start_intervals
from outrider.service.twin.starts_cycle import StartsCycle
from outrider.service.twin.starts_file import StartInterval, StartsFile
from tests.fixtures.cores import packed
from tests.forecast.recorded_grid import EPOCH_S, busy_weeks, started, told_by

NOW_S = EPOCH_S + 30 * 3_600.0
POLICIES: dict[str, Any] = {"fifo": {}, "sjf": {}}


def seen_until(workload: Workload, now_s: float) -> list[NamedEvent]:
    return [event for event in told_by(workload) if event[0] <= now_s]


def state_folder(folder: Path, events: list[NamedEvent]) -> Path:
    """Return a state directory with the journal of a site that goes by `strict`."""
    facts = SiteFacts(STRICT, SiteHabits(), ())
    with Journal(folder / JOURNAL_NAME) as journal:
        journal.append(Entry(inputs=[("grid", event) for event in events]))
        journal.append(Entry(meta=facts.as_meta()))
    return folder


def configured(folder: Path, **more: Any) -> LoadedConfig:
    given = {
        "state_dir": str(folder), "discipline": STRICT, "policies": POLICIES,
        "adapters": {"log": {"type": "logtail", "paths": ["/nowhere"]}},
        "twin": {"candidates_budget_s": 3_600.0},
    }  # fmt: skip
    return check_config({**given, **more}, "test")


def look(folder: Path, loaded: LoadedConfig | None = None) -> StartsFile:
    """Return the forecasts of a new process."""
    config = configured(folder) if loaded is None else loaded
    journal = folder / JOURNAL_NAME
    candidates = CandidatesCycle(journal, lambda: config)
    cycle = StartsCycle(folder, journal, lambda: 60.0, lambda: NOW_S, candidates)
    cycle.look()
    told = starts_file.read(folder)
    assert told is not None
    assert told.problem is None
    return told


@pytest.fixture(autouse=True)
def few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a candidate forward twelve times at most."""
    monkeypatch.setattr("outrider.forecast.candidate_starts.MAX_REPLICATES", 12)


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Three days of batches."""
    return busy_weeks(4)


@pytest.fixture
def folder(workload: Workload, tmp_path: Path) -> Path:
    """A state directory that has seen the first of them."""
    return state_folder(tmp_path, seen_until(workload, NOW_S))


def test_each_waiting_job_has_a_start_under_each_policy(folder: Path, workload: Workload) -> None:
    told = look(folder)
    assert told.candidates_asked_s == NOW_S
    assert told.candidate_problems == {}
    assert told.candidates.keys() == POLICIES.keys()
    estimate_s = dict(zip(workload.job_names, workload.estimate_s, strict=True))
    for starts in told.candidates.values():
        assert starts.keys() == told.jobs.keys()
        said = [start for start in starts.values() if start is not None]
        assert all(NOW_S <= one.low_s <= one.median_s <= one.high_s for one in said)
        assert len(said) > len(starts) / 2
    medians = {
        policy: {name: start.median_s for name, start in starts.items() if start is not None}
        for policy, starts in told.candidates.items()
    }
    short = [name for name in medians["sjf"] if estimate_s[name] == 600.0]
    long = [name for name in medians["sjf"] if estimate_s[name] == 5_000.0]
    assert short
    assert long

    def mean(policy: str, names: list[str]) -> float:
        return float(np.mean([medians[policy][name] for name in names]))

    assert mean("sjf", short) < mean("fifo", short)
    assert mean("sjf", long) > mean("fifo", long)


def test_run_times_of_jobs_that_have_not_ended_change_nothing(
    workload: Workload, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ends_s = EPOCH_S + started(workload) + workload.run_s
    later = np.where(ends_s > NOW_S, workload.run_s + 50_000.0, workload.run_s)
    events = seen_until(replace(workload, run_s=later), NOW_S)
    assert events == seen_until(workload, NOW_S)
    assert (later != workload.run_s).any()
    beside = state_folder(tmp_path_factory.mktemp("other"), events)
    assert look(beside).candidates == look(folder).candidates


def test_after_a_restart_the_same_is_said_with_and_without_a_snapshot(folder: Path) -> None:
    first = look(folder)
    loaded, journal = configured(folder), folder / JOURNAL_NAME
    with Journal(journal, read_only=True) as opened:
        last = opened.last_seq()
    half, _ = recall_core(loaded, [], journal, last // 2)
    SnapshotStore(folder / SNAPSHOTS_NAME).save(last // 2, half.save())
    whole, fresh = recall_core(loaded, [], journal, last)
    assert fresh == []
    SnapshotStore(folder / SNAPSHOTS_NAME).paths()[0].unlink()
    alone, _ = recall_core(loaded, [], journal, last)
    assert packed(whole.engine.save()) == packed(alone.engine.save())
    SnapshotStore(folder / SNAPSHOTS_NAME).save(last // 2, half.save())
    assert look(folder).candidates == first.candidates


def test_a_policy_that_the_daemon_has_not_run_yet_has_no_answer(folder: Path) -> None:
    loaded, journal = configured(folder), folder / JOURNAL_NAME
    with Journal(journal, read_only=True) as opened:
        last = opened.last_seq()
    core, _ = recall_core(loaded, [], journal, last)
    SnapshotStore(folder / SNAPSHOTS_NAME).save(last, core.save())
    told = look(folder, configured(folder, policies={**POLICIES, "wfp3": {}}))
    assert told.candidates.keys() == POLICIES.keys()
    assert told.candidate_problems.keys() == {"wfp3"}


def test_a_policy_that_raises_loses_its_own_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Any, *given: Any) -> Any:
        raise RuntimeError("no idea")

    made = cycle.maker_of

    def maker_of(*given: Any) -> Any:
        def make(name: str, seed: int) -> Any:
            policy = made(*given)(name, seed)
            if name == "sjf":
                monkeypatch.setattr(type(policy), "choose", fails)
            return policy

        return make

    monkeypatch.setattr(candidates_cycle, "maker_of", maker_of)
    told = look(folder)
    assert told.candidates.keys() == {"fifo"}
    assert "no idea" in told.candidate_problems["sjf"]
    assert told.jobs


def test_too_little_time_is_a_problem_and_the_incumbent_goes_on(folder: Path) -> None:
    told = look(folder, configured(folder, twin={"candidates_budget_s": 1e-6}))
    assert told.candidates == {}
    assert "replicates" in told.candidate_problems["fifo"]
    assert told.jobs


def test_candidates_are_asked_now_and_then_and_not_at_all_where_nobody_wants(
    folder: Path, workload: Workload
) -> None:
    journal, loaded = folder / JOURNAL_NAME, [configured(folder)]
    seconds = iter([0.0] * 1_000)
    candidates = CandidatesCycle(journal, lambda: loaded[0], lambda: next(seconds))
    cycle = StartsCycle(folder, journal, lambda: 60.0, lambda: NOW_S, candidates)
    first = cycle.look()
    later_s = NOW_S + 3 * 3_600.0
    more = [event for event in told_by(workload) if NOW_S < event[0] <= later_s]
    with Journal(journal) as opened:
        opened.append(Entry(inputs=[("grid", event) for event in more]))
    second = cycle.look()
    assert second.asked_s > first.asked_s
    assert second.candidates_asked_s == first.candidates_asked_s
    gone = first.jobs.keys() - second.jobs.keys()
    assert gone
    assert not gone & second.candidates["fifo"].keys()
    loaded[0] = configured(folder, twin={"candidates_every_s": 0})
    third = cycle.look()
    assert third.candidates == {}
    assert third.candidates_asked_s is None


def test_intervals_move_as_those_under_the_incumbent_did() -> None:
    drawn_s = np.array([[100.0, 100.0, 100.0, 0.0, np.inf]] * 10) + 1_000.0
    moved = dict.fromkeys("abcde", np.array([-0.5, 0.0, 0.5]))
    said = StartInterval(0.0, 0.0, 0.0)
    told = start_intervals(
        list("abcde"), drawn_s, 1_000.0, moved, {"a": said, "b": None, "d": said, "e": said}
    )
    assert told["a"] is not None
    wait_s = np.array([told["a"].low_s, told["a"].median_s, told["a"].high_s]) - 1_000.0
    np.testing.assert_allclose(np.log((wait_s + 60.0) / 160.0), [-0.5, 0.0, 0.5], atol=1e-6)
    assert told["b"] is None  # nor is it known under the incumbent
    assert "c" not in told  # it is not asked about there
    assert told["d"] == StartInterval(1_000.0, 1_000.0, 1_000.0)  # in the next pass
    assert told["e"] is None  # it does not start within the horizon


def test_without_a_recalibration_only_a_start_now_is_known() -> None:
    drawn_s = np.array([[100.0, 0.0]] * 10) + 1_000.0
    moved = dict.fromkeys("ab", np.full(3, np.nan))
    now = StartInterval(1_000.0, 1_000.0, 1_000.0)
    told = start_intervals(list("ab"), drawn_s, 1_000.0, moved, {"a": now, "b": now})
    assert told == {"a": None, "b": now}
