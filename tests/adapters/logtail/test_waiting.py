"""Tests that logs are polled if inotify is unavailable, and that a log line explains it."""

import errno
import resource
from pathlib import Path

import pytest
import structlog

from outrider_adapters.logtail.waiting import (
    PollingWaiting,
    log_polling,
    waiting,
)


def test_without_a_descriptor_left_it_polls_and_says_why() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # the kernel itself refuses
    try:
        with structlog.testing.capture_logs() as lines:
            made, note = waiting(True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert isinstance(made, PollingWaiting)
    assert "Too many open files" in note
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("inotify_unavailable", "warning")
    assert line["error"] == "Too many open files"
    assert "max_user_instances" in line["hint"]


def test_who_asks_for_polling_gets_it_without_a_word() -> None:
    with structlog.testing.capture_logs() as lines:
        made, note = waiting(False)
    assert isinstance(made, PollingWaiting)
    assert (note, lines) == ("", [])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_path_that_cannot_be_watched_is_told_once(code: int) -> None:
    error = OSError(code, "no")
    with structlog.testing.capture_logs() as lines:
        assert log_polling(error, Path("/logs/a"), is_logged=False)
        assert log_polling(error, Path("/logs/b"), is_logged=True)
    (line,) = lines
    assert (line["event"], line["path"], line["error"]) == ("log_watch_failed", "/logs/a", "no")


def test_a_log_that_is_not_there_yet_is_no_fault() -> None:
    with structlog.testing.capture_logs() as lines:
        missing = FileNotFoundError(errno.ENOENT, "No such file")
        assert not log_polling(missing, Path("/logs/later"), is_logged=False)
    assert lines == []
