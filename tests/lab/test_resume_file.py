"""Finished runs outlive whatever stops a command, and are recognised by what determines them."""

import json
from pathlib import Path
from typing import Any

import pytest

from outrider.model.errors import ConfigurationError
from outrider_lab.running.resume_file import ResumeFile
from outrider_lab.running.run_all import RunEnd, run_all
from tests.lab.chores import counted_spec

SPECS = [counted_spec(number) for number in range(3)]


def run(path: Path, resume: bool | None, numbers: range = range(3)) -> list[RunEnd]:
    """Return the ends of the runs."""
    with ResumeFile(path, resume) as kept:
        return run_all([SPECS[number] for number in numbers], 1, kept)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the runs in the file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_is_kept_is_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run(path, None, range(1, 2))
    (line,) = lines(path)
    path.write_text(json.dumps(line | {"result": {"marked": True}}) + "\n")
    ends = run(path, resume=True)
    assert [end.spec for end in ends] == SPECS
    assert ends[1].result == {"marked": True}
    assert [ends[n].result["number"] for n in (0, 2)] == [0, 2]
    assert sorted(one["key"] for one in lines(path)) == sorted(spec.key for spec in SPECS)


def test_a_last_line_cut_off_by_a_kill_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    whole = run(path, None)
    path.write_bytes(path.read_bytes()[:-10])
    assert run(path, resume=True) == whole
    assert len(lines(path)) == len(SPECS)


def test_results_that_are_read_back_are_those_of_the_run_to_the_last_type(tmp_path: Path) -> None:
    """Undefined and infinite figures among them, which JSON alone has not."""
    path = tmp_path / "runs.jsonl"
    fresh = [end.result for end in run(path, None)]
    again = [end.result for end in run(path, resume=True)]
    assert repr(again) == repr(fresh)
    assert repr(fresh[0]) == "{'number': 0, 'ratio': nan, 'most': inf, 'parts': [1, 2.5]}"


def test_runs_are_there_and_nobody_said_what_to_do_with_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run(path, None)
    with pytest.raises(ConfigurationError, match=r"runs\.jsonl: holds 3 .*--resume.*--no-resume"):
        run(path, None)
    assert len(lines(path)) == len(SPECS)


def test_to_begin_anew_forgets_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run(path, None)
    first = lines(path)[0]
    path.write_text(json.dumps(first | {"result": {"marked": True}}) + "\n")
    assert [end.result["number"] for end in run(path, resume=False)] == [0, 1, 2]


def test_runs_of_another_command_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run(path, None)
    with pytest.raises(ConfigurationError, match="holds a run of fifo, seed 0, on counted-0"):
        run(path, resume=True, numbers=range(1, 3))
    assert len(lines(path)) == len(SPECS)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}", r"jsonl:1: no finished run; expected"),
        ("{", r"jsonl:1: .*; expected"),
        ('{"key": 1, "run": "", "version": "", "attempts": 1, "result": 0}', '"key" is 1'),
        (
            json.dumps(
                {"key": SPECS[0].key, "run": "it", "version": "0.0", "attempts": 1, "result": 0}
            ),
            "it was made by Outrider 0.0",
        ),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ConfigurationError, match=told):
        run(path, resume=True)


def test_an_empty_file_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    with ResumeFile(path, None) as kept:
        run_all(SPECS[:1], 1, kept)
        kept.clear()
    assert not path.exists()


def test_two_commands_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with ResumeFile(path, None), pytest.raises(ConfigurationError, match="another process"):
        run(path, resume=True)
