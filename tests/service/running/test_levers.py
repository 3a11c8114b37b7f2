"""The same daemon beside the same site, in shadow and in a mode that acts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.ledger import Journal
from outrider.model.errors import ConfigurationError
from outrider.plugins.finding import find
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.levers import make_lever_runner
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager
from outrider.service.supervisor import Supervisor
from tests.service.running.desk import Book, Desk


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The adapter is found, as an installed one is."""
    info = tmp_path / "desk-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: desk\nVersion: 1.0\n")
    points = "[outrider.adapters]\ndesk = tests.service.running.desk:Desk\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    find.cache_clear()
    Book.begin()
    yield
    find.cache_clear()
    Book.begin()


def loaded_in(mode: str, folder: Path, **settings: Any) -> LoadedConfig:
    """A configuration in a mode, also in one that a configuration cannot ask for."""
    given = {"state_dir": str(folder), "adapters": {"desk": {}}, "policies": {"fifo": {}}}
    loaded = check_config(given | settings, "test")
    return msgspec.structs.replace(loaded, config=msgspec.structs.replace(loaded.config, mode=mode))


async def gates_after(mode: str, folder: Path) -> list[tuple[str, str | None]]:
    """The daemon lives until it has recorded its decisions; what the ledger says of the gate."""
    recording = Recording(folder)
    supervisor = Supervisor(loaded_in(mode, folder), recording, ServiceManager({}))
    work = asyncio.create_task(supervisor.run())
    try:
        for _ in range(400):
            await asyncio.sleep(0.025)
            if recording.rows["decisions"] >= 3 and (mode != "active" or len(Book.asked) >= 2):
                break
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await asyncio.to_thread(recording.close)
    with Journal(recording.path, read_only=True) as journal:
        return [(row.action, row.gate) for _, row in journal.decisions()]


async def test_in_shadow_no_lever_is_even_made(tmp_path: Path) -> None:
    rows = await gates_after("shadow", tmp_path / "state")
    assert rows == [("start", "would"), ("start", "would"), ("defer", None)]
    assert Book.made == []
    assert Book.asked == []


async def test_in_a_mode_that_acts_the_same_daemon_works_the_lever_and_lets_go_at_its_end(
    tmp_path: Path,
) -> None:
    rows = await gates_after("active", tmp_path / "state")
    assert rows == [("start", "act"), ("start", "act"), ("defer", None)]
    assert Book.asked == [("apply", "1"), ("apply", "2"), ("withdraw", "1"), ("withdraw", "2")]
    assert len(Book.threads) == 1


@pytest.mark.parametrize("mode", ["canary", "active"])
def test_no_configuration_asks_for_a_mode_that_acts(mode: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="mode"):
        check_config({"mode": mode, "adapters": {"desk": {}}}, "test")


def test_two_policies_cannot_both_act(tmp_path: Path) -> None:
    loaded = loaded_in("active", tmp_path, policies={"fifo": {}, "sjf": {}})
    with pytest.raises(ConfigurationError, match="policies fifo, sjf; right would be one policy"):
        make_lever_runner(loaded, {"desk": Desk("desk", None)})
