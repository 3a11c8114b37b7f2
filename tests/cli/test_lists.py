"""`outrider jobs`, `machines` and `users`: what the daemon knows, in columns."""

import csv
import io
import re
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest

from outrider.cli.commands.users import by_user
from outrider.cli.listing import Column, text_lines
from tests.cli.running import COMMAND, WITHIN_S, get, outrider

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def busy_url(demo_url: str) -> str:
    """The address of the demo once jobs run there."""
    deadline_s = time.monotonic() + WITHIN_S
    while not get(f"{demo_url}/api/v1/jobs?limit=1&state=running")["total"]:
        assert time.monotonic() < deadline_s, "nothing runs"
        time.sleep(0.1)
    return demo_url


def job(user: str, state: str, **fields: Any) -> dict[str, Any]:
    told = {"user": user, "vo": "cms", "state": state, "cpus": 4, "machine": None}
    return {**told, "waiting_s": None, "lost_s": 0.0, **fields}


def test_every_job_has_a_line_that_is_never_folded(busy_url: str) -> None:
    before = get(f"{busy_url}/api/v1/jobs?limit=1")["total"]
    done = outrider("jobs", "--url", busy_url)
    after = get(f"{busy_url}/api/v1/jobs?limit=1")["total"]
    head, *lines = done.out.splitlines()
    assert head.split() == [
        "job", "state", "user", "VO", "CPUs", "waiting", "running", "machine", "runs", "lost",
        "expected", "start",
    ]  # fmt: skip
    assert lines
    assert abs(len(lines) - (before + after) / 2) <= 10  # the site goes on meanwhile
    assert {line.split()[1] for line in lines} <= {"queued", "running", "suspended", "held"}


def test_a_state_a_user_and_columns_are_chosen(busy_url: str) -> None:
    words = ("jobs", "--url", busy_url, "--state", "running", "--csv")
    rows = list(csv.DictReader(io.StringIO(outrider(*words, "-o", "user, job,run_s").out)))
    assert rows
    assert list(rows[0]) == ["user", "job", "run_s"]
    assert all(float(row["run_s"]) >= 0.0 for row in rows)
    user = rows[0]["user"]
    named = outrider(*words, "--user", user, "-o", "user", "--no-header").out.splitlines()
    assert set(named) == {user}
    assert outrider(*words, "--user", "nobody").out.count("\n") == 1  # the heads


def test_what_is_unknown_comes_last_whichever_way_it_is_sorted(busy_url: str) -> None:
    for sort in ("run_s", "-run_s"):
        words = ("jobs", "--url", busy_url, "--csv", "-o", "run_s", "--no-header", "--sort", sort)
        cells = outrider(*words).out.splitlines()
        known = [float(cell) for cell in cells if cell not in ("", '""')]
        assert known == sorted(known, reverse=sort.startswith("-"))
        assert all(cell in ("", '""') for cell in cells[len(known) :])


def test_json_is_what_the_daemon_answers(busy_url: str) -> None:
    told = outrider("machines", "--url", busy_url, "--json").json()
    asked = get(f"{busy_url}/api/v1/machines")
    assert [row["machine"] for row in told["machines"]] == [
        row["machine"] for row in asked["machines"]
    ]
    assert (told["mode"], set(told["machines"][0])) == ("shadow", set(asked["machines"][0]))
    states = outrider("machines", "--url", busy_url, "--state", "owner", "--csv", "-o", "state")
    assert set(states.out.splitlines()[1:]) <= {"owner"}


def test_users_have_a_line_each(busy_url: str) -> None:
    told = outrider("users", "--url", busy_url, "--json").json()["users"]
    keys = [(row["user"], row["vo"]) for row in told]
    assert told
    assert len(set(keys)) == len(keys)
    assert all(row["queued"] + row["running"] + row["suspended"] + row["held"] for row in told)


def test_jobs_are_added_up_by_user() -> None:
    rows = by_user(
        [
            job("bob", "queued", waiting_s=30.0, lost_s=5.0),
            job("ann", "running", machine="m1"),
            job("bob", "queued", waiting_s=90.0),
            job("bob", "held"),
            job("ann", "queued", waiting_s=0.0, vo="atlas"),
        ]
    )
    assert [(row["user"], row["vo"]) for row in rows] == [
        ("ann", "cms"), ("bob", "cms"), ("ann", "atlas")
    ]  # fmt: skip
    assert rows[1] == {
        "user": "bob", "vo": "cms", "queued": 2, "running": 0, "suspended": 0, "held": 1,
        "busy_cpus": 0, "longest_wait_s": 90.0, "lost_s": 5.0,
    }  # fmt: skip
    assert rows[0]["longest_wait_s"] is None


def test_a_name_cannot_move_the_cursor() -> None:
    columns = [Column("name", lambda row: row["name"]), Column("n", lambda row: row["n"], True)]
    rows = [{"name": "a\x1b[2J\nb", "n": "7"}, {"name": "Zoë", "n": "1,000"}]
    lines = list(text_lines(rows, columns, has_header=True))
    assert lines == [
        "name             n",
        "a\\x1b[2J\\nb      7",
        "Zoë          1,000",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["jobs", "-o", "job,wating_s"], 'no column "wating_s"; did you mean "waiting_s"'),
        (["users", "--sort", "-queues"], 'no column "queues"; did you mean "queued"'),
        (["machines", "--csv", "--json"], "--csv and --json exclude each other"),
        (["machines", "--watch", "1", "--json"], "it goes with neither --csv nor --json"),
        (["jobs", "--state", "waiting"], "queued"),
    ],
)
def test_what_is_wrong_is_told_before_anybody_is_asked(words: Sequence[str], said: str) -> None:
    done = outrider(*words, "--url", NOBODY)
    assert done.code == 2
    assert said in done.err


def test_of_nobody_is_a_peer_away() -> None:
    done = outrider("jobs", "--url", NOBODY)
    assert done.code == 3
    assert "no daemon answers" in done.err


def test_watching_goes_on_where_nobody_answers_for_a_while() -> None:
    with subprocess.Popen(
        [COMMAND, "machines", "--url", NOBODY, "--watch", "0.5"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        try:
            deadline_s, told = time.monotonic() + WITHIN_S, 0
            while told < 3:
                assert time.monotonic() < deadline_s
                told += bool(re.match("outrider: .*; asking again$", watching.stdout.readline()))
            assert watching.poll() is None
        finally:
            watching.terminate()
