"""Log lines: each has the mode, from any logger, in a format for its reader."""

import io
import json
import logging
import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import aiohttp
import pytest
import structlog
from aiohttp import web

from outrider.service.host.logs import Mode, Style, is_journal, set_up_logs
from tests.logs_as_before import logs_as_before

__all__ = ["logs_as_before"]

pytestmark = pytest.mark.usefixtures("logs_as_before")


def begin(style: Style, mode: str = "shadow", level: str = "info") -> tuple[io.StringIO, Mode]:
    stream = io.StringIO()
    holder = Mode(mode)
    set_up_logs(holder, level, style, stream)
    return stream, holder


def test_a_journal_line_has_priority_event_mode_and_fields() -> None:
    stream, _ = begin("journal")
    structlog.get_logger().info("adapter_started", adapter="campus", cursor=17, note="two words")
    expected = '<6>adapter_started mode=shadow adapter=campus cursor=17 note="two words"\n'
    assert stream.getvalue() == expected


@pytest.mark.parametrize(
    ("level", "priority"),
    [("debug", 7), ("info", 6), ("warning", 4), ("error", 3), ("critical", 2)],
)
def test_the_journal_gets_syslog_priorities(level: str, priority: int) -> None:
    stream, _ = begin("journal", level="debug")
    getattr(structlog.get_logger(), level)("meet_trouble")
    assert stream.getvalue() == f"<{priority}>meet_trouble mode=shadow\n"


def test_every_line_of_a_traceback_keeps_its_priority_in_the_journal() -> None:
    stream, _ = begin("journal")
    try:
        raise ValueError("watts of lab-3\nare missing")
    except ValueError:
        structlog.get_logger().exception("read_machines")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "<3>read_machines mode=shadow"
    assert lines[1] == "<3>Traceback (most recent call last):"
    assert lines[-2:] == ["<3>ValueError: watts of lab-3", "<3>are missing"]
    assert all(line.startswith("<3>") for line in lines)


@pytest.mark.parametrize("style", ["journal", "json"])
def test_a_value_cannot_forge_a_line(style: Style) -> None:
    stream, _ = begin(style)
    evil = "x\n<0>panic mode=active\r\x1b[2J"
    structlog.get_logger().info("reject_record", job=evil, **{"odd key\n": 1})
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line


def test_a_json_line_is_an_object_with_time_level_event_and_mode() -> None:
    stream, _ = begin("json")
    structlog.get_logger().warning("adapter_down", age_s=float("nan"), path=Path("/var/log/x"))
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "adapter_down",
        "level": "warning",
        "mode": "shadow",
        "age_s": None,
        "path": "PosixPath('/var/log/x')",
    }


def test_a_name_that_was_no_text_still_makes_a_json_line() -> None:
    stream, _ = begin("json")
    structlog.get_logger().info("join_machine", machine="caf\udce9")
    assert json.loads(stream.getvalue())["machine"] == "caf\udce9"


def test_a_person_reads_plain_lines_without_colours_where_there_is_no_terminal() -> None:
    stream, _ = begin("console")
    structlog.get_logger().info("adapter_started", adapter="campus")
    text = stream.getvalue()
    assert "adapter_started" in text
    assert "adapter=campus" in text
    assert "mode=shadow" in text
    assert "\x1b" not in text


def test_a_change_of_mode_shows_in_the_next_line_of_a_logger_already_in_use() -> None:
    stream, holder = begin("journal", mode="observe")
    log = structlog.get_logger().bind(adapter="campus")
    log.info("take_events")
    holder.name = "shadow"
    log.info("take_events")
    assert stream.getvalue().splitlines() == [
        "<6>take_events mode=observe adapter=campus",
        "<6>take_events mode=shadow adapter=campus",
    ]


def test_nobody_can_say_another_mode_than_the_daemon_is_in() -> None:
    stream, _ = begin("json")
    structlog.get_logger().info("take_events", mode="active")
    assert json.loads(stream.getvalue())["mode"] == "shadow"


def test_lines_below_the_level_are_not_written() -> None:
    stream, _ = begin("journal", level="warning")
    structlog.get_logger().info("take_events")
    logging.getLogger("aiohttp.access").info("GET /")
    assert stream.getvalue() == ""


def test_setting_up_again_replaces_and_does_not_double() -> None:
    first, _ = begin("journal")
    log = structlog.get_logger()
    log.info("begin_reload")
    second, _ = begin("journal", mode="observe")
    log.info("end_reload")
    assert first.getvalue() == "<6>begin_reload mode=shadow\n"
    assert second.getvalue() == "<6>end_reload mode=observe\n"


def test_warnings_of_python_become_log_lines() -> None:
    stream, _ = begin("json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old habit", stacklevel=1)
    line = json.loads(stream.getvalue())
    assert (line["event"], line["logger"], line["level"]) == (
        "library_message_relayed",
        "py.warnings",
        "warning",
    )
    assert "old habit" in line["message"]


async def test_a_fault_in_an_aiohttp_handler_is_logged_with_mode_and_traceback() -> None:
    stream, _ = begin("json")

    async def fail(request: web.Request) -> web.Response:
        raise LookupError("no such job")

    app = web.Application()
    app.router.add_get("/", fail)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        _, port = runner.addresses[0][:2]
        address = f"http://127.0.0.1:{port}/"
        async with aiohttp.ClientSession() as session, session.get(address) as response:
            assert response.status == 500
    finally:
        await runner.cleanup()
    line = json.loads(stream.getvalue())
    assert (line["event"], line["logger"], line["mode"]) == (
        "library_message_relayed",
        "aiohttp.server",
        "shadow",
    )
    assert "LookupError: no such job" in line["exception"]


def test_the_journal_is_known_by_device_and_inode() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("w") as stream:
        status = os.fstat(stream.fileno())
        assert is_journal(stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        assert not is_journal(stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino + 1}"})
        assert not is_journal(stream, {})
    assert not is_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})


DAEMON = """
import os, sys, structlog
from outrider.service.host.logs import Mode, set_up_logs
status = os.fstat(2)
if sys.argv[1] == "journal":
    os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
set_up_logs(Mode("shadow"))
structlog.get_logger().info("adapter_started", adapter="campus")
"""


@pytest.mark.parametrize("reader", ["journal", "person"])
def test_standard_error_is_written_for_whoever_reads_it(reader: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DAEMON, reader],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    journal_line = "<6>adapter_started mode=shadow adapter=campus\n"
    assert (ran.stderr == journal_line) == (reader == "journal")
    assert "mode=shadow" in ran.stderr
    assert ran.stdout == ""
