"""Plugins that cannot be created: errors name the table, and the others work."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.api import Adapter, Policy
from outrider.model.errors import ConfigurationError, OutriderError, PeerError, PluginError
from outrider.plugins.finding import find
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.core.plugins import make_runners, policies_without_runner
from outrider.service.daemon.levers import carried_actions, close_levers, make_levers
from outrider.service.daemon.sources import make_adapters
from tests.acting.levers import Blocking, Noting, at_a_pool, row, wait_until


class Made(Adapter):
    """An adapter that can be made, with a lever."""

    name = "made"
    description = "for tests"
    api_version = 1
    levers = (Noting,)


class Refusing(Made):
    name = "refusing"

    def __init__(self, label: str, settings: Any) -> None:
        raise ConfigurationError("this host has no such pool")


class Missing(Made):
    name = "missing"

    def __init__(self, label: str, settings: Any) -> None:
        raise PluginError("the bindings are of another release")


class Unreachable(Made):
    name = "unreachable"

    def __init__(self, label: str, settings: Any) -> None:
        raise PeerError("nobody answers")


class Faulty(Made):
    name = "faulty"

    def __init__(self, label: str, settings: Any) -> None:
        raise KeyError("no model here")


class Unmade(Policy):
    """A policy of which a declaration fails when it is read."""

    name = "unmade"
    description = "for tests"
    api_version = 1

    @property
    def reconsider_s(self) -> float:  # type: ignore[override]
        raise LookupError("no epoch here")


STATE = Path("/nowhere/state")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the plugins found like installed ones."""
    info = tmp_path / "made-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1.0\n")
    kinds = (Made, Refusing, Missing, Unreachable, Faulty)
    adapters = "".join(f"{kind.name} = {__name__}:{kind.__name__}\n" for kind in kinds)
    points = f"[outrider.adapters]\n{adapters}[outrider.policies]\nunmade = {__name__}:Unmade\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    find.cache_clear()
    yield
    find.cache_clear()


def loaded_with(*adapters: str, **settings: Any) -> LoadedConfig:
    return check_config({"adapters": {name: {} for name in adapters}} | settings, "x.toml")


def test_an_adapter_that_fails_is_told_by_its_table_and_the_others_are_made() -> None:
    loaded = loaded_with("faulty", "made", "missing")
    adapters = make_adapters(loaded, {})
    assert list(adapters) == ["made"]
    assert loaded.broken.keys() == {"adapters.faulty", "adapters.missing"}
    why = loaded.broken["adapters.faulty"]
    assert why.endswith("faulty fails: KeyError: 'no model here'")
    assert why.startswith("x.toml [adapters.faulty]")
    assert loaded.broken["adapters.missing"] == "the bindings are of another release"
    again = make_adapters(loaded, adapters)
    assert again["made"] is adapters["made"], "what is there already is kept"
    assert again.keys() == adapters.keys()


def test_one_that_refuses_its_settings_refuses_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"x\.toml.*adapters\.refusing.*no such pool"):
        make_adapters(loaded_with("made", "refusing"), {})


def test_one_that_cannot_reach_its_system_says_so_itself() -> None:
    with pytest.raises(PeerError, match=r"^nobody answers$"):
        make_adapters(loaded_with("unreachable", "made"), {})


def test_without_a_single_adapter_nothing_begins() -> None:
    with pytest.raises(PluginError, match=r"no model here.*; the bindings are of another release"):
        make_adapters(loaded_with("faulty", "missing"), {})


def test_a_policy_that_cannot_be_made_is_told_and_the_others_are_asked() -> None:
    loaded = loaded_with("made", policies={"unmade": {}, "fifo": {}})
    assert [runner.name for runner in make_runners(loaded)] == ["fifo"]
    [(name, why)] = policies_without_runner(loaded).items()
    assert name == "unmade"
    assert "x.toml [policies.unmade]" in why
    assert why.endswith("fails while it is made: LookupError: no epoch here")
    watching = loaded_with("made", policies={"unmade": {}, "fifo": {}}, mode="observe")
    assert (make_runners(watching), policies_without_runner(watching)) == ([], {})


class Levered:
    """An adapter's levers, as the commands show them."""

    identity = ""

    def __init__(self, *kinds: Any) -> None:
        self.levers = kinds


def raising(error: Exception) -> Any:
    def kind(adapter: Any) -> Any:
        raise error

    return kind


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (KeyError("no token"), PluginError, r"\[adapters.b\]: lever kind fails: KeyError: 'no tok"),
        (PeerError("no schedd"), PeerError, r"^no schedd$"),
    ],
)
def test_a_lever_that_cannot_be_made_is_told_by_its_adapter(
    error: Exception, kind: type[OutriderError], told: str
) -> None:
    failing: Any = raising(error)
    failing.__name__ = "kind"
    adapters: dict[str, Any] = {"a": Levered(Noting), "b": Levered(failing)}
    with pytest.raises(kind, match=told):
        make_levers(adapters, STATE)


def test_each_lever_is_made_for_its_own_adapter() -> None:
    a, b = Levered(Noting), Levered(Blocking, Noting)
    adapters: dict[str, Any] = {"a": a, "b": b, "c": Levered()}
    made = make_levers(adapters, STATE)
    of = {label: [(type(one), one.adapter) for one in levers] for label, levers in made.items()}
    assert of == {"a": [(Noting, a)], "b": [(Blocking, b), (Noting, b)]}
    assert carried_actions(adapters) == {"a": {"start"}, "b": {"start", "preempt"}}
    hosts = {adapters[label].identity for label in "ab"}
    assert hosts == {f"{label}@{socket.gethostname()}:{STATE}" for label in "ab"}


async def test_levers_that_do_not_let_go_in_time_are_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outrider.service.daemon.levers.CLOSE_S", 0.05)
    blocking, noting = Blocking(), Noting()
    runner = at_a_pool(blocking, noting)
    runner.take([row("1", action="preempt")])
    blocking.wait_for(1)
    with capture_logs() as lines:
        await close_levers(runner)
        await close_levers(None)
    assert [(line["event"], line["levers"]) for line in lines] == [
        ("levers_left", ["pool: blocking"])
    ]
    blocking.let_go.set()
    assert wait_until(lambda: blocking.closed and noting.closed)
