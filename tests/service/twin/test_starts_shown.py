"""The contents of starts.json are shown while fresh, and unknown starts are marked."""

import asyncio
import os
import time
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.cli.daemon import explain_path
from outrider.model.events import SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.shapes.values import Score
from outrider.service.twin import starts_file
from outrider.service.twin import watch as watch_module
from outrider.service.twin.starts_file import StartInterval, StartsFile
from outrider.service.twin.watch import FRESH_S, TwinWatch
from outrider.service.views.expected_starts import ExpectedStarts, Kept
from tests.fixtures.cores import T, core_of, tell
from tests.fixtures.plain import plain
from tests.service.running.small_site import LOG_TABLE, SmallSite
from tests.service.twin.watched_site import HANGS_AFTER_S
from tests.service.web.shapes import numbers_in

SOON = StartInterval(T + 10.0, T + 20.0, T + 90.0)
NOW = StartInterval(T, T, T)
SAID: dict[str, Any] = {"start": {"low_s": T + 10.0, "median_s": T + 20.0, "high_s": T + 90.0}}
NOT_ASKED = "the job came after the last answer, may not start yet, or fits on no machine"


def written(folder: Path, **fields: Any) -> TwinWatch:
    """Return a watch of a file in which "a" starts soon, "b" now, and "new" is unknown."""
    jobs = {"a": SOON, "b": NOW, "new": None}
    starts_file.write(folder, StartsFile(**{"asked_s": T, "jobs": jobs, **fields}))
    watch = TwinWatch(folder)
    watch.look()
    return watch


def shown(
    watch: TwinWatch, now_s: float = T, own_clock: bool = True, **settings: Any
) -> ExpectedStarts:
    """Return the expected starts when the site has been seen up to a time."""
    core = core_of("log", **({"policies": {"fifo": {}, "sjf": {}}} | settings))
    tell(core, "log", [(T - 50.0, SUBMITTED, "a", JobSpec())], now_s)
    core.site.now = now_s
    return ExpectedStarts(watch, core, own_clock)


def test_an_interval_the_next_pass_and_what_nobody_knows_are_told_apart(tmp_path: Path) -> None:
    starts = shown(written(tmp_path))
    assert plain(starts.of("a")) == {"answer": "interval", "why": None, **SAID}
    now = {"low_s": T, "median_s": T, "high_s": T}
    assert plain(starts.of("b")) == {"answer": "next_pass", "start": now, "why": None}
    unknown = {"answer": "not_known", "start": None, "why": "a new kind of burst"}
    assert plain(starts.of("new")) == unknown
    assert plain(starts.of("later")) == {"answer": "not_said", "start": None, "why": NOT_ASKED}
    assert (starts.shown().n, starts.shown().not_known_n) == (3, 1)


def test_no_start_is_expected_before_outrider_ends_its_own_deferral(tmp_path: Path) -> None:
    watch = written(tmp_path)
    core = core_of("log")
    tell(core, "log", [(T - 50.0, SUBMITTED, "a", JobSpec())], T)
    core.site.now = T
    kept = {"a": Kept(T + 60.0, T + 900.0), "b": Kept(T + 60.0, inf), "new": Kept(T, T)}
    starts = ExpectedStarts(watch, core, True, kept)
    late = {"low_s": T + 60.0, "median_s": T + 60.0, "high_s": T + 900.0}
    assert plain(starts.of("a")) == {"answer": "interval", "start": late, "why": None}
    unbounded = {"low_s": T + 60.0, "median_s": T + 60.0, "high_s": T + 60.0}
    assert plain(starts.of("b")) == {"answer": "interval", "start": unbounded, "why": None}
    assert starts.of("new").answer == "not_known"
    bounds = [starts.kept_until_s(job) for job in ("a", "b", "other")]
    assert bounds == [T + 900.0, None, None]


@pytest.mark.parametrize(
    ("now_s", "why"),
    [
        (T + FRESH_S, ""),
        (T + FRESH_S + 60.0, "the last answer is 16 min old"),
        (T + 3 * 3600.0, "the last answer is 3.0 h old"),
        (T - FRESH_S - 1.0, "the clock was put back"),
    ],
)
def test_what_is_old_is_not_said_any_more(tmp_path: Path, now_s: float, why: str) -> None:
    starts = shown(written(tmp_path), now_s)
    assert starts.not_said == why
    assert starts.of("a").answer == ("not_said" if why else "interval")
    assert starts.of("a").why == (why or None)


