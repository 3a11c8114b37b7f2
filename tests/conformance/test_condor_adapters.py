"""Conformance tests of the adapters that watch HTCondor pools by their calls."""

import shutil
import tempfile
import threading
from pathlib import Path

from outrider.api import Adapter
from outrider.formats.campus.files import write_campus
from outrider.testing import AdapterConformance, AdapterHarness
from outrider.testing.campuses import tiny_campus
from tests.adapters.htcondor.watched_pool import WatchedPool, WatchingAdapter

from outrider_adapters.mock_condor import (  # isort: skip  # after what skips without bindings
    MockCondorAdapter,
    MockCondorSettings,
)


class WatchedPoolHarness(AdapterHarness):
    """Mock pool in which an owner's return evicts a job at a time."""

    machines = 6

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.site = WatchedPool(self.folder, machines=self.machines)
        self.lock = threading.Lock()
        self.visited: list[str] = []

    def adapter(self) -> Adapter:
        return WatchingAdapter(self.site, self.lock)

    def append(self) -> int:
        """Let a job start, be evicted by an owner, run again elsewhere and end."""
        with self.lock:
            pool = self.site.pool
            cluster = pool.submit("alice", {"executable": "/bin/job"}, 100.0).cluster()
            pool.advance(pool.now_s + 60)
            [ad] = pool.schedd("alice").query(f"ClusterId == {cluster}", ["RemoteHost"])
            machine = str(ad["RemoteHost"]).partition("@")[2]
            pool.owner_came(machine)
            pool.advance(pool.now_s + 400)
            joined = 0 if self.visited else self.machines
            self.visited.append(machine)
        return joined + len(("submitted", "started", "evicted", "owner", "started", "completed"))

    def take_away(self) -> None:
        with self.lock:
            self.site.fails(outage_ratio=1.0)
            self.site.clock = self.site.running_clock()

    def bring_back(self) -> None:
        with self.lock:
            self.site.fails()
            self.site.pool.advance(self.site.clock())
            self.site.clock = self.site.pool_clock

    def close(self) -> None:
        self.site.close()
        shutil.rmtree(self.folder)


class MockCondorHarness(AdapterHarness):
    """Tiny campus on a mock pool that runs without the test: three days in a few seconds."""

    endless = True

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        write_campus(tiny_campus(), self.folder)

    def adapter(self) -> Adapter:
        settings = MockCondorSettings(
            campus=str(self.folder), speed=150_000.0, look_s=300.0, negotiator_interval_s=300.0
        )
        return MockCondorAdapter("mock", settings)

    def append(self) -> int:
        return 50

    def close(self) -> None:
        shutil.rmtree(self.folder)


class TestWatchedPool(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return WatchedPoolHarness()


class TestMockCondor(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return MockCondorHarness()
