"""Summary from logs alone: users who wait, wasted work, black holes."""

from pathlib import Path

import pytest

from outrider.replay.log_files import LogFile, ingest
from outrider.report.logs import read_logs
from tests.cli.running import outrider

JOBS = 40
COLUMNS = "JobID,User,Submit,Start,End,State,NodeList"


def moment(minute: int) -> str:
    return f"2026-03-02T{minute // 60:02d}:{minute % 60:02d}:00"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Write jobs of two users on nodes n0 to n3: ten minutes each; and n3 fails after one.

    Alice's wait for one minute, bob's for three; one of bob's in ten waits for an hour.
    """
    lines = []
    for job in range(JOBS):
        user, wait = ("alice", 1) if job % 8 < 4 else ("bob", 3)
        wait = 60 if user == "bob" and job // 8 == 0 and job % 4 == 0 else wait
        fails = job % 4 == 3
        start = job + wait
        cells = (job, user, moment(job), moment(start), moment(start + (1 if fails else 10)),
                 "NODE_FAIL" if fails else "COMPLETED", f"n{job % 4}")  # fmt: skip
        lines.append("|".join(map(str, cells)) + "\n")
    file = tmp_path / "dump.txt"
    file.write_text("".join(lines))
    return file


def test_a_machine_that_swallows_jobs_is_named_and_what_it_cost(dump: Path) -> None:
    report = read_logs([LogFile(dump, "slurm-sacct", fields=tuple(COLUMNS.split(",")))])
    found = report["offenders"]
    assert [hole["machine"] for hole in found["black_holes"]] == ["n3"]
    assert (found["black_holes"][0]["jobs_tried"], found["black_holes"][0]["jobs_failed"]) == (
        10,
        10,
    )
    (worst,) = found["machines"]
    assert (worst["machine"], worst["thrown_away"]) == ("n3", 10)
    assert worst["badput_h"] == pytest.approx(10 / 60)
    assert worst["badput"]["kwh"] is None, "a log names no watts"


def test_users_who_wait_come_by_the_sum_of_their_waits(dump: Path) -> None:
    waits = read_logs([LogFile(dump, "slurm-sacct", fields=tuple(COLUMNS.split(",")))])
    bob, alice = waits["users_who_wait"]
    assert (bob["user"], bob["n"], bob["sum"], bob["max"]) == (
        "bob",
        20,
        19 * 180.0 + 3600.0,
        3600.0,
    )
    assert (alice["user"], alice["sum"], alice["median"]) == ("alice", 20 * 60.0, 60.0)


def test_what_was_told_before_is_told_as_before(dump: Path) -> None:
    def file() -> LogFile:
        return LogFile(dump, "slurm-sacct", fields=tuple(COLUMNS.split(",")))

    more, plain = read_logs([file()]), ingest([file()])
    assert {name: more[name] for name in plain if name != "cpu_s"} == {
        name: value for name, value in plain.items() if name != "cpu_s"
    }


def test_the_terminal_shows_them(dump: Path) -> None:
    out = outrider("ingest", "--format", "slurm-sacct", "--fields", COLUMNS, dump).out
    waits = out.index("users with the longest total wait")
    assert out.index("bob", waits) < out.index("alice", waits)
    assert "black holes of 4 machines" in out
    assert "n3: 10 of 10 jobs failed" in out
    assert "n0:" not in out


def test_without_a_run_black_holes_are_not_known(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    log.write_text(
        "000 (001.000.000) 2026-11-21 10:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n"
    )
    out = outrider("ingest", log).out
    assert "black holes: unknown" in out
    assert "users whose jobs waited" not in out
