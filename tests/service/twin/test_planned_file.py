"""Plans of batch systems reach the process beside the daemon, and are held for what they are."""

import asyncio
from pathlib import Path

import pytest

from outrider.api import Adapter, PlannedStarts
from outrider.service.twin import starts_file
from outrider.service.twin.starts_file import PLANNED_NAME, keep_planned_starts, planned_near
from tests.service.twin.watched_site import HANGS_AFTER_S


class Planning(Adapter):
    """An adapter that knows of a plan."""

    def __init__(self, plan: PlannedStarts | None) -> None:
        super().__init__("slurm", None)
        self.planned_starts = plan


def keep(folder: Path, *adapters: Adapter, wanted: bool = True) -> None:
    """Keep plans for two looks and the beginning of a third."""
    named = {f"a{n}": adapter for n, adapter in enumerate(adapters)}

    async def live() -> None:
        looks, third = 0, asyncio.Event()

        def is_wanted() -> bool:
            nonlocal looks
            looks += 1
            if looks == 3:  # the looks before have ended
                third.set()
            return wanted

        task = asyncio.create_task(keep_planned_starts(folder, lambda: named, is_wanted))
        await asyncio.wait_for(third.wait(), HANGS_AFTER_S)
        assert not task.done()
        task.cancel()

    asyncio.run(live())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the file every 10 ms."""
    monkeypatch.setattr(starts_file, "_INTERVAL_S", 0.01)


def test_plans_of_all_adapters_are_one_as_long_as_they_are_of_the_moment(
    tmp_path: Path,
) -> None:
    first, second = PlannedStarts(1_000.0, {"c:1": 5_000.0}), PlannedStarts(900.0, {"d:1": 1.0})
    keep(tmp_path, Planning(first), Planning(second), Planning(None))
    assert planned_near(tmp_path, 950.0) == {"c:1": 5_000.0, "d:1": 1.0}
    assert planned_near(tmp_path, 1_010.0) == {"c:1": 5_000.0}
    assert planned_near(tmp_path, 2_000.0) == {}


def test_nothing_is_written_where_nobody_plans_or_nobody_asks(tmp_path: Path) -> None:
    keep(tmp_path, Planning(None))
    keep(tmp_path, Planning(PlannedStarts(1.0)), wanted=False)
    assert not list(tmp_path.iterdir())
    assert planned_near(tmp_path, 1.0) == {}


@pytest.mark.parametrize("text", ["{", '{"a": {"asked_s": "soon"}}', '{"a": {"asked_s": null}}'])
def test_a_file_that_cannot_be_read_is_no_plan(tmp_path: Path, text: str) -> None:
    (tmp_path / PLANNED_NAME).write_text(text)
    assert planned_near(tmp_path, 0.0) == {}


def test_nonsense_of_an_adapter_ends_nothing(tmp_path: Path) -> None:
    unwritable = PlannedStarts(1.0, {"c:1": object()})  # type: ignore[dict-item]
    keep(tmp_path, Planning(unwritable))
    assert planned_near(tmp_path, 1.0) == {}


def test_an_adapter_that_raises_when_asked_ends_nothing(tmp_path: Path) -> None:
    class Raising(Adapter):
        @property
        def planned_starts(self) -> PlannedStarts | None:  # type: ignore[override]
            raise RuntimeError("no plan today")

    keep(tmp_path, Raising("site", None))
    assert planned_near(tmp_path, 1.0) == {}
