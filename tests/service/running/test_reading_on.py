"""Reopening of sources that end, fail or hang, and reports about them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api import JobSpec, PeerError, events
from outrider.journal import Journal
from outrider.service.core import source_state
from outrider.service.daemon import pump
from outrider.service.process import supervisor
from outrider.service.web.endpoints.status import whole_status
from tests.service.running.scripted import Scripted, batch_of, loaded, running, scripts, until

__all__ = ["scripts"]


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again after 0.02, 0.04 and then 0.05 s, and looked at as often."""
    monkeypatch.setattr(pump, "_FIRST_BACKOFF_S", 0.02)
    monkeypatch.setattr(pump, "_MAX_BACKOFF_S", 0.05)
    monkeypatch.setattr(supervisor, "_EVERY_S", 0.02)


def submitted(job: str) -> events.NamedEvent:
    return time.time(), events.SUBMITTED, job, JobSpec()


def named(lines: list[Any], event: str) -> list[Any]:
    return [line for line in lines if line["event"] == event]


async def test_it_is_opened_again_later_and_later_until_it_gives_something(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    scripts["a"] = [
        batch_of(submitted("1"), cursor="one"), None, PeerError("no schedd"), KeyError("x"), None,
        batch_of(submitted("2"), cursor="two"), PeerError("gone"),
    ]  # fmt: skip
    with capture_logs() as lines:
        async with running(loaded(state, "a"), state) as daemon:
            await until(lambda: len(Scripted.cursors) == 6)
            await until(lambda: whole_status(daemon.view)["adapters"][0]["up"])
            assert whole_status(daemon.view)["jobs"]["queued"] == 2
    closed = named(lines, "adapter_closed")
    assert [(line["error"], line["again_in_s"]) for line in closed] == [
        ("the source ended", 0.02), ("no schedd", 0.04), ("KeyError: 'x'", 0.05),
        ("the source ended", 0.05), ("gone", 0.02),
    ]  # fmt: skip
    assert Scripted.cursors == [None, "one", "one", "one", "one", "two"]
    assert [line["resumes"] for line in named(lines, "adapter_opened")] == [False] + [True] * 5
    assert len(named(lines, "adapter_failed")) == 1, (
        "of a fault there is a traceback, of a peer none"
    )


async def test_what_is_wrong_with_it_is_told_once_and_that_it_is_right_again(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    scripts["a"] = [batch_of(), *[PeerError("no schedd")] * 3, PeerError("no such host")]
    with capture_logs() as lines:
        async with running(loaded(state, "a", "b"), state):
            await until(lambda: named(lines, "adapter_up"))
    reasons = [line["error"] for line in named(lines, "adapter_down")]
    assert [reasons.count(why) for why in ("no schedd", "no such host")] == [1, 1]
    assert {line["adapter"] for line in lines if line["event"].endswith("e_source")} <= {"a", "b"}
    assert len(named(lines, "adapter_up")) == 1


async def test_a_batch_that_is_none_is_a_fault_of_its_source_and_nothing_of_it_counts(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    scripts["a"] = [batch_of(submitted("1"), cursor=object()), batch_of(submitted("2"), cursor=2)]
    with capture_logs() as lines:
        async with running(loaded(state, "a"), state) as daemon:
            await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 1)
    [closed] = named(lines, "adapter_closed")
    assert closed["error"].startswith("an invalid batch: ")


async def test_what_a_source_held_before_it_was_first_read_does_not_count(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    """Check a source added by a reload of a daemon that has been counting for long."""
    state = tmp_path / "state"
    async with running(loaded(state, "a"), state) as daemon:
        scripts["b"] = [
            batch_of(submitted("old"), cursor="past", history=True),
            batch_of(submitted("new"), cursor="now"),
        ]
        await until(lambda: daemon.view.recording.last_seq)  # it counts
        await daemon.reload(loaded(state, "a", "b"))
        await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 1)
        notes = whole_status(daemon.view)["notes"]
        assert notes == ["b: first read while running; its earlier history is skipped"]
    with Journal(state / "journal.sqlite", read_only=True) as journal:
        subjects = [event[2] for _, _, event in journal.inputs_after(0)]
        assert ("new" in subjects, "old" in subjects) == (True, False)
        assert journal.cursor("b") == "now"


async def test_one_that_hangs_from_the_start_is_down_and_the_others_go_on_without_it(
    tmp_path: Path, scripts: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_state, "HANGS_AFTER_S", 0.2)
    state, let_go = tmp_path / "state", asyncio.Event()
    scripts["hangs"] = [let_go, batch_of(submitted("late"), cursor="there")]
    scripts["lives"] = [batch_of(submitted("1"))]
    with capture_logs() as lines:
        async with running(loaded(state, "hangs", "lives"), state) as daemon:
            await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 1)
            [hangs, lives] = whole_status(daemon.view)["adapters"]
            assert (hangs["up"], lives["up"]) == (False, True)
            assert hangs["problem"].startswith("no sign of life yet, for ")
            ready, reasons = daemon.view.ready()
            assert (ready, len(reasons)) == (False, 1)
            let_go.set()
            await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 2)
            await until(lambda: named(lines, "adapter_up"))
            assert daemon.view.ready() == (True, [])
    [lost] = named(lines, "adapter_down")
    assert (lost["adapter"], lost["error"][:16]) == ("hangs", "no sign of life ")


async def test_of_one_that_was_taken_away_it_is_told_anew_once_it_is_back(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    scripts["b"] = [PeerError("no schedd")] * 1_000
    with capture_logs() as lines:
        async with running(loaded(state, "a", "b"), state) as daemon:
            await until(lambda: len(named(lines, "adapter_down")) == 1)
            await daemon.reload(loaded(state, "a"))
            await until(lambda: daemon.view.ready()[0])
            await asyncio.sleep(0.1)  # a look of the watch
            await daemon.reload(loaded(state, "a", "b"))
            await until(lambda: len(named(lines, "adapter_down")) == 2)
    assert not named(lines, "adapter_up")
