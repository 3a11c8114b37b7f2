"""`outrider jobs`, `machines` and `users`: what the daemon knows, in columns."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl

import pytest

from outrider.cli.listing import Column, text_lines
from tests.cli.running import COMMAND, WITHIN_S, get, outrider
from tests.cli.test_asking import NOBODY, answer_in_json, serving

NOW = 1_795_272_000.0


def job(user: str, state: str, **fields: Any) -> dict[str, Any]:
    told = {"user": user, "vo": "cms", "state": state, "cpus": 4, "machine": None}
    return {**told, "waiting_s": None, "lost_s": 0.0, **fields}


def row(name: str, state: str, **fields: Any) -> dict[str, Any]:
    """One of the endpoint's."""
    told = {
        "job": name, "state": state, "user": "ann", "vo": "cms", "class": "batch", "cpus": 1,
        "submit_s": NOW - 900.0, "waiting_s": None, "machine": None, "run_s": None, "runs": 0,
        "lost_s": 0.0, "longest_lost_s": 0.0, "pending": {}, "expected_start": None,
        "expected_start_answer": None, "group": None, "reason": None,
    }  # fmt: skip
    return told | fields


SOON = {"low_s": NOW + 60.0, "median_s": NOW + 300.0, "high_s": NOW + 7_200.0}
NEXT_PASS = {"low_s": NOW, "median_s": NOW, "high_s": NOW}
LONG = "a-name-that-is-longer-than-any-terminal-is-wide-" * 3
CHOSEN = {"bandit": {"action": "defer", "reason": "hold"}}
JOBS = [
    row("1.0", "running", user="bob", vo="atlas", machine="m1", run_s=50.0, runs=1),
    row("2.0", "queued", waiting_s=900.0, expected_start=SOON, pending=CHOSEN),
    row("3.0", "queued", waiting_s=5.0, expected_start=NEXT_PASS),
    row("4.0", "queued", waiting_s=40.0, expected_start_answer="not_known"),
    row(LONG, "held", user="eve"),
    row("6.0", "running", state_word="Running", machine="m2", run_s=7_300.0, runs=3, lost_s=120.0),
]


ASKED: list[dict[str, str]] = []
"""The words of each question, in order."""