async def test_a_look_that_fails_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, looks, looked_again = TwinWatch(tmp_path), 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail() -> None:
        nonlocal looks
        looks += 1
        if looks > 1:
            loop.call_soon_threadsafe(looked_again.set)
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(watch, "look", fail)
    monkeypatch.setattr(watch_module, "_LOOK_S", 0.01)
    task = asyncio.create_task(watch.run())
    await asyncio.wait_for(looked_again.wait(), HANGS_AFTER_S)
    assert not task.done()
    task.cancel()


def test_of_a_simulated_site_what_is_said_is_as_old_as_its_file(tmp_path: Path) -> None:
    """A day of its clock may pass in a minute."""
    written(tmp_path)
    watch = TwinWatch(tmp_path, own_clock=lambda: True)
    watch.look()
    assert shown(watch, T + 86_400.0).not_said == ""
    long_ago_s = time.time() - FRESH_S - 60.0
    os.utime(tmp_path / starts_file.STARTS_NAME, (long_ago_s, long_ago_s))
    watch.look()
    assert shown(watch, T + 1.0).not_said == "the last answer is 16 min old"


def test_a_site_that_is_not_seen_any_more_has_no_expected_starts(tmp_path: Path) -> None:
    """The stopped clock would keep the old forecast fresh indefinitely."""
    starts = shown(written(tmp_path), own_clock=False)
    assert starts.not_said.startswith("the site was last seen ")
    assert starts.of("b").answer == "not_said"
    recently_s = time.time() - FRESH_S / 2
    watch = written(tmp_path, asked_s=recently_s)
    assert shown(watch, recently_s, own_clock=False).not_said == ""


def test_without_an_answer_it_is_said_why_there_is_none(tmp_path: Path) -> None:
    watch = TwinWatch(tmp_path)
    watch.look()
    assert shown(watch).not_said == "no forecast has been computed yet"
    never = shown(watch, twin={"starts_every_s": 0.0})
    assert never.not_said.startswith("the configuration turns them off")
    (tmp_path / starts_file.STARTS_NAME).write_text("{")
    watch.look()
    assert "starts.json: " in (shown(watch).of("a").why or "")
    assert shown(written(tmp_path, problem="no journal")).of("a").why == "no journal"
    (tmp_path / starts_file.STARTS_NAME).unlink()
    watch.look()
    assert shown(watch).not_said == "no forecast has been computed yet"


def test_why_a_start_is_not_known(tmp_path: Path) -> None:
    codes = {"a": "no_room", "b": "no_history", "new": "new_burst"}
    jobs = dict.fromkeys((*codes, "old"))
    starts = shown(written(tmp_path, jobs=jobs, unknown=codes))
    assert [starts.of(job).why for job in jobs] == [
        "no open machine has room for it",
        "too few jobs have ended yet of the users whose jobs run or wait before it",
        "a new kind of burst",
        "a new kind of burst",
    ]


def test_each_policy_has_a_start_or_a_reason_why_not(tmp_path: Path) -> None:
    under: dict[str, Any] = {"fifo": {"a": NOW, "b": None, "new": None}, "gone": {"a": SOON}}
    watch = written(tmp_path, candidates=under, candidates_asked_s=T)
    starts = shown(watch)
    assert list(starts.under("a")) == ["fifo", "sjf"], "in the order of the configuration"
    assert starts.under("a")["fifo"].answer == "next_pass"
    assert starts.under("a")["sjf"].why == "the twin process did not compute it"
    assert starts.under("new")["fifo"].why == "a new kind of burst"
    assert starts.under("b")["fifo"].why == "it may not start for weeks", "it is known otherwise"
    assert starts.under("later")["fifo"].answer == "not_said"
    old = shown(watch, T + FRESH_S + 1.0)
    assert {told.answer for told in old.under("a").values()} == {"not_said"}


