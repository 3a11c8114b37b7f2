"""The same daemon at the same site, in shadow and in an acting mode."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import Journal
from outrider.model.errors import ConfigurationError
from outrider.plugins.finding import find
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.process.supervisor import Supervisor
from tests.service.running.desk import Book


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
    """A configuration in a mode."""
    given = {"state_dir": str(folder), "adapters": {"desk": {}}, "policies": {"fifo": {}}}
    return check_config(given | {"mode": mode} | settings, "test")


async def gates_after(mode: str, folder: Path, **settings: Any) -> list[tuple[str, str | None]]:
    """Run a daemon until its decisions are recorded; return the gate's answers in the journal."""
    recording = Recording(folder)
    most_asked = {"shadow": 0, "canary": 1, "active": 2}[mode]
    supervisor = Supervisor(loaded_in(mode, folder, **settings), recording, ServiceManager({}))
    work = asyncio.create_task(supervisor.run())
    try:
        for _ in range(400):
            await asyncio.sleep(0.025)
            if recording.rows["decisions"] >= 3 and len(Book.asked) >= most_asked:
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


async def test_in_a_canary_the_rest_stays_as_it_is(tmp_path: Path) -> None:
    """Check the jobs that fall into the fraction: jobs 1 and 3 of 1, 2 and 3."""
    rows = await gates_after("canary", tmp_path / "state", acting={"canary_fraction": 0.5})
    assert rows == [("start", "act"), ("start", "would"), ("defer", None)]
    assert Book.asked == [("apply", "1"), ("withdraw", "1")]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"policies": {"fifo": {}, "sjf": {}}},
     '"mode" = "active" with the policies fifo, sjf; expected one policy'),
    ({"mode": "canary"}, '"mode" = "canary" without a canary; expected some of canary_'),
    ({"adapters": {"logtail": {"paths": ["log"]}}},
     r"adapters that can change nothing \(logtail\); expected mode = \"shadow\""),
    ({"acting": {"canary_fraction": 2}}, 'canary_fraction" = 2: expected'),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), WRONG)
def test_a_mode_that_acts_is_refused_where_it_is_not_clear_who_acts_on_what(
    changed: dict[str, Any], message: str
) -> None:
    given = {"mode": "active", "adapters": {"desk": {}}, "policies": {"fifo": {}}}
    assert check_config(given, "test").config.mode == "active"
    with pytest.raises(ConfigurationError, match=message):
        check_config(given | changed, "test")
