"""Finding the daemons of a pool, and finding them again."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")

from outrider.api import PeerError
from outrider_adapters.htcondor import locating
from outrider_adapters.htcondor.pool_calls import HTCondorException
from outrider_adapters.htcondor.settings import HTCondorSettings


class Pool:
    """Bindings behind which there is a pool of these schedds; each ad is an address."""

    def __init__(self, log: Path | None = None) -> None:
        self.addresses = {"ap1.test": 1, "ap2.test": 1, "other.test": 1}
        self.log = log
        self.bindings = SimpleNamespace(
            Collector=lambda *_: self, Schedd=self._schedd, RemoteParam=lambda _: self._params()
        )

    def locateAll(self, _: Any) -> list[dict[str, Any]]:  # noqa: N802 - the bindings' own name
        return [{"Name": name, "Address": at} for name, at in self.addresses.items()]

    def locate(self, _: Any, name: str) -> dict[str, Any]:
        return {"Name": name, "Address": self.addresses[name]}

    def _schedd(self, ad: dict[str, Any]) -> Any:
        def query(constraint: str, projection: list[str]) -> list[str]:
            if ad["Address"] != self.addresses[ad["Name"]]:
                raise HTCondorException("nobody there")
            return [constraint]

        return SimpleNamespace(query=query)

    def _params(self) -> dict[str, str]:
        return {"EVENT_LOG": str(self.log)} if self.log else {}


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pool:
    """A pool whose daemons are found through stand-in bindings."""
    made = Pool(tmp_path / "EventLog")
    monkeypatch.setattr(locating, "htcondor2", made.bindings)
    return made


def test_access_points_are_all_or_those_whose_names_match(pool: Pool) -> None:
    calls, _ = locating.located(None, [])
    assert [point.name for point in calls.access_points] == ["ap1.test", "ap2.test", "other.test"]
    calls, _ = locating.located(None, ["ap*"])
    assert [point.name for point in calls.access_points] == ["ap1.test", "ap2.test"]
    with pytest.raises(
        PeerError, match=r"no access point none\*; it knows ap1.test, ap2.test, other"
    ):
        locating.located(None, ["none*"])


def test_a_schedd_that_listens_elsewhere_now_is_found_at_the_next_question(pool: Pool) -> None:
    calls, _ = locating.located(None, ["ap1.test"])
    [point] = calls.access_points
    assert point.schedd.query("a") == ["a"]
    pool.addresses["ap1.test"] = 2
    with pytest.raises(HTCondorException):
        point.schedd.query("b")
    assert point.schedd.query("c") == ["c"]


def test_a_log_is_found_on_this_host_alone_where_it_may_be_read_and_a_named_one_wins(
    pool: Pool, tmp_path: Path
) -> None:
    settings = HTCondorSettings(event_logs={"ap2.test": "/logs/named"})
    here = {"Machine": socket.gethostname().upper()}
    ads = {"ap1.test": here, "ap2.test": here, "other.test": {"Machine": "elsewhere.test"}}
    named = {"ap2.test": ("/logs/named",)}

    def found() -> dict[str, tuple[str, ...]]:
        return {name: log.paths for name, log in locating.event_logs_of(ads, settings).items()}

    assert found() == named, "there is no such file"
    (tmp_path / "EventLog").write_text("")
    assert found() == {"ap1.test": (str(tmp_path / "EventLog"),)} | named
