"""Finding the daemons of a pool, and finding them again."""

import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")

from outrider.api import PeerError
from outrider_adapters.htcondor import locating, pool_calls
from outrider_adapters.htcondor.failed_calls import FOLDERS_REFUSED, Messages
from outrider_adapters.htcondor.pool_calls import HTCondorException
from outrider_adapters.htcondor.settings import HTCondorSettings

BINDING = "SEC_FS_ENFORCE_CHANNEL_BINDING"


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


class Strict(Pool):
    """Bindings that refuse the pool's FS authentication until the binding to a channel is off."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.param: dict[str, str] = {}
        self.bindings.param = self.param
        self._address = address

    def locateAll(self, kind: Any) -> list[dict[str, Any]]:  # noqa: N802 - the bindings' own name
        if self.param.get(BINDING) != "false":
            raise HTCondorException("Failed communication with collector.")
        return [{**ad, "MyAddress": f"<{self._address}:9618>"} for ad in super().locateAll(kind)]


@pytest.mark.parametrize(
    ("collector", "schedds", "after"),
    [
        ("127.0.0.1:9618", "127.0.0.1", "false"),
        ("localhost", "192.0.2.7", "true"),  # another host could pass on what it is asked
        ("192.0.2.7:9618", "127.0.0.1", None),
        ("127.0.0.1, 192.0.2.7", "127.0.0.1", None),
    ],
)
def test_folders_of_older_daemons_are_accepted_on_a_pool_of_this_host_alone(
    monkeypatch: pytest.MonkeyPatch, collector: str, schedds: str, after: str | None
) -> None:
    made = Strict(schedds)
    monkeypatch.setattr(locating, "htcondor2", made.bindings)
    monkeypatch.setattr(Messages, "read", lambda _: FOLDERS_REFUSED)
    if after is None:
        with pytest.raises(PeerError, match="does not answer"):
            locating.located(collector, [])
    else:
        locating.located(collector, [])
    assert made.param.get(BINDING) == after


def test_any_other_failure_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Strict("127.0.0.1")
    monkeypatch.setattr(locating, "htcondor2", made.bindings)
    monkeypatch.setattr(Messages, "read", lambda _: "timeout reading 5 bytes")
    with pytest.raises(PeerError, match="does not answer"):
        locating.located("127.0.0.1", [])
    assert made.param == {}


def test_what_the_site_says_of_the_binding_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Strict("127.0.0.1")
    made.param[BINDING] = "true"
    monkeypatch.setattr(locating, "htcondor2", made.bindings)
    monkeypatch.setattr(Messages, "read", lambda _: FOLDERS_REFUSED)
    with pytest.raises(PeerError, match="does not answer"):
        locating.located("127.0.0.1", [])
    assert made.param == {BINDING: "true"}


def test_tokens_that_systemd_passed_are_copied_for_the_services_own_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    param: dict[str, str] = {}
    monkeypatch.setattr(locating, "htcondor2", SimpleNamespace(param=param))
    passed, runtime = tmp_path / "passed", tmp_path / "run"
    passed.mkdir()
    runtime.mkdir()
    (passed / "tokens-0_outrider").write_text("a token")
    (passed / "http-token").write_text("no token of HTCondor")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(runtime))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(passed))
    locating.use_passed_tokens()
    assert param == {}, "the tokens are elsewhere"
    monkeypatch.setenv("_CONDOR_SEC_TOKEN_DIRECTORY", str(passed))
    locating.use_passed_tokens()
    folder = Path(param["SEC_TOKEN_DIRECTORY"])
    locating.use_passed_tokens()  # the process was killed and begun again
    assert [*runtime.iterdir()] == [folder]
    [copied] = folder.iterdir()
    assert (copied.name, copied.read_text()) == ("tokens-0_outrider", "a token")
    assert (folder.parent, folder.stat().st_mode & 0o777) == (runtime, 0o700)
    assert copied.stat().st_mode & 0o777 == 0o600


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


def test_a_name_that_no_name_server_answers_in_time_is_not_of_this_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert locating.is_this_host("127.0.0.1")
    may_go_on = threading.Event()

    def hang(*asked: object, **more: object) -> list[object]:
        may_go_on.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(locating, "_NAMED_WITHIN_S", 0.05)
    assert not locating.is_this_host("cm.example.org")
    may_go_on.set()


def test_a_negotiator_that_does_not_answer_is_left_alone_for_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, asked, answers = [0.0], list[str](), [False]

    def priorities() -> list[dict[str, Any]]:
        asked.append("once")
        if not answers[0]:
            raise HTCondorException("in a cycle")
        return [{"Name": "ann@site"}]

    bindings = SimpleNamespace(Negotiator=lambda _: SimpleNamespace(getPriorities=priorities))
    monkeypatch.setattr(locating, "htcondor2", bindings)
    collector = SimpleNamespace(locate=lambda _: {})
    accounts = locating.NegotiatorAccounts(collector, lambda: now_s[0])
    for at_s, n in ((0.0, 1), (59.0, 1), (60.0, 2)):
        now_s[0] = at_s
        with pytest.raises(HTCondorException):
            accounts.ask()
        assert len(asked) == n
    now_s[0], answers[0] = 120.0, True
    assert accounts.ask() == accounts.ask() == [{"Name": "ann@site"}]
    assert len(asked) == 4


class Bytes(dict[str, Any]):
    """An ad as the bindings have it: a value that is no UTF-8 cannot be written out."""

    lookup = dict[str, Any].__getitem__

    def printOld(self) -> str:  # noqa: N802 - the bindings' own name
        return "".join(v.decode() if isinstance(v, bytes) else f"{v}" for v in self.values())


def test_a_value_that_is_no_text_hides_no_ad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_calls, "ClassAd", Bytes)
    ads = [Bytes(ClusterId=1), Bytes(ClusterId=2, HoldReason=b"a\xff")]
    found = pool_calls.readable(ads)
    assert found == [{"ClusterId": 1}, {"ClusterId": 2, "HoldReason": pool_calls.UNREADABLE}]
