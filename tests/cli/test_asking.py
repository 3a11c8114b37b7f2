"""`outrider status` and `outrider explain` with a running daemon, its journal, or neither."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from outrider.cli.daemon import decoded
from outrider.cli.recorded_commands import limit_in_words
from outrider.journal import Entry, Journal, RunRecord
from outrider.model.errors import PeerError
from outrider.service.shapes.values import ModeLimit
from tests.cli.running import get, outrider
from tests.service.web.small_answers import STATUS

NOBODY = "http://127.0.0.1:9"  # the discard port: nobody listens


@pytest.fixture
def journal(campus: Path, tmp_path: Path) -> Path:
    """A journal where a daemon would leave it, in a state directory."""
    (tmp_path / "state").mkdir()
    file = tmp_path / "state" / "journal.sqlite"
    outrider("replay", campus, "--policy", "bandit", "--until", 200_000, "--ledger", file)
    return file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a daemon that is not running."""
    file = tmp_path / "outrider.toml"
    file.write_text(
        f'state_dir = "{tmp_path / "state"}"\nlisten = "127.0.0.1:9"\n'
        '[adapters.logtail]\npaths = ["EventLog"]\n'
    )
    return file


def test_status_prints_what_the_daemon_answers(demo_url: str) -> None:
    told = outrider("status", "--url", demo_url, "--json").json()
    asked = get(f"{demo_url}/api/v1/status")
    assert set(told) == set(asked)
    assert told["mode"] == "shadow"
    assert told["jobs"]["submitted"] > 0


def test_status_begins_with_the_mode(demo_url: str) -> None:
    done = outrider("status", "--url", demo_url)
    assert done.code == 0
    assert done.out.startswith("mode       shadow since ")
    for word in ("jobs now", "wait", "kWh", "fairness", "policy     bandit (shadow)", "journal"):
        assert word in done.out


def test_status_of_nobody_is_a_peer_away() -> None:
    done = outrider("status", "--url", NOBODY)
    assert done.code == 3
    assert "no daemon answers" in done.err
    assert done.out == ""


def test_the_address_comes_from_the_configuration(config: Path) -> None:
    done = outrider("status", "--config", config)
    assert done.code == 3
    assert "http://127.0.0.1:9:" in done.err
    assert outrider("status", "--config", config, "--url", NOBODY).code == 2


def test_explain_tells_what_the_daemon_knows(demo_url: str) -> None:
    rows = get(f"{demo_url}/api/v1/decisions?limit=1")["decisions"]
    job = rows[0]["job"]
    told = outrider("explain", job, "--url", demo_url, "--json").json()
    assert told["job"] == job
    assert told["mode"] == "shadow"
    assert told["source"] in ("daemon", "ledger")
    assert any(row["job"] == job for row in told["decisions"])
    people = outrider("explain", job, "--url", demo_url)
    assert people.out.startswith(f"{job} ")
    assert "in shadow mode" in people.out
    assert "would" in people.out


def test_an_unknown_job_is_a_no(demo_url: str) -> None:
    done = outrider("explain", "no/such job?", "--url", demo_url, "--json")
    assert done.code == 1
    told = json.loads(done.out)
    assert told["job"] == "no/such job?"
    assert "error" in told


def test_explain_reads_the_ledger_where_no_daemon_answers(config: Path, journal: Path) -> None:
    exported = outrider("ledger", journal, "--export", "jsonl").out
    rows = [json.loads(line) for line in exported.splitlines()]
    job = rows[-1]["job"]
    told = outrider("explain", job, "--config", config, "--json").json()
    assert told["source"] == "ledger"
    assert told["decisions"] == [row for row in rows if row["job"] == job][-50:]
    (policy,) = told["policies"]
    assert (policy["name"], policy["seq"]) == ("bandit", rows[-1]["seq"])
    assert policy["decided_s"] == rows[-1]["time_s"]
    assert policy["scores"] == rows[-1]["scores"]
    text = outrider("explain", job, "--config", config).out
    assert "From the journal, whose last entry was written in active mode." in text


def test_a_job_that_no_row_knows_is_a_no(config: Path, journal: Path) -> None:
    done = outrider("explain", "nobody", "--config", config)
    assert done.code == 1
    assert "no decision about nobody" in done.out
    assert outrider("explain", "nobody", "--ledger", journal).code == 1


def test_neither_daemon_nor_ledger_is_a_peer_away(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = outrider("explain", "1.0", "--config", config)
    assert done.code == 3
    assert "no such journal" in done.err
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "elsewhere"))
    assert outrider("explain", "1.0", "--url", NOBODY).code == 3


