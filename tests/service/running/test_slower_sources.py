"""A source that is ahead of the others is read no further than memory allows."""

import asyncio
import time
from pathlib import Path

import pytest

from outrider.api import Batch
from outrider.model.events import SUBMITTED
from outrider.model.jobs import JobSpec
from outrider.service.daemon import pump
from tests.service.running.scripted import Step, batch_of, loaded, running, scripts, until

__all__ = ["scripts"]

MOST, IN_A_BATCH, BATCHES = 20, 5, 12


def batches(began_s: float) -> list[Step]:
    """Jobs that are submitted one second after the other."""
    made: list[Step] = []
    for first in range(0, IN_A_BATCH * BATCHES, IN_A_BATCH):
        jobs = range(first, first + IN_A_BATCH)
        made.append(
            batch_of(
                *((began_s + n, SUBMITTED, f"{n}.0", JobSpec()) for n in jobs),
                cursor=jobs[-1],
                seen_until_s=began_s + jobs[-1],
            )
        )
    return made


async def test_who_is_ahead_of_a_slower_source_waits_until_that_is_read_on(
    scripts: dict[str, list[Step]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "_MAX_WAITING", MOST)
    began_s, reads_on = time.time() - 500.0, asyncio.Event()
    slow = Batch(events=[], cursor=1, seen_until_s=began_s - 1.0)
    scripts["slow"] = [slow, reads_on]
    scripts["fast"] = batches(began_s)
    async with running(loaded(tmp_path, "slow", "fast"), tmp_path) as daemon:
        merger = daemon.view.core.merger
        await until(lambda: merger.waiting_n() >= MOST)
        await asyncio.sleep(0.5)
        assert merger.waiting_n() == MOST
        assert merger.waits_for("slow")
        assert not merger.waits_for("fast")
        assert not daemon.view.core.site.jobs
        reads_on.set()
        await until(lambda: len(daemon.view.core.site.jobs) == IN_A_BATCH * BATCHES)


async def test_a_source_alone_waits_for_nobody(
    scripts: dict[str, list[Step]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "_MAX_WAITING", 1)
    began_s = time.time() - 500.0
    scripts["fast"] = batches(began_s)
    async with running(loaded(tmp_path, "fast"), tmp_path) as daemon:
        await until(lambda: len(daemon.view.core.site.jobs) == IN_A_BATCH * BATCHES)
