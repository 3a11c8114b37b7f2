"""Snapshots are made in a thread of their own, while others read."""

import threading
from pathlib import Path
from typing import Any

import pytest

import outrider.engine.accounting.energy as energy_book
from outrider.engine.accounting import power_log
from outrider.engine.accounting.machine_power import OWNED
from outrider.model.events import OWNER_CAME, OWNER_WENT
from outrider.service.journal.recording import Recording
from tests.engine.accounting.test_measured_figures import DECLARED, site_of

T = 1_790_000_000.0


async def test_the_thread_of_snapshots_finds_nothing_left_to_work_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_in: list[str] = []
    work_out = power_log.work_out

    def seen(*given: Any) -> Any:
        worked_in.append(threading.current_thread().name)
        return work_out(*given)

    monkeypatch.setattr(energy_book, "work_out", seen)
    told = [(T + 60, OWNER_CAME, "m1", None), (T + 90, OWNER_WENT, "m1", None)]
    core = site_of(DECLARED, told, T + 100)
    worked_in.clear()
    core.accounting.energy.enter(0, OWNED, core.site.now)  # noted only
    recording = Recording(tmp_path)
    assert await recording.snapshot(core)
    recording.close()
    assert worked_in == [threading.main_thread().name]
