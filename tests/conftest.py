"""Fixtures for all tests: shared data next to the repository, and real peers."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from tests.peers import pool, presence
from tests.suite import costs, order
from tests.suite.examples import examples

# the rest is as Hypothesis has it, which does by itself without chance where CI is set
few = hypothesis.settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("few", few)
hypothesis.settings.load_profile("few")

# as the daemon has it: what Rich draws of a traceback takes the event loop a second
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)

# collecting makes millions of objects that all live to the end: looking for rubbish is in vain
gc.disable()

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files by what they cost the last time."""
    items[:] = order.in_order(items, costs.listed())


def pytest_collection_finish() -> None:
    """Freeze the objects made by test collection, so that the garbage collector skips them."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Collect garbage at the end of a file, so that its own last test fails for open resources."""
    yield
    gc.collect()
    gc.freeze()  # what is still there has an owner


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces and papers beside the repository; the test skips without it."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("no folder ../shared with the real traces beside this checkout")
    return folder


@pytest.fixture(scope="session")
def require_peer() -> Callable[[str, str | None], None]:
    """`require_peer(name, missing)`: go on, or skip with the reason; with CI=true fail."""
    return presence.require_peer


@pytest.fixture(scope="session")
def htcondor_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pool.HTCondorPool]:
    """A real pool of four machines, one for the whole test session; leave its owners away."""
    presence.require_peer("HTCondor pool", pool.missing_reason())
    with pool.HTCondorPool(tmp_path_factory.mktemp("htcondor")) as running:
        yield running


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """The executable of a real Prometheus, for `peers.prometheus.Prometheus`."""
    return presence.require_program("prometheus", "Prometheus")