class Site(BaseHTTPRequestHandler):
    """A daemon that knows these jobs, and gives them in pages of two."""

    def do_GET(self) -> None:
        path, _, words = self.path.partition("?")
        assert path == "/api/v1/jobs"
        asked = dict(parse_qsl(words))
        ASKED.append(dict(asked))
        after, limit = int(asked.pop("after", "-1")), int(asked.pop("limit"))
        wanted = {name: asked.pop(name) for name in ("state", "user", "vo") if name in asked}
        found = [
            (n, one) for n, one in enumerate(JOBS)
            if all(one[name] == value for name, value in wanted.items())
        ]  # fmt: skip
        left = [(n, one) for n, one in found if n > after]
        page = left[: min(limit, 2)]
        answer = {
            "mode": "shadow", "now_s": NOW, "jobs": [one for _, one in page], "total": len(found),
            "expected_starts": None, "next": str(page[-1][0]) if len(left) > len(page) else None,
        }  # fmt: skip
        answer_in_json(self, answer)

    def log_message(self, *_: Any) -> None:
        """Write no access log."""


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a stand-in daemon that notes what it is asked."""
    ASKED.clear()
    with serving(Site) as address:
        yield address


def test_every_job_has_a_line_that_is_never_folded(url: str) -> None:
    head, *lines = outrider("jobs", "--url", url).out.splitlines()
    assert head.split() == [
        "job", "state", "user", "VO", "CPUs", "waiting", "running", "machine", "runs", "lost",
        "expected", "start",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines] == [one["job"] for one in JOBS]
    starts = [line[head.index("expected") :] for line in lines]
    assert starts == [
        "-", "in 5.0 min (60 s to 2.0 h)", "now, in the next pass", "not known", "-", "-"
    ]  # fmt: skip


def test_an_older_daemon_that_sends_no_texts_is_shown_by_its_codes(url: str) -> None:
    shown = outrider("jobs", "--url", url, "--no-header", "-o", "job,reason,pending").out
    assert shown.splitlines()[1].split() == ["2.0", "-", "bandit:", "defer", "(hold)"]


def test_a_state_users_vos_and_columns_are_chosen(url: str) -> None:
    words = ("jobs", "--url", url, "--csv", "-o", "user, job,run_s")
    assert outrider(*words, "--state", "running").out.splitlines() == [
        "user,job,run_s", "bob,1.0,50.0", "ann,6.0,7300.0"
    ]  # fmt: skip
    assert outrider(*words, "--user", "eve", "--user", "bob", "--no-header").out.splitlines() == [
        "bob,1.0,50.0", f"eve,{LONG},"
    ]  # fmt: skip
    assert outrider(*words, "--vo", "atlas", "--no-header").out == "bob,1.0,50.0\n"
    assert outrider(*words, "--user", "nobody").out == "user,job,run_s\n"
    ages = outrider("jobs", "--url", url, "-o", "submit_s", "--no-header").out.split("\n")
    assert {age.strip() for age in ages} == {"15 min", ""}
    told = outrider("jobs", "--url", url, "--csv", "-o", "expected_start,pending", "--no-header")
    assert told.out.splitlines()[1] == f"{NOW + 300.0},bandit: defer (hold)"


@pytest.mark.parametrize(
    ("sort", "jobs"),
    [("waiting_s", ["3.0", "4.0", "2.0"]), ("-waiting_s", ["2.0", "4.0", "3.0"])],
)
def test_what_is_unknown_comes_last_whichever_way_it_is_sorted(
    url: str, sort: str, jobs: list[str]
) -> None:
    words = ("jobs", "--url", url, "--csv", "-o", "job", "--no-header", "--sort", sort)
    assert outrider(*words).out.splitlines() == [*jobs, "1.0", LONG, "6.0"]


def test_what_the_daemon_filters_and_sorts_is_asked_of_it(url: str) -> None:
    words = ("jobs", "--url", url, "--group", "lab & hall", "--reason", "no machine=1")
    assert outrider(*words, "--waiting-over", "60", "--sort", "-cpus").code == 0
    for asked in ASKED:
        asked.pop("after", None)
        assert asked == {
            "limit": "5000", "group": "lab & hall", "reason": "no machine=1",
            "waiting_over_s": "60.0", "sort": "-cpus",
        }  # fmt: skip
    assert len(ASKED) == 3


@pytest.mark.parametrize(
    ("words", "asked", "jobs"),
    [
        ((), ["1"], ["1.0"]),
        (("--user", "ann"), ["1"], ["2.0"]),
        (("--sort", "-waiting_s"), ["1"], ["1.0"]),  # this site does not sort
        (("--sort", "-job"), ["5000"] * 3, [LONG]),
        (("--user", "eve", "--user", "nobody"), ["5000"] * 3, [LONG]),
    ],
)
def test_the_first_come_without_the_others_where_the_daemon_sorts_them(
    url: str, words: Sequence[str], asked: list[str], jobs: list[str]
) -> None:
    shown = outrider(
        "jobs", "--url", url, "--csv", "-o", "job", "--no-header", "--first", "1", *words
    )
    assert shown.out.splitlines() == jobs
    assert [one["limit"] for one in ASKED] == asked


def test_people_read_the_batch_system_s_word_for_a_state_and_programs_ours(url: str) -> None:
    words = ("jobs", "--url", url, "-o", "job,state", "--no-header")
    assert outrider(*words).out.splitlines()[-1].split() == ["6.0", "Running"]
    assert outrider(*words, "--csv").out.splitlines()[-1] == "6.0,running"


def test_more_than_a_page_of_the_first_is_read_on(url: str) -> None:
    shown = outrider("jobs", "--url", url, "--csv", "-o", "job", "--no-header", "--first", "3")
    assert shown.out.splitlines() == ["1.0", "2.0", "3.0"]
    assert [one["limit"] for one in ASKED] == ["3", "1"]


def test_json_has_the_rows_as_the_daemon_gives_them(url: str) -> None:
    told = outrider("jobs", "--url", url, "--json").json()
    assert told["jobs"] == [{**one, "now_s": NOW} for one in JOBS]
    assert (told["mode"], told["now_s"]) == ("shadow", NOW)


def test_beside_a_daemon_the_lists_are_its_own(demo_url: str) -> None:
    told = outrider("machines", "--url", demo_url, "--json").json()
    asked = get(f"{demo_url}/api/v1/machines")
    named = [one["machine"] for one in told["machines"]]
    assert named == [one["machine"] for one in asked["machines"]]
    assert (told["mode"], set(told["machines"][0])) == ("shadow", set(asked["machines"][0]))
    states = outrider("machines", "--url", demo_url, "--state", "owner", "--csv", "-o", "state")
    assert set(states.out.splitlines()[1:]) <= {"owner"}
    words = ("--group", "lab & hall", "--reason", "no", "--waiting-over", "60", "--first", "2")
    assert (
        outrider("jobs", "--url", demo_url, "--sort", "-run_s", *words, "--json").json()["jobs"]
        == []
    )
    for command in ("jobs", "users"):
        done = outrider(command, "--url", demo_url)
        assert done.code == 0
        assert all(len(line.split()) >= 9 for line in done.out.splitlines())


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
        (
            ["jobs", "-o", "job,wating_s"],
            'no column "wating_s"; did you mean "waiting_s"? Columns: job, state, user, vo, ',
        ),
        (["status", "--watch", "--json"], "--watch cannot be combined with --csv or --json"),
        (["users", "--sort", "-queues"], 'no column "queues"; did you mean "queued"'),
        (["machines", "--csv", "--json"], "--csv and --json: use one of them"),
        (["machines", "--watch", "1", "--json"], "--watch cannot be combined with --csv or --json"),
        (["jobs", "--state", "waiting"], "queued"),
        (["jobs", "--waiting-over", "nan"], "nan is not a number of seconds"),
        (["jobs", "--first", "0"], "expected a whole number, 1 or more"),
    ],
)
def test_what_is_wrong_is_told_before_anybody_is_asked(words: Sequence[str], said: str) -> None:
    done = outrider(*words, "--url", NOBODY)
    assert done.code == 2
    assert said in " ".join(done.err.split())


@pytest.mark.parametrize("command", ["jobs", "machines", "users", "status"])
def test_of_nobody_is_a_peer_away_in_one_line(command: str) -> None:
    done = outrider(command, "--url", NOBODY)
    assert done.code == 3
    (line,) = done.err.splitlines()
    assert "no daemon answers" in line
    assert done.out == ""


def test_the_status_is_watched_in_a_pipe_without_a_mark_of_a_terminal(demo_url: str) -> None:
    with subprocess.Popen(
        [COMMAND, "status", "--url", demo_url, "--watch", "0.5"], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        try:
            seen: list[str] = []
            deadline_s = time.monotonic() + WITHIN_S
            while sum(line.startswith("mode ") for line in seen) < 2:
                assert time.monotonic() < deadline_s
                seen.append(watching.stdout.readline())
        finally:
            watching.terminate()
    assert not any("\x1b" in line for line in seen)


@pytest.mark.parametrize(
    "words", [["machines", "--watch", "0.5"], ["status", "--watch", "0.5"], ["users", "--watch"]]
)
def test_watching_goes_on_where_nobody_answers_for_a_while(words: Sequence[str]) -> None:
    with subprocess.Popen(
        [COMMAND, *words, "--url", NOBODY], stdout=subprocess.PIPE, text=True
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
