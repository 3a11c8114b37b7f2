"""`outrider replay`: the run object of the reference, ledgers, seeds, and what it refuses."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.journal import Journal, LedgerHash
from outrider.model.events import EVICTION_REASONS
from outrider_policies.bandits.bandit import BanditSettings
from tests.cli.running import COMMAND, WITHIN_S, outrider, shell

STATISTICS = {"mean", "std", "median", "p90", "p95", "p99", "max", "n", "censored_n"}
RUN_FIELDS = {
    "trace", "policy", "settings", "seed", "machines", "owner_sessions", "span_s", "jobs",
    "wait_s", "overhead_s", "bounded_slowdown", "defer_s", "energy_wh", "goodput_s", "badput_s",
    "starts", "evictions", "fairness", "utility", "utilisation_ratio", "decisions", "events",
    "wall_s", "cpu_s", "max_rss_mb", "ledger_sha256",
}  # fmt: skip


def replay(campus: Path, *words: object) -> list[dict[str, Any]]:
    """The run objects of a replay."""
    runs: list[dict[str, Any]] = outrider("replay", campus, *words, "--json").json()["runs"]
    return runs


def test_a_run_has_every_field_of_the_format(campus: Path) -> None:
    (run,) = replay(campus, "--policy", "bandit")
    assert set(run) >= RUN_FIELDS
    assert run["trace"] == str(campus)
    assert (run["policy"], run["seed"]) == ("bandit", 0)
    assert set(run["jobs"]) == {
        "submitted", "completed", "removed", "unfinished", "skipped", "impossible"
    }  # fmt: skip
    assert set(run["wait_s"]) == {"all", "by_class", "by_vo"}
    totals = [run[name]["all"] for name in ("wait_s", "overhead_s", "bounded_slowdown")]
    parts = [*run["wait_s"]["by_class"].values(), *run["wait_s"]["by_vo"].values()]
    for statistics in totals + parts:
        assert set(statistics) == STATISTICS
    assert set(run["energy_wh"]) == {"goodput", "badput", "open", "idle", "sleep", "owner"}
    assert set(run["fairness"]) == {"utility", "time_mean", "windowed", "share", "target"}
    assert set(run["evictions"]) == set(EVICTION_REASONS)
    assert set(run["utility"]) == {"total", "per_step"}
    assert run["defer_s"]["max"] > 0
    assert len(run["ledger_sha256"]) == 64


def test_jobs_are_conserved_and_something_happens(campus: Path) -> None:
    (run,) = replay(campus, "--policy", "random_match")
    jobs = run["jobs"]
    assert jobs["submitted"] == jobs["completed"] + jobs["removed"] + jobs["unfinished"]
    assert jobs["submitted"] == len((campus / "jobs.csv").read_text().splitlines()) - 1
    assert run["evictions"]["owner"] > 0
    assert run["starts"] > jobs["completed"]


def test_settings_shows_every_value_in_force(campus: Path) -> None:
    words = ("--policy", "bandit", "--set", "bandit.epsilon=.25", "--preset", "bandit=literal")
    (run,) = replay(campus, *words, "--until", 1000)
    declared = {field.name for field in msgspec.structs.fields(BanditSettings)}
    assert set(run["settings"]) == declared
    shown = {"epsilon": 0.25, "sigma": 0.8, "reconsider_s": 3600.0, "max_defer_s": "inf"}
    assert run["settings"].items() >= shown.items()
    assert run["preset"] == "literal"


def test_each_policy_runs_as_if_it_were_alone(campus: Path) -> None:
    together = replay(campus, "--policy", "bandit", "--policy", "random_match")
    alone = replay(campus, "--policy", "random_match")
    assert [run["policy"] for run in together] == ["bandit", "random_match"]
    assert together[1]["ledger_sha256"] == alone[0]["ledger_sha256"]


def test_two_processes_decide_alike(campus: Path) -> None:
    words = ("replay", campus, "--policy", "bandit", "--seed", 5, "--json")
    hashes = {
        shell(*words, PYTHONHASHSEED=seed).json()["runs"][0]["ledger_sha256"] for seed in "12"
    }
    assert len(hashes) == 1


def test_another_seed_decides_otherwise(campus: Path) -> None:
    runs = replay(campus, "--policy", "random_match", "--seeds", "0-2")
    assert [run["seed"] for run in runs] == [0, 1, 2]
    assert len({run["ledger_sha256"] for run in runs}) == 3


def decisions(file: Path) -> list[Any]:
    with Journal(file, read_only=True) as journal:
        return [decision for _, decision in journal.decisions()]


def test_until_gives_the_first_rows_of_the_whole_ledger(campus: Path, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.sqlite", tmp_path / "part.sqlite"
    replay(campus, "--policy", "bandit", "--ledger", whole)
    replay(campus, "--policy", "bandit", "--ledger", part, "--until", 300_000)
    first, every = decisions(part), decisions(whole)
    assert 0 < len(first) < len(every)
    assert first == every[: len(first)]
    assert every[len(first)].time_s > 300_000


def test_until_beyond_the_end_is_the_end(campus: Path) -> None:
    (whole,) = replay(campus, "--policy", "fifo")
    (beyond,) = replay(campus, "--policy", "fifo", "--until", 10 * whole["span_s"])
    assert beyond["ledger_sha256"] == whole["ledger_sha256"]
    assert beyond["span_s"] == whole["span_s"]


def test_the_ledger_holds_what_was_hashed_and_why(campus: Path, tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    (run,) = replay(campus, "--policy", "bandit", "--ledger", file)
    rows = decisions(file)
    digest = LedgerHash()
    for row in rows:
        digest.add_decision(row)
    assert digest.hexdigest() == run["ledger_sha256"]
    assert len(rows) == run["decisions"]
    assert {row.mode for row in rows} == {"active"}
    assert any(row.scores for row in rows)
    assert all(0 < row.propensity <= 1 for row in rows if row.propensity is not None)


def test_writing_a_ledger_changes_no_decision(campus: Path, tmp_path: Path) -> None:
    (without,) = replay(campus, "--policy", "bandit")
    (with_one,) = replay(campus, "--policy", "bandit", "--ledger", tmp_path / "x.sqlite")
    assert without["ledger_sha256"] == with_one["ledger_sha256"]


def test_several_runs_get_a_ledger_each(campus: Path, tmp_path: Path) -> None:
    words = ("--policy", "fifo", "--policy", "random_match", "--seeds", "1-2")
    runs = replay(campus, *words, "--until", 100_000, "--ledger", tmp_path / "x.sqlite")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "x-fifo-1.sqlite", "x-fifo-2.sqlite", "x-random_match-1.sqlite", "x-random_match-2.sqlite",
    }  # fmt: skip
    assert {Path(run["ledger"]).name for run in runs} == names


def test_shares_are_the_targets_of_fairness(campus: Path) -> None:
    (run,) = replay(campus, "--policy", "fifo", "--shares", "physics=.7,biology=.3")
    target = run["fairness"]["target"]
    assert (target["physics"], target["biology"]) == (0.7, 0.3)
    assert set(target.values()) == {0.7, 0.3, 0.0}


def test_people_get_a_table_with_units(campus: Path) -> None:
    done = outrider("replay", campus, "--policy", "fifo", "--policy", "bandit")
    assert done.code == 0
    for label in ("wait, mean [min]", "overhead, p99 [min]", "energy, wasted [kWh]", "evictions",
                  "jobs unfinished", "ledger_sha256"):  # fmt: skip
        assert label in done.out
    assert done.err == "", "progress is for terminals only"


REFUSED = [
    (("--policy", "bandt"), 'unknown policy "bandt"; did you mean "bandit"?'),
    (("--policy", "bandit", "--set", "bandt.epsilon=.1"), 'did you mean "bandit"?'),
    (("--policy", "bandit", "--set", "bandit.epsilom=.1"), 'did you mean "epsilon"?'),
    (("--policy", "bandit", "--set", "bandit.epsilon=2"), '"epsilon" = 2'),
    (
        ("--policy", "bandit", "--set", "bandit.epsilon=much"),
        '"epsilon" = "much": expected a number',
    ),
    (("--policy", "bandit", "--set", "epsilon=.1"), "contains no policy name"),
    (("--policy", "bandit", "--set", "bandit.epsilon"), "expected policy.key=value"),
    (("--policy", "bandit", "--preset", "bandit=litteral"), 'did you mean "literal"?'),
    (("--policy", "bandit", "--preset", "fifo=literal"), "not in this run"),
    (("--policy", "fifo", "--policy", "fifo"), "given more than once"),
    (("--policy", "fifo", "--seeds", "4-1"), "expected A-B"),
    (("--policy", "fifo", "--seeds", "0-1", "--seed", "0"), "use one of them"),
    (("--policy", "fifo", "--shares", "a=.7,b=.7"), "sum to 1"),
    (("--policy", "fifo", "--shares", "a=nan"), "between 0 and 1"),
    (("--policy", "fifo", "--machines", "10"), "a campus names its machines in machines.csv"),
    (("--policy", "recorded"), "a campus has none"),
]


@pytest.mark.parametrize(("words", "why"), REFUSED)
def test_what_is_wrong_is_refused_with_what_would_be_right(
    campus: Path, words: tuple[str, ...], why: str
) -> None:
    done = outrider("replay", campus, *words)
    assert done.code == 2
    assert why in done.err
    assert done.out == ""


def test_a_bad_row_is_refused_or_left_out_and_counted(campus: Path, tmp_path: Path) -> None:
    for name in ("site.toml", "machines.csv", "owners.csv"):
        (tmp_path / name).write_bytes((campus / name).read_bytes())
    jobs = (campus / "jobs.csv").read_text()
    (tmp_path / "jobs.csv").write_text(f"{jobs}extra,soon,1,,ann,all\n")
    refused = outrider("replay", tmp_path, "--policy", "fifo")
    assert refused.code == 2
    assert 'column "submit_s"' in refused.err
    assert '"soon"' in refused.err
    (run,) = replay(tmp_path, "--policy", "fifo", "--skip-bad")
    assert run["jobs"]["skipped"] == {"jobs.csv: not a number": 1}


def test_the_trace_is_read_once_for_all_policies(
    campus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from outrider.formats.campus import files as campus_files

    read, real = [], campus_files.read_campus

    def counting(folder: Path, *, skip_bad: bool = False) -> Any:
        read.append(folder)
        return real(folder, skip_bad=skip_bad)

    monkeypatch.setattr(campus_files, "read_campus", counting)
    replay(campus, "--policy", "fifo", "--policy", "random_match", "--until", 1000)
    assert read == [campus]


def test_the_output_is_one_json_document(campus: Path) -> None:
    done = shell("replay", campus, "--policy", "fifo", "--json", "--until", 1000)
    assert list(json.loads(done.out)) == ["version", "command", "date", "traces", "runs"]
    assert done.err == ""


def test_progress_is_shown_on_a_terminal_and_kept_out_of_the_output(campus: Path) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        done = subprocess.run(
            [COMMAND, "replay", campus, "--policy", "bandit", "--json"],
            stdout=subprocess.PIPE, stderr=theirs, timeout=WITHIN_S, check=True,
            env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)
        assert b"small bandit 0" in terminal.read(65536)
    assert "runs" in json.loads(done.stdout)
