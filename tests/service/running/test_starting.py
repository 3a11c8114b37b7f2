"""A long start: the page answers, systemd's timeout is extended, and it can be stopped."""

import json
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal
from outrider.model.events import TICK, NamedEvent
from tests.fixtures.cores import T, run_of
from tests.service.running.process import STOP_WITHIN_S
from tests.service.running.small_site import LOG_TABLE, SmallSite

JOBS = 6_000
"""Four inputs each: some seconds for three policies."""
POLICIES = "\n[policies.bandit]\n[policies.survival]\n[policies.random_match]\n"
ADDRESS = re.compile(r"startup_begun.*?address=(\S+)|\"address\": ?\"([^\"]+)\"")
HELLO = ("status", "jobs", "machines", "decisions", "utility")


@pytest.fixture
def site(tmp_path: Path) -> SmallSite:
    """A state directory with a long journal and no snapshot, as after a new release."""
    rows: list[tuple[str, NamedEvent]] = []
    for job in range(JOBS):
        at_s = T + 4.0 * job
        rows += [("log", event) for event in run_of(f"{job}.0", at_s)]
        rows.append(("log", (at_s + 3, TICK, "log", None)))
    state = tmp_path / "state"
    state.mkdir()
    with Journal(state / "journal.sqlite") as journal:
        journal.append(Entry(inputs=rows, cursors={"log": None}))
    made = SmallSite(tmp_path, tables=LOG_TABLE + POLICIES)
    made.log.path.touch()
    return made


def address(site: SmallSite) -> str:
    """Return where the daemon answers as soon as its process is up."""
    deadline_s = time.monotonic() + 60
    while not (found := ADDRESS.search(site.log_text())):
        assert time.monotonic() < deadline_s, site.log_text()[-2000:]
        time.sleep(0.02)
    return f"http://{found[1] or found[2]}"


def ask(url: str) -> tuple[int, str, str | None]:
    """Status, text and Retry-After of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode(), None
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["Retry-After"]


def datagrams(listener: socket.socket) -> Iterator[dict[str, str]]:
    """Return the messages to systemd so far."""
    listener.setblocking(False)
    while True:
        try:
            lines = listener.recv(4096).decode().splitlines()
        except BlockingIOError:
            return
        yield dict(line.partition("=")[::2] for line in lines)


def test_the_daemon_answers_while_it_reads_and_asks_systemd_for_time(
    site: SmallSite, tmp_path: Path
) -> None:
    path = str(tmp_path / "notify")
    site.daemon.environ |= {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        process = site.daemon.spawn()
        try:
            url = address(site)
            while "inputs so far" not in (ready := ask(f"{url}/readyz"))[1]:
                assert ready[0] == 503, "the start was over before it was looked at"
            assert re.search(r"still starting: replaying the journal, [\d,]+ inputs", ready[1])
            assert ask(f"{url}/healthz")[0] == 200
            assert ask(f"{url}/")[0] == 200
            scrape = ask(f"{url}/metrics")[1]
            for name in HELLO:
                code, text, again_s = ask(f"{url}/api/v1/{name}")
                assert (code, again_s) == (503, "5")
                assert json.loads(text)["error"].startswith("still starting: ")
            ratio = re.findall(r"^outrider_start_ratio (\S+)", scrape, re.MULTILINE)
            assert 0 < float(ratio[0]) < 1
            assert not re.search(r"^outrider_(jobs|events_total|ledger_rows)", scrape, re.MULTILINE)
            deadline_s = time.monotonic() + 120
            while ask(f"{url}/readyz")[0] != 200:
                assert time.monotonic() < deadline_s
                time.sleep(0.2)
            assert json.loads(ask(f"{url}/api/v1/status")[1])["jobs"]["completed"] == JOBS
            assert "outrider_start_ratio 1.0" in ask(f"{url}/metrics")[1]
            messages = list(datagrams(listener))
            ready_at = next(n for n, message in enumerate(messages) if "READY" in message)
            extended = messages[:ready_at]
            assert len(extended) >= 2
            for message in extended:
                assert int(message["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
                assert message["WATCHDOG"] == "1"
                assert message["STATUS"].startswith("still starting: ")
            assert not any("EXTEND_TIMEOUT_USEC" in message for message in messages[ready_at:])
            assert site.daemon.stop() == 0
        finally:
            process.kill()
            process.wait()


def test_a_start_that_is_told_to_stop_ends_at_once_and_the_next_one_does_it_all(
    site: SmallSite,
) -> None:
    process = site.daemon.spawn()
    try:
        url = address(site)
        while "inputs so far" not in (ready := ask(f"{url}/readyz"))[1]:
            assert ready[0] == 503, "the start was over before it was looked at"
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_WITHIN_S) == 0
        assert "stop requested while starting" in site.log_text()
    finally:
        process.kill()
        process.wait()
    with site.daemon as daemon:
        assert daemon.status()["jobs"]["completed"] == JOBS
        assert daemon.stop() == 0
