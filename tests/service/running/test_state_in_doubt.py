"""Rebuilding of an inconsistent state; until that succeeds no snapshot is written."""

import time
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api import JobSpec, events
from outrider.journal import Journal
from outrider.service.daemon import pump
from outrider.service.journal.restart import bring_up
from outrider.service.web.endpoints.status import whole_status
from tests.service.running.scripted import batch_of, loaded, running, scripts, until

__all__ = ["scripts"]


def submitted(job: str) -> events.NamedEvent:
    return time.time(), events.SUBMITTED, job, JobSpec()


async def test_it_is_tried_again_after_a_while_and_told_as_long_as_it_fails(
    tmp_path: Path, scripts: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "_RETRY_AFTER_S", 0.2)
    tries = 0

    def fails(*given: Any) -> Any:
        nonlocal tries
        tries += 1
        raise MemoryError("no room")

    monkeypatch.setattr(pump, "bring_up", fails)
    state = tmp_path / "state"
    with capture_logs() as lines:
        async with running(loaded(state, "a"), state) as daemon:
            scripts["a"].append(batch_of(submitted("1")))
            await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 1)
            doubtful = daemon.view.core
            snapshots = len(daemon.view.recording.snapshots.paths())
            doubtful.unrepaired.append(None)
            await until(lambda: tries >= 2)
            assert daemon.view.core is doubtful, "it goes on with what it has"
            assert whole_status(daemon.view)["notes"] == [
                "the state may be inconsistent: MemoryError: no room"
            ]
            assert not await daemon._state.snapshot()
            assert len(daemon.view.recording.snapshots.paths()) == snapshots
            monkeypatch.setattr(pump, "bring_up", bring_up)
            await until(lambda: daemon.view.core is not doubtful)
            notes = whole_status(daemon.view)["notes"]
            assert notes[1] == "the state was rebuilt after an unrecoverable internal error"
            assert whole_status(daemon.view)["jobs"]["queued"] == 1
            scripts["a"].append(batch_of(submitted("2")))
            await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 2)
            assert await daemon._state.snapshot()
    told_events = [line["event"] for line in lines]
    assert told_events.count("state_rebuild_failed") == tries
    assert told_events.count("state_rebuilt") == tries + 1


async def test_events_that_could_not_be_repaired_are_left_out_and_the_others_kept(
    tmp_path: Path, scripts: dict[str, list[Any]]
) -> None:
    state = tmp_path / "state"
    async with running(loaded(state, "a"), state) as daemon:
        scripts["a"].append(batch_of(submitted("1"), submitted("2")))
        await until(lambda: whole_status(daemon.view)["jobs"]["queued"] == 2)
        doubtful = daemon.view.core
        await until(lambda: inputs_of("2", daemon.view.recording.path))  # it is written later
        [event] = inputs_of("2", daemon.view.recording.path)
        doubtful.unrepaired.append(("a", *event[:3]))
        await until(lambda: daemon.view.core is not doubtful)
        names = daemon.view.core.merger.normaliser.jobs
        assert list(names) == ["1"]


def inputs_of(job: str, path: Path) -> list[Any]:
    """Return the journal's events of a job."""
    return [event for _, _, event in journalled(path) if event[2] == job]


def journalled(path: Path) -> list[Any]:
    with Journal(path, read_only=True) as journal:
        return list(journal.inputs_after(0))
