"""`outrider report`: files, JSON, and clear errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from outrider.cli.tables import columns_of
from outrider.journal import Journal
from outrider.service.twin import twin_file
from outrider.service.twin.cycle import no_answer
from tests.cli.running import outrider
from tests.report.journals import HOUR_S, MONDAY_S, job, machine, write

WATTS: dict[str, Any] = {"active_w": 100.0, "idle_w": 10.0}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write a journal with runs that completed and runs that were evicted."""
    events = [
        machine("m1", **WATTS),
        *job("j1", "alice", 1, [(1, "m1", 3, "owner"), (4, "m1", 6, None)]),
    ]
    return write(tmp_path / "journal.sqlite", events, last_h=200)


def without_date(report: Any) -> Any:
    return {name: value for name, value in report.items() if name not in ("date", "command")}


def test_files_are_written_for_the_last_whole_week_and_the_json_is_the_same(
    journal: Path, tmp_path: Path
) -> None:
    out = tmp_path / "reports"
    words = ("report", journal, "--price-per-kwh", 0.3, "--co2-g-per-kwh", 400, "--out", out)
    report = outrider(*words, "--json").json()
    (page,), (document,) = out.glob("*.html"), out.glob("*.json")
    assert page.name == "outrider-report-2026-03-02_2026-03-09.html"
    written = list(out.iterdir())
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
    assert json.loads(document.read_text()) == report
    assert report["was"]["badput_h"] == 2
    assert report["traces"][0]["path"] == str(journal)
    assert "How this page was made" in page.read_text()
    shown = outrider(*words)
    assert "Energy drawn by all machines in this window" in shown.out
    assert str(page) in shown.out
    assert sorted(out.iterdir()) == sorted(written)


@pytest.mark.parametrize("table", ["vo", "user", "machine", "job"])
def test_beside_the_page_each_table_stands_as_the_command_prints_it(
    journal: Path, tmp_path: Path, table: str
) -> None:
    outrider("report", journal, "--price-per-kwh", 0.3, "--out", tmp_path)
    every = ",".join(columns_of(table))
    printed = outrider(
        "report", journal, "--price-per-kwh", 0.3, "--table", table, "--csv", "-o", every
    )
    (file,) = tmp_path.glob(f"*-{table}.csv")
    assert file.read_text() == printed.out
    assert len(printed.out.splitlines()) > 1


def test_the_same_journal_gives_the_same_report(journal: Path, tmp_path: Path) -> None:
    report = [outrider("report", journal, "--json").json() for _ in range(2)]
    assert without_date(report[0]) == without_date(report[1])
    pages = []
    for name in ("a", "b"):
        assert outrider("report", journal, "--out", tmp_path / name).code == 0
        (page,) = (tmp_path / name).glob("*.html")
        pages.append(page.read_text().partition("How this page was made")[0])
    assert pages[0] == pages[1]


def test_the_twins_answer_is_taken_from_its_file(journal: Path, tmp_path: Path) -> None:
    answer = tmp_path / "twin.json"
    report = outrider("twin", journal, "--policy", "fifo", "--json")
    assert report.code == 0
    answer.write_text(report.out)
    from_file = outrider("report", journal, "--twin", answer, "--json").json()
    assert "no adapter of this journal names a policy" in from_file["would_have_been"]["refused"]
    assert [trace["path"] for trace in from_file["traces"]] == [str(journal), str(answer)]
    asked = outrider("report", journal, "--policy", "fifo", "--json").json()
    assert asked["would_have_been"]["refused"] == from_file["would_have_been"]["refused"]


def test_the_journal_of_a_configuration_is_found_and_its_shares_count(
    journal: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    journal.rename(state / "journal.sqlite")
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'mode = "observe"\nstate_dir = "{state}"\n'
        'shares = { physics = 0.25, biology = 0.75 }\n[adapters.logtail]\npaths = ["/log"]\n'
    )
    report = outrider("report", "--config", config, "--json").json()
    assert report["was"]["fairness"]["target"] == {"biology": 0.75, "physics": 0.25}
    assert report["would_have_been"] is None


def test_the_last_answer_beside_the_daemon_is_shown(journal: Path, tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(
        f'mode = "observe"\nstate_dir = "{tmp_path}"\n[adapters.logtail]\npaths = ["/log"]\n'
    )
    begin_s = MONDAY_S - 20 * HOUR_S
    ratio = {"estimate": 0.5, "low": 0.4, "high": 0.6, "level": 0.9}
    answer: dict[str, Any] = {
        "window": {"begin_s": begin_s, "end_s": begin_s + 9e5}, "incumbent": "fifo",
        "fidelity": None, "refused": None, "past": {"survival": {"badput_ratio": ratio}},
        "next": None,
    }  # fmt: skip
    twin_file.write_plain(tmp_path, {"asked_s": begin_s, "answer": answer})
    report = outrider("report", "--config", config, "--json").json()["would_have_been"]
    # the answer ends after the journal does
    assert report["past"]["survival"]["badput_ratio"]["saved"] is None
    answer["window"]["end_s"] = begin_s + 7e5
    twin_file.write_plain(tmp_path, {"asked_s": begin_s, "answer": answer})
    report = outrider("report", "--config", config, "--json").json()["would_have_been"]
    assert report["past"]["survival"]["badput_ratio"]["saved"]["badput_h"]["estimate"] == 1
    assert report["asked"]["date"] == "2026-03-01 04:00:00 UTC"
    refused = no_answer("the journal is locked")
    twin_file.write_plain(tmp_path, {"asked_s": begin_s, "answer": refused})
    report = outrider("report", "--config", config, "--out", tmp_path / "out")
    assert "not known: the journal is locked" in report.out
    (tmp_path / "twin.json").write_text("{")
    assert outrider("report", "--config", config).code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a journal or --config"),
        (("J", "--begin", "2026-03-02"), "both --begin and --end"),
        (("J", "--begin", "x", "--end", "y"), "ISO 8601"),
        (("J", "--weeks", "2", "--begin", "2026-03-02", "--end", "2026-03-03"), "--weeks"),
        (("J", "--twin", "none.json"), "none.json: cannot be read"),
        (("J", "--twin", "a", "--policy", "fifo"), "--twin and --policy"),
        (("J", "--policy", "fifoo"), "fifo"),
        (("J", "--shares", "a=2"), "between 0 and 1"),
        (("none.sqlite",), "none.sqlite"),
    ],
)
def test_what_cannot_be_done_is_said(
    journal: Path, words: tuple[str, ...], message: str
) -> None:  # fmt: skip
    done = outrider("report", *(journal if word == "J" else word for word in words))
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "fault of Outrider" not in done.err


def test_a_damaged_journal_is_named_and_nothing_is_written(journal: Path, tmp_path: Path) -> None:
    whole = journal.read_bytes()
    out = tmp_path / "out"
    for number, damaged in enumerate((whole[:5000], b"no journal at all", whole[:100] + b"x" * 9000,
                                      whole[:8192] + b"\xff" * (len(whole) - 8192))):  # fmt: skip
        path = tmp_path / f"damaged-{number}.sqlite"
        path.write_bytes(damaged)
        done = outrider("report", path, "--out", out)
        assert done.code == 2, (number, done)
        assert path.name in done.err
        assert not out.exists()


def test_a_journal_without_a_site_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "empty.sqlite"):
        pass
    done = outrider("report", tmp_path / "empty.sqlite")
    assert done.code == 2
    assert "holds no events of a site" in done.err
