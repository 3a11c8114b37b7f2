"""One journal of three weeks for all tests here, and a state directory with it for each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.service.twin.watched_site import FEW, WatchedSite, write_small_journal

MakeSite = Callable[..., WatchedSite]


@pytest.fixture(scope="package")
def small_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the journal, which no test changes."""
    return write_small_journal(tmp_path_factory.mktemp("watched"))


@pytest.fixture
def make_site(small_journal: Path, tmp_path: Path) -> Iterator[MakeSite]:
    """Yield a factory of state directories with that journal; their processes are ended."""
    sites: list[WatchedSite] = []

    def make(twin: str = FEW, policies: str = "[policies.fifo]") -> WatchedSite:
        sites.append(WatchedSite(tmp_path, small_journal, twin, policies))
        return sites[-1]

    yield make
    for site in sites:
        site.kill_all()
