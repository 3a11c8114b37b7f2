"""`outrider doctor`: each thing the daemon needs, found or missing, with the remedy."""

import json
import socket
from pathlib import Path
from typing import Any, ClassVar

import pytest

from outrider.cli.configuration import load
from outrider.cli.doctor import checks as doctor_checks
from outrider.journal import Entry, Journal
from outrider.model.decisions import DecisionRow
from tests.cli.running import outrider, shell
from tests.cli.test_asking import Stranger, serving
from tests.free_port import free_port
from tests.service.running.test_first_looks import BOARD_TABLE, installed

LOG = (
    "000 (001.000.000) 2026-11-21 10:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n"
    "009 (001.000.000) 2026-11-21 10:01:00 Job was aborted by the user.\n...\n"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with all that a daemon needs."""
    (tmp_path / "EventLog").write_text(LOG)
    (tmp_path / "state").mkdir()
    (tmp_path / "outrider.toml").write_text(
        f'state_dir = "{tmp_path / "state"}"\nlisten = "127.0.0.1:{free_port()}"\n'
        f'[adapters.pool]\ntype = "logtail"\npaths = ["{tmp_path / "EventLog"}"]\n'
    )
    return tmp_path


def checks(site: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    done = outrider("doctor", "--config", site / "outrider.toml", "--json")
    told = json.loads(done.out)
    assert told["ok"] == (done.code == 0)
    return done.code, {check["name"]: check for check in told["checks"]}


def test_a_healthy_site_has_all_it_needs(site: Path) -> None:
    code, found = checks(site)
    states = {name: check["state"] for name, check in found.items() if name != "systemd"}
    assert states == dict.fromkeys(
        ("plugins", "configuration", "state directory", "free space", "journal", "clock", "port",
         "adapter pool"), "ok",
    )  # fmt: skip
    assert code == 0
    assert "2 events" in found["adapter pool"]["found"]


def test_an_adapter_that_nobody_configured_may_lack_its_package(
    site: Path, without_bindings: Path
) -> None:
    words = ("doctor", "--config", site / "outrider.toml")
    unused = shell(*words, PYTHONPATH=str(without_bindings))
    assert unused.code == 0
    assert "warn" not in unused.out.replace("warn  systemd", "")

    with (site / "outrider.toml").open("a") as config:
        config.write("[adapters.mock_condor]\n")
    used = shell(*words, PYTHONPATH=str(without_bindings))
    assert used.code == 1
    told = next(line for line in used.out.splitlines() if "adapter mock_condor" in line)
    assert told.startswith("fail")
    assert "pip install 'outrider[htcondor]'" in told


def test_people_read_one_line_a_check(site: Path) -> None:
    done = outrider("doctor", "--config", site / "outrider.toml")
    assert done.code == 0
    assert "ok    configuration: " in done.out
    assert done.out.endswith("the daemon has all it needs\n")


def test_every_failure_has_a_remedy(site: Path) -> None:
    (site / "EventLog").unlink()
    (site / "state" / "journal.sqlite").write_bytes(b"no journal at all" * 100)
    code, found = checks(site)
    assert code == 1
    failed = {name: check for name, check in found.items() if check["state"] == "fail"}
    assert set(failed) == {"journal", "adapter pool"}
    assert all(check["remedy"] for check in failed.values())
    assert "no such file" in failed["adapter pool"]["found"]


def test_a_wrong_configuration_fails_and_ends_the_examination(site: Path) -> None:
    (site / "outrider.toml").write_text('mdoe = "shadow"\n')
    code, found = checks(site)
    assert code == 1
    assert 'did you mean "mode"?' in found["configuration"]["found"]
    assert "port" not in found


def test_a_stranger_on_the_port_is_found(site: Path) -> None:
    text = (site / "outrider.toml").read_text()
    port = int(text.partition("127.0.0.1:")[2].partition('"')[0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        code, found = checks(site)
    assert code == 1
    assert found["port"]["state"] == "fail"
    assert "no Outrider answers there" in found["port"]["found"]


def test_a_running_daemon_is_recognised(site: Path, demo_url: str) -> None:
    text = (site / "outrider.toml").read_text()
    port = text.partition("127.0.0.1:")[2].partition('"')[0]
    (site / "outrider.toml").write_text(text.replace(port, demo_url.rpartition(":")[2]))
    _, found = checks(site)
    assert found["port"]["state"] == "ok"
    assert "a daemon answers there, in mode shadow" in found["port"]["found"]


class Starting(Stranger):
    """A daemon that reads its journal, then has no adapter yet, then has one that is up."""

    answers: ClassVar[list[tuple[int, dict[str, object]]]] = []

    def do_GET(self) -> None:  # noqa: N802 - as the base class names it
        code, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


UP = {"label": "pool", "up": True, "input_age_s": 0.0, "events": {}, "problem": ""}
STARTS: tuple[int, dict[str, object]] = (503, {"error": "reading the journal: 40 %"})


def starting_daemon(site: Path, *says: tuple[int, dict[str, object]]) -> dict[str, Any] | None:
    """The status that the doctor takes from a daemon that gives these answers in turn."""
    text = (site / "outrider.toml").read_text()
    port = text.partition("127.0.0.1:")[2].partition('"')[0]
    with serving(type("Answering", (Starting,), {"answers": list(says)})) as url:
        (site / "outrider.toml").write_text(text.replace(port, url.rpartition(":")[2]))
        return doctor_checks.running_daemon(load(site / "outrider.toml"))


def test_a_daemon_that_has_just_started_is_waited_for(site: Path) -> None:
    says: list[dict[str, object]] = [
        {"mode": "shadow"},
        {"mode": "shadow", "adapters": []},
        {"mode": "shadow", "adapters": [UP]},
    ]
    assert starting_daemon(site, STARTS, *((200, one) for one in says)) == says[-1]


def test_a_daemon_that_goes_on_starting_is_not_taken_for_none(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_checks, "_FIRST_ANSWERS_S", 0.0)
    found = starting_daemon(site, STARTS)
    assert found is not None
    [adapter] = found["adapters"]
    assert (adapter["label"], adapter["up"]) == ("pool", False)
    assert adapter["problem"].startswith("the daemon is still starting: ")
    assert adapter["problem"].endswith("reading the journal: 40 %")


def test_records_that_cannot_be_read_are_a_warning(site: Path) -> None:
    with (site / "EventLog").open("a") as log:
        log.write("rubbish\n...\n" + LOG.replace("(001.", "(002."))
    code, found = checks(site)
    assert code == 0
    assert found["adapter pool"]["state"] == "warn"
    assert "could not be read" in found["adapter pool"]["found"]


@pytest.mark.parametrize(
    ("takes_s", "state", "answer"), [(2.5, "ok", "4 events"), (9, "warn", "has not answered")]
)
def test_a_source_that_took_its_time_is_well_and_one_that_has_not_answered_is_not(
    site: Path, takes_s: float, state: str, answer: str
) -> None:
    with (site / "outrider.toml").open("a") as config:
        config.write(BOARD_TABLE)
    words = ("doctor", "--config", site / "outrider.toml", "--json")
    told = json.loads(shell(*words, **installed(site, takes_s)).out)
    board = next(check for check in told["checks"] if check["name"] == "adapter board")
    assert board["state"] == state
    assert answer in board["found"]


def test_a_journal_from_the_future_is_a_warning(site: Path) -> None:
    ahead = DecisionRow(4e9, "1.0", "defer", None, 1, "hold", "bandit", "shadow")
    with Journal(site / "state" / "journal.sqlite") as journal:
        journal.append(Entry(decisions=[ahead]))
    _, found = checks(site)
    assert found["clock"]["state"] == "warn"
    assert "2096" in found["clock"]["found"]
    assert found["journal"]["state"] == "ok"


def test_the_doctor_changes_nothing(site: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}
    checks(site)
    after = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}
    assert after == before
