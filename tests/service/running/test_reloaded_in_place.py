"""A reload in this process: what continues, what restarts, and its notes."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from outrider.api import JobSpec, events
from outrider.journal.snapshots import MIN_LEAP_S
from outrider.model.errors import ConfigurationError
from outrider.service.web.endpoints.status import whole_status
from tests.service.running.scripted import Scripted, batch_of, loaded, running, scripts, until

__all__ = ["scripts"]


async def test_a_source_that_stays_the_same_is_read_on_and_the_others_come_and_go(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    # a request for a source's second batch shows that the first is taken in
    scripts["a"], scripts["b"] = [batch_of(cursor="here")] * 2, [batch_of(cursor="there")] * 2
    async with running(loaded(state, "a", "b"), state) as daemon:
        await until(lambda: len(Scripted.cursors) == 2 and not scripts["a"] + scripts["b"])
        before = daemon.view.core
        await daemon.reload(loaded(state, "a", "c"))
        await until(lambda: len(Scripted.cursors) == 3)
        assert daemon.adapters == ["a", "c"]
        assert daemon.view.core is not before
        assert whole_status(daemon.view)["notes"] == []
        scripts["a"].append(batch_of((time.time(), events.SUBMITTED, "1", JobSpec())))
        await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 1)
        assert len(Scripted.cursors) == 3, "it is not opened again"
        await daemon.reload(loaded(state, "a", "c", "b"))
        await until(lambda: len(Scripted.cursors) == 4)
        assert Scripted.cursors[-1] == "there", "it goes on where it was"


async def test_it_is_told_what_a_reload_cannot_change_and_which_policies_come_and_go(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    async with running(loaded(state, "a", policies={"fifo": {}, "sjf": {}}), state) as daemon:
        await daemon.reload(
            loaded(state, "a", policies={"fifo": {}, "bandit": {}}, listen="127.0.0.1:9999",
                   socket_group="adm")
        )  # fmt: skip
        assert whole_status(daemon.view)["notes"] == [
            "policies that start afresh: bandit",
            "policies removed with what they learned: sjf",
            "needs a restart to change: listen, socket_group",
        ]
        assert [policy["name"] for policy in whole_status(daemon.view)["policies"]] == [
            "fifo", "bandit",
        ]  # fmt: skip


async def test_where_what_was_learned_does_not_fit_nothing_changes(
    tmp_path: Path, scripts: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    async with running(loaded(state, "a"), state) as daemon:
        await until(lambda: Scripted.cursors)
        core = daemon.view.core
        monkeypatch.setattr(core, "save", dict)
        with pytest.raises(
            ConfigurationError, match=r"test: what was learned does not fit: ValueError"
        ):
            await daemon.reload(loaded(state, "a", "b"))
        assert daemon.view.core is core
        assert daemon.adapters == ["a"]
        await asyncio.sleep(0)
        assert len(Scripted.cursors) == 1


async def test_snapshots_are_kept_over_a_leap_of_the_clock_of_two_intervals_at_least(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    for every_s, leap_s in ((60.0, MIN_LEAP_S), (5_000.0, 10_000.0)):
        state = tmp_path / f"{every_s:g}"
        async with running(loaded(state, "a", snapshot_every_s=every_s), state) as daemon:
            snapshots = daemon.view.recording.snapshots
            await until(snapshots.paths)
            assert snapshots.leap_s == leap_s