def test_starts_under_policies_may_be_older_than_the_others(tmp_path: Path) -> None:
    asked_s = T - FRESH_S - 60.0
    starts = shown(written(tmp_path, candidates={"fifo": {}}, candidates_asked_s=asked_s))
    assert starts.of("a").answer == "interval"
    assert starts.under("a")["fifo"].why == "the last answer is 16 min old"
    refused = shown(written(tmp_path, candidate_problems={"sjf": "it plans the whole queue"}))
    assert refused.under("a")["sjf"].why == "it plans the whole queue"
    assert shown(written(tmp_path)).under("a") == {}, "no policy was asked about"
    none_waited = shown(written(tmp_path, candidates={}, candidates_asked_s=T))
    assert none_waited.under_not_said == {}


def test_beside_a_simulated_site_starts_under_policies_are_as_old_as_its_clock_says(
    tmp_path: Path,
) -> None:
    """The file is written every two seconds, and policies are asked about every ten minutes."""
    written(tmp_path, candidates={"fifo": {"a": SOON}}, candidates_asked_s=T)
    watch = TwinWatch(tmp_path, own_clock=lambda: True)
    watch.look()
    assert shown(watch, T + 3_000.0).under("a")["fifo"].answer == "interval"
    late = shown(watch, T + 7_200.0)
    assert late.of("a").answer == "interval"
    assert late.under("a")["fifo"].why == "the last answer is 2.0 h old"


def test_scores_are_those_of_the_file(tmp_path: Path) -> None:
    score = Score(1_240, 0.81, 90.0)
    told = shown(written(tmp_path, scores={"submission": score}, discipline="easy")).explained("a")
    assert told.scores == {"submission": score}
    assert told.planned_s is None
    planned = shown(written(tmp_path, planned={"a": T + 30.0})).explained("a")
    assert planned.planned_s == T + 30.0
    assert (told.rule, told.asked_s, told.source) == ("easy", T, "starts.json")


def test_the_daemon_gives_the_start_of_a_job_among_its_facts(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, tables=f"[policies.fifo]\n[twin]\nevery_s = 0\n{LOG_TABLE}")
    site.log.submit(1)
    with site.daemon as daemon:
        site.wait_until_applied()
        found = daemon.get("/api/v1/jobs")
        assert found["jobs"][0]["state"] == "queued"
        name, now_s = found["jobs"][0]["job"], found["now_s"]
        assert all(row["expected_start"] is None for row in found["jobs"])
        assert found["expected_starts"]["not_said"].startswith("the configuration turns them off")
        soon = StartInterval(now_s + 60.0, now_s + 120.0, now_s + 600.0)
        under: dict[str, dict[str, StartInterval | None]] = {"fifo": {name: None}}
        file = StartsFile(
            asked_s=now_s, jobs={name: soon}, candidates=under, candidates_asked_s=now_s,
            scores={"submission": Score(1_240, 0.81, 90.0)},
        )  # fmt: skip
        starts_file.write(site.state, file)
        deadline_s = time.monotonic() + 20.0
        while (row := daemon.get("/api/v1/jobs")["jobs"][0])["expected_start"] is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        assert row["job"] == name
        assert row["expected_start"] == {
            "low_s": now_s + 60.0, "median_s": now_s + 120.0, "high_s": now_s + 600.0
        }  # fmt: skip
        assert row["expected_start_answer"] == "interval"
        assert "expected_start_under" not in row
        [asked] = daemon.get("/api/v1/jobs?candidates=true&limit=1")["jobs"]
        assert asked["expected_start_under"] == {"fifo": None}
        assert daemon.status()["expected_starts"]["n"] == 1
        explained = daemon.get(explain_path(name))["expected_start"]
        assert (explained["answer"], explained["under"][0]["answer"]) == ("interval", "not_known")
        told = msgspec.json.decode((site.state / starts_file.STARTS_NAME).read_bytes())
        assert not numbers_in(explained) - numbers_in(told), "each stands in the file it names"
        assert numbers_in(explained) == {
            *(now_s + wait_s for wait_s in (0.0, 60.0, 120.0, 600.0)), 1_240, 0.81, 90.0
        }  # fmt: skip
