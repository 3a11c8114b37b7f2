"""Conformance tests of the adapter that watches a Slurm, with a real one."""

import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from outrider.api import Adapter
from outrider.testing import AdapterConformance, AdapterHarness
from outrider_adapters.slurm import SlurmAdapter
from outrider_adapters.slurm.settings import SlurmSettings
from tests.peers.beside_slurm.watched import submit, unlike_nodes
from tests.peers.presence import require_peer
from tests.peers.slurm import missing_reason

pytestmark = pytest.mark.slurm


class SlurmHarness(AdapterHarness):
    """Separate Slurm in which one job at a time is submitted, starts and ends."""

    quiet_within_s = 4.0

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.slurm = unlike_nodes(self.folder)
        self.slurm.start()
        os.environ.update(self.slurm.environment)
        self.is_new = True
        self.silence = ExitStack()

    def adapter(self) -> Adapter:
        settings = SlurmSettings(
            config=self.slurm.environment["SLURM_CONF"],
            start_at="beginning",
            look_s=1.0,
            answer_within_s=1.0,
        )
        return SlurmAdapter("slurm", settings)

    def append(self) -> int:
        job = submit(self.slurm, self.folder, sleep_s=0.2)
        self.slurm.wait_until("its end", lambda: job in self.slurm.jobs("CD"))
        once = len(self.slurm.nodes) + len(("eligible",)) if self.is_new else 0
        self.is_new = False
        return once + len(("submitted", "started", "completed"))

    def take_away(self) -> None:
        self.silence.enter_context(self.slurm.silenced())

    def bring_back(self) -> None:
        self.silence.close()

    def close(self) -> None:
        self.silence.close()
        self.slurm.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class TestSlurm(AdapterConformance):
    @pytest.fixture(autouse=True)
    def slurm_is_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let its commands find their Slurm by the environment, restored after each test."""
        require_peer("Slurm", missing_reason())
        for name in ("SLURM_CONF", "LD_LIBRARY_PATH", "PATH"):
            monkeypatch.setenv(name, os.environ.get(name, ""))

    def harness(self) -> AdapterHarness:
        return SlurmHarness()
