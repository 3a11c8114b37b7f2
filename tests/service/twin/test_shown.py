"""The twin's result in the daemon: its age, refusals and expiry."""

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import TwinSettings
from outrider.service.twin.twin_file import Present, TwinFile, write_plain
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.twin import expired, other_settings, saving_text, twin_shown
from tests.cli.running import shell
from tests.service.running.process import DaemonProcess
from tests.service.twin.conftest import MakeSite

ASKED_S = 1.7e9
RATIO = {"estimate": 0.76, "low": 0.72, "high": 0.80, "level": 0.9}
RATIOS = {
    "energy_ratio": RATIO,
    "badput_ratio": RATIO | {"estimate": 0.97, "low": 0.9, "high": 1.05},
}
NO_WASTE = "the share of waste is 0, in its past it was 0.5"
BASIS = {"load_cpus": 8.0, "waste_share": 0.5, "most_log_change": 0.2}


def told(present: Present | None = None, **fields: Any) -> TwinFile:
    """Return the contents of a file: a result about two policies, with these changes."""
    answer = {
        "window": {"begin_s": ASKED_S - 2e6, "end_s": ASKED_S},
        "incumbent": "random_match",
        "fidelity": {"passed": True},
        "refused": None,
        "past": {"survival": RATIOS, "fifo": {"energy_ratio": None, "badput_ratio": None}},
        "next": {"survival": RATIOS},
        "basis": BASIS,
    }
    plain = {
        "asked_s": ASKED_S, "took_s": 9.0, "answer": answer | fields, "next_weeks": 8.0,
        "candidates": {"survival": {}, "fifo": {}},
    }  # fmt: skip
    file = msgspec.convert(plain, TwinFile)
    return msgspec.structs.replace(file, present=present)


def said(file: TwinFile | None, now_s: float = ASKED_S + 7200, **settings: Any) -> str:
    config = Config(twin=TwinSettings(**settings))
    return saving_text(twin_shown(file, config, now_s), config, now_s)


def test_candidates_stand_side_by_side_with_interval_window_and_age() -> None:
    assert said(told()) == (
        "from 22 Oct 2023 to 14 Nov 2023, survival would have taken 20 to 28 % less energy; fifo "
        "would have taken an unknown amount of energy, than random_match (simulated, "
        "90 % intervals; asked 2.0 h ago)"
    )


def test_without_watts_the_waste_is_said_and_an_interval_may_hold_both() -> None:
    ratios = {
        "energy_ratio": None,
        "badput_ratio": RATIO | {"estimate": 0.97, "low": 0.9, "high": 1.05},
    }
    assert "10 % less to 5 % more wasted CPU time, than" in said(told(past={"fifo": ratios}))


def test_what_is_refused_stale_or_not_there_is_said() -> None:
    assert said(None) == "not estimated yet"
    assert said(TwinFile(asking_since_s=ASKED_S)) == "not estimated yet"
    assert said(told(refused="3 days; expected 2 weeks")) == (
        "not estimated: 3 days; expected 2 weeks (asked 2.0 h ago)"
    )
    assert said(told(), now_s=ASKED_S + 4 * 86_400).endswith("asked 4.0 d ago, stale)")
    assert "stale" not in said(told(), now_s=ASKED_S + 4 * 86_400, stale_after_s=1e6)


@pytest.mark.parametrize(
    ("load_cpus", "waste_share", "why"),
    [
        (8.0, 0.5, None),
        (9.7, 0.41, None),
        (9.8, 0.5, "the load is 9.8 CPUs, in its past it was 8"),
        (6.5, 0.5, "the load is 6.5 CPUs, in its past it was 8"),
        (8.0, 0.62, "the share of waste is 0.62, in its past it was 0.5"),
        (0.0, None, "the load is 0 CPUs, in its past it was 8"),
        (16.0, 0.0, f"the load is 16 CPUs, in its past it was 8; {NO_WASTE}"),
    ],
)  # fmt: skip
def test_a_forecast_expires_when_load_or_waste_are_others_now(
    load_cpus: float, waste_share: float | None, why: str | None
) -> None:
    present = Present(ASKED_S, load_cpus, waste_share)
    assert expired(told(present)) == why
    assert expired(told(present, next=None)) is None, "there is none"
    assert expired(told()) is None, "nobody has looked"


def test_policies_that_are_configured_otherwise_now_are_named() -> None:
    file = told()
    assert other_settings(file, Config(policies={"survival": {}, "fifo": {}, "sjf": {}})) == []
    changed = Config(policies={"survival": {"worth_ratio": 3.0}})
    assert other_settings(file, changed) == ["fifo", "survival"]


def test_another_file_is_read_and_one_that_is_damaged_or_foreign_is_said(tmp_path: Path) -> None:
    watch = TwinWatch(tmp_path)

    def seen() -> tuple[TwinFile | None, str]:
        watch.look()
        return watch.file, watch.problem

    assert seen() == (None, "")
    write_plain(tmp_path, msgspec.to_builtins(told()))
    assert seen() == (told(), "")
    for text in (b"{", b"[1]", b'{"asked_s": "x"}', b'{"answer": {"past": 7}}', b"\xff" * 99, b""):
        (tmp_path / "twin.json").write_bytes(text)
        file, problem = seen()
        assert file is None
        assert "expected a file written by `outrider run-twin`" in problem
    write_plain(tmp_path, msgspec.to_builtins(told()))
    assert seen() == (told(), "")
    (tmp_path / "twin.json").unlink()
    assert seen() == (None, "")


def test_the_daemon_shows_what_is_written_there(make_site: MakeSite) -> None:
    site = make_site(policies="[policies.survival]\n[policies.fifo]")
    code, written = site.once()
    assert code == 0
    with DaemonProcess(site.config) as daemon:
        status = daemon.wait_until("twin shown", lambda status: status["twin"] is not None)
        twin = status["twin"]
        assert twin["past"] == written["answer"]["past"]
        assert (twin["refused"], twin["stale"], twin["other_settings"]) == (None, False, [])
        assert twin["next_refused"] == written["answer"]["next_refused"]
        assert abs(twin["asked_s"] - time.time()) < 600
        assert status["saving"]["text"].startswith("from 01 Feb 2010 to 21 Feb 2010, survival ")
        assert status["sentence"].endswith(f"saving: {status['saving']['text']}")
        shown = shell("status", "--url", daemon.url).out
        assert ": ratio to random_match (current scheduler), 90 % intervals." in shown
        energy = written["answer"]["past"]["survival"]["energy_ratio"]["estimate"]
        assert f"past      survival: energy of runs {energy:.2f} (" in shown
        part = site.state / "x"
        part.write_text("damaged")
        os.replace(part, site.state / "twin.json")  # noqa: PTH105 - as it is written
        status = daemon.wait_until("damage seen", lambda status: status["twin"] is None)
        assert [note for note in status["notes"] if "the twin's result is not shown" in note]
        assert status["saving"]["text"] == "not estimated yet"
        refused = written | {"answer": written["answer"] | {"refused": "no", "past": {}}}
        part.write_text(json.dumps(refused))
        os.replace(part, site.state / "twin.json")  # noqa: PTH105 - as it is written
        status = daemon.wait_until("refusal seen", lambda status: status["twin"] is not None)
        assert status["twin"]["refused"] == "no"
        assert "twin       Not estimated: no. Computed " in shell("status", "--url", daemon.url).out
