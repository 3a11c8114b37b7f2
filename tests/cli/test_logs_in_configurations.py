"""`outrider check-config` and `outrider doctor` on logs that are none."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.cli.doctor import sources
from tests.cli.running import outrider
from tests.fixtures.forbidden import forbidden

RECORD = "000 (001.000.000) 2026-11-21 10:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n"
TABLE = """\
state_dir = "{folder}/state"
listen = "127.0.0.1:0"
[adapters.pool]
type = "logtail"
paths = ["{folder}/EventLog", "{folder}/*.userlog"]
"""


def text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 10)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with a log that exists."""
    (tmp_path / "one.userlog").write_text(RECORD)
    path = tmp_path / "outrider.toml"
    path.write_text(TABLE.format(folder=tmp_path))
    return path


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "EventLog is not there"),
        (os.mkdir, "EventLog: Is a directory, not a file"),
        (os.mkfifo, "EventLog: Is a FIFO, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "EventLog: Is a character device, not a file"),
        (forbidden, "EventLog: Permission denied"),
        (text, "EventLog: no log reader recognises it"),
    ],
    ids=["missing", "directory", "fifo", "device", "forbidden", "text"],
)
def test_a_log_that_is_none_is_a_warning(
    config: Path, make: Callable[[Path], object], why: str
) -> None:
    make(config.parent / "EventLog")
    done = outrider("check-config", config)
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith("warning")]
    assert "adapter pool" in line
    assert why in line
    (told,) = outrider("check-config", config, "--json").json()["warnings"]
    assert why in told
    code, checks = outrider("doctor", "--config", config, "--json")[:2]
    (found,) = [c for c in json.loads(checks)["checks"] if c["name"] == "adapter pool"]
    assert (code, found["state"]) == (1, "fail")
    assert found["remedy"]


def test_a_log_of_another_format_than_the_one_named_is_a_warning(config: Path) -> None:
    text(config.parent / "EventLog")
    config.write_text(config.read_text() + 'format = "htcondor"\n')
    (told,) = outrider("check-config", config, "--json").json()["warnings"]
    assert "no record at its beginning can be read as htcondor" in told


def test_good_logs_and_empty_ones_are_no_warning_and_a_pattern_without_a_file_is(
    config: Path,
) -> None:
    log = config.parent / "EventLog"
    for content in ("", RECORD, RECORD * 10_000, RECORD + RECORD[:20]):
        log.write_text(content)
        assert outrider("check-config", config, "--json").json()["warnings"] == []
    (config.parent / "one.userlog").unlink()
    (told,) = outrider("check-config", config, "--json").json()["warnings"]
    assert "*.userlog: no file matches it" in told


def test_a_log_that_hangs_is_a_warning_and_fails_the_doctor(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = config.parent / "fifo"
    os.mkfifo(fifo)
    real = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("EventLog"):  # as on a dead mount: blocks in the kernel
            os.close(os.open(fifo, os.O_RDONLY))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(sources, "TIMEOUT_S", 0.5)
    try:
        (told,) = outrider("check-config", config, "--json").json()["warnings"]
        assert "perhaps a dead mount" in told
        done = outrider("doctor", "--config", config)
        assert done.code == 1
        assert "perhaps a dead mount" in done.out
    finally:
        os.close(os.open(fifo, os.O_RDWR))  # whoever blocks goes on
