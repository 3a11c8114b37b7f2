"""Fixture with a pool that supports leases, for each test module in this folder."""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.peers.acting_on_htcondor.acting_pool import acting_pool, add_outrider, queue
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTCondorPool]:
    """Four machines, m1 and m2 in cluster A, m3 and m4 in B."""
    pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("acting")
    with acting_pool(folder / "pool") as running:
        add_outrider(running, folder)
        running.submit("executable = /bin/true\nqueue\n")  # with it the event log begins
        running.wait_until("its end", lambda: not queue(running, "JobStatus"))
        yield running


@pytest.fixture(autouse=True)
def emptied(pool: HTCondorPool) -> Iterator[None]:
    """No job is left of the test before."""
    yield
    with suppress(RuntimeError):  # it takes it for an error that there was none
        pool.run("root", "condor_rm", "-all")
    pool.wait_until("the end of all jobs", lambda: not queue(pool, "JobStatus"))