class Stranger(BaseHTTPRequestHandler):
    """Some other service on the port."""

    says = b"<html>It works!</html>"

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.says)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Write no access log."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that ends with the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def answer_in_json(handler: BaseHTTPRequestHandler, answer: object) -> None:
    """Answer as a daemon does."""
    body = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of a server that is not Outrider."""
    with serving(Stranger) as url:
        yield url


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("table", "12.3 kWh useful, 4.5 kWh wasted, from declared watts"),
        ("mixed", "12.3 kWh useful, 4.5 kWh wasted, 44.0 % of all energy measured by meters"),
        ("unknown", "unknown useful, unknown wasted, watts are not known"),
    ],
)
def test_the_energy_says_where_its_watts_come_from(source: str, words: str) -> None:
    answer = STATUS | {"power_source": source, "energy_measured_ratio": 0.44}
    if source == "unknown":
        answer["energy_wh"] = dict.fromkeys(answer["energy_wh"])

    class Told(Stranger):
        says = json.dumps(answer).encode()

    with serving(Told) as url:
        assert words in outrider("status", "--url", url).out


@pytest.mark.parametrize(("vos", "says_so"), [(100, True), (4, False)])
def test_the_status_says_where_fairness_is_degenerate(vos: int, says_so: bool) -> None:
    targets = {f"vo{number}": 1 / vos for number in range(vos)}
    fairness = STATUS["fairness"] | {"target": targets, "share": targets}

    class Told(Stranger):
        says = json.dumps(STATUS | {"fairness": fairness}).encode()

    with serving(Told) as url:
        out = outrider("status", "--url", url).out
    assert ("fairness is degenerate: 100 VOs have a target of 1.00% each" in out) == says_so


def test_a_stranger_on_the_port_is_not_taken_for_a_daemon(stranger: str) -> None:
    done = outrider("status", "--url", stranger)
    assert done.code == 3
    assert "is not an Outrider server" in done.err


def test_a_proxy_for_the_wide_world_is_not_asked(
    demo_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", NOBODY)
    assert outrider("status", "--url", demo_url, "--json").code == 0


@pytest.mark.parametrize(
    "url", ["127.0.0.1:9690", "file:///x", "http://[", "http://", "http://h:x"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    done = outrider("status", "--url", url)
    assert done.code == 2
    assert "expected one like http://127.0.0.1:9690" in done.err


def test_a_job_of_which_the_ledger_has_only_runs_is_explained_by_them(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    lost = RunRecord("ap1#7.0", "all", "batch", "m1", 1, None, 1.8e9, 1.8e9 + 7200, 7200.0, "owner")
    done = RunRecord("ap1#7.0", "all", "batch", "m2", 1, None, 1.9e9, 1.9e9 + 60, 60.0)
    with Journal(path) as journal:
        journal.append(Entry(runs=[lost, done]))
    told = outrider("explain", "7", "--ledger", path, "--json").json()
    assert [run["lost_because"] for run in told["runs"]] == ["owner", None]
    assert (told["job"], told["mode"]) == ("ap1#7.0", None)
    out = outrider("explain", "7", "--ledger", path).out
    assert out == (
        "ap1#7.0, by the journal: it completed on m2 after 2 runs.\n"
        "  ran on m1 from 2027-01-15 08:00:00 UTC for 2.0 h: evicted: the owner of the machine "
        "returned\n"
        "  ran on m2 from 2030-03-17 17:46:40 UTC for 60 s: completed\n"
        "  From the journal. --verbose shows the numbers.\n"
    )


def test_explain_understands_an_older_daemon_that_sends_no_texts() -> None:
    policy: dict[str, object] = {
        "name": "bandit", "action": "defer", "reason": "hold", "explanation": "waits for 13 h",
        "decided_s": None, "until_s": None, "propensity": None, "scores": {},
    }  # fmt: skip
    told = {
        "job": "9.0", "mode": "shadow", "timezone": "UTC", "source": "daemon",
        "sentence": "9.0 waits.",
        "waiting_s": 60.0, "policies": [policy], "decisions": [], "runs": [{"machine": "m1"}],
    }  # fmt: skip

    class Older(Stranger):
        says = json.dumps(told).encode()

    with serving(Older) as url:
        done = outrider("explain", "9.0", "--url", url)
    assert done.code == 0
    assert done.out == (
        "9.0 waits.\n  waits for 13 h\n  waiting for 60 s\n"
        "  From the daemon, which runs in shadow mode. --verbose shows the numbers.\n"
    )


def test_what_levers_do_is_told_in_a_mode_that_acts() -> None:
    lever = {
        "name": "leased_attributes", "actions": ["start", "defer"], "lease_s": 300.0,
        "standing": {"start": 1_200, "defer": 3}, "problem": "",
        "changes": {"applied": 1_210, "renewed": 88_000, "refused": 0},
    }  # fmt: skip

    class Told(Stranger):
        says = json.dumps(STATUS | {"mode": "active", "levers": [lever]}).encode()

    with serving(Told) as url:
        told = outrider("status", "--url", url).out
    assert (
        "lever      leased_attributes: active leases 1,200 start, 3 defer; "
        "1,210 applied, 88,000 renewed\n" in told
    )


LIMIT = {
    "most": "shadow", "at_s": 1.8e9, "was": "canary", "by": "command", "why": "a new server",
    "uid": 1000, "user": "ann",
}  # fmt: skip


def test_an_answer_is_read_without_what_only_a_newer_daemon_sends() -> None:
    limit = decoded(LIMIT | {"until_s": 1.9e9}, ModeLimit)
    assert limit_in_words(limit, "UTC") == (
        "at most shadow, by a command by ann (1000) on 2027-01-15 08:00:00 UTC: a new server"
    )


def test_an_answer_that_has_not_its_shape_is_refused_by_the_name_of_the_field() -> None:
    without = {name: value for name, value in LIMIT.items() if name != "most"}
    with pytest.raises(PeerError, match="missing required field `most`; use the outrider that"):
        decoded(without, ModeLimit)


def test_the_status_shows_the_limit_of_the_mode() -> None:
    class Told(Stranger):
        says = json.dumps(STATUS | {"configured_mode": "active", "mode_limit": LIMIT}).encode()

    with serving(Told) as url:
        out = outrider("status", "--url", url).out
    assert (
        "           configured: active; at most shadow, by a command by ann (1000) on "
        "2027-01-15 08:00:00 UTC: a new server\n" in out
    )
