"""Many runs: failures are reported and tried again, the rest continue, progress is shown."""

from pathlib import Path

import pytest

from outrider_lab.commands.many_runs import progress_of
from outrider_lab.running.progress import BarProgress, Count, LogProgress
from outrider_lab.running.run_all import RunEnd, run_all
from tests.lab.chores import counted_spec, failing_spec


class Clock:
    """Clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ended(error: str | None = None) -> RunEnd:
    return RunEnd(counted_spec(0), None, error, 1)


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_that_fails_once_is_tried_again_after_all_others(tmp_path: Path) -> None:
    specs = [failing_spec(tmp_path / "note", times=1), counted_spec(1)]
    seen: list[tuple[str | None, bool]] = []

    class Watch(Count):
        def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
            super().ended(end, is_last_attempt)
            seen.append((end.error, is_last_attempt))

    watch = Watch()
    first, second = run_all(specs, 1, None, watch, retries=1)
    assert (first.error, first.attempts) == (None, 2)
    assert (second.error, second.attempts) == (None, 1)
    assert seen == [("RuntimeError: not now", False), (None, True), (None, True)]
    assert (watch.done, watch.failed) == (2, 0)


def test_a_run_that_fails_to_the_last_is_told_once_with_its_error(tmp_path: Path) -> None:
    watch = Count()
    specs = [failing_spec(tmp_path / "note", times=9), counted_spec(1)]
    failed, good = run_all(specs, 2, None, watch, retries=2)
    assert (failed.error, failed.attempts) == ("RuntimeError: not now", 3)
    assert good.result["number"] == 1
    assert (watch.done, watch.failed) == (2, 1)


# -- progress -----------------------------------------------------------------------------------


def test_the_time_left_follows_the_pace_of_the_runs_that_were_made() -> None:
    clock = Clock()
    count = Count(clock)
    count.begin(runs=10, kept=4)
    assert count.left_s is None, "what was known before has no pace"
    clock.now += 60.0
    count.ended(ended(), is_last_attempt=True)
    count.ended(ended("broke"), is_last_attempt=True)
    assert count.left_s == pytest.approx(120.0)
    assert count.words() == "6 of 10 runs done (4 known before), 1 failed, 2.0 min left"


def test_a_log_gets_a_line_now_and_then_and_none_of_what_is_short() -> None:
    clock, lines = Clock(), list[str]()
    log = LogProgress("drift", lines.append, every_s=30.0, clock=clock)
    log.begin(runs=100, kept=0)
    for _ in range(60):
        clock.now += 1.0
        log.ended(ended(), is_last_attempt=True)
    assert lines == [
        "drift: 30 of 100 runs done, 70 s left",
        "drift: 60 of 100 runs done, 40 s left",
    ]


def test_a_terminal_is_shown_every_run_and_what_was_known_before() -> None:
    shown: list[tuple[float, str]] = []
    bar = BarProgress(lambda ratio, words: shown.append((ratio, words)))
    bar.begin(runs=4, kept=1)
    bar.ended(ended("broke"), is_last_attempt=False)
    bar.ended(ended(), is_last_attempt=True)
    assert [ratio for ratio, _ in shown] == [0.25, 0.25, 0.5]
    assert shown[0][1] == "1 of 4 runs done (1 known before)"


def test_on_a_terminal_there_is_a_bar_and_elsewhere_there_are_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_of("drift") as progress:
        assert isinstance(progress, LogProgress)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_of("drift") as progress:
        assert isinstance(progress, BarProgress)
        progress.begin(runs=2, kept=0)
        progress.ended(ended(), is_last_attempt=True)
    assert "1 of 2 runs done" in capsys.readouterr().err
