"""The daemon's address and socket, and the settings of the interpreter."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.declarations import Config, listen_address, socket_path
from outrider.service.process.app import share_threads, tune_interpreter


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9690", ("127.0.0.1", 9690)), ("[::1]:0", ("::1", 0)),
        (":65535", ("127.0.0.1", 65535)), ("host.example.org:80", ("host.example.org", 80)),
    ],
)  # fmt: skip
def test_an_address_and_a_port(listen: str, address: tuple[str, int]) -> None:
    assert listen_address(Config(listen=listen)) == address


@pytest.mark.parametrize(
    "listen", ["", "9690", "localhost", "localhost:", "a:65536", "a:-1", "a:x"]
)
def test_anything_else_is_refused_with_what_would_be_right(listen: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expected an address and port, as in"):
        listen_address(Config(listen=listen))


@pytest.mark.parametrize(
    ("configured", "given", "found"),
    [
        (None, None, None), (None, "", None), (None, "/run/a:/run/b", Path("/run/a/outrider.sock")),
        ("/x/s", "/run/a", Path("/x/s")), ("/x/s", None, Path("/x/s")),
    ],
)  # fmt: skip
def test_the_socket_is_where_it_is_configured_else_in_systemds_folder(
    configured: str | None, given: str | None, found: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    if given is not None:
        monkeypatch.setenv("RUNTIME_DIRECTORY", given)
    assert socket_path(Config(socket=configured)) == found


@pytest.fixture
def _as_before() -> Iterator[None]:
    """Put back how the interpreter collects and switches."""
    thresholds, interval_s = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval_s)
    gc.unfreeze()


@pytest.mark.usefixtures("_as_before")
def test_threads_give_way_soon_and_full_collections_are_rare() -> None:
    share_threads()
    young, middle, full = gc.get_threshold()
    assert (young < 10_000, middle < 100, full >= 1_000) == (True, True, True)
    assert sys.getswitchinterval() == pytest.approx(0.001)
    sys.setswitchinterval(0.005)
    before = gc.get_freeze_count()
    kept: list[Any] = [[] for _ in range(1_000)]
    tune_interpreter()
    assert gc.get_freeze_count() >= before + len(kept), "what is there now is never looked at again"
    assert sys.getswitchinterval() == pytest.approx(0.001)
