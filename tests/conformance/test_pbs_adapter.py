"""Conformance tests of the adapter that watches a PBS server, with fake commands."""

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from outrider.api import Adapter
from outrider.testing import AdapterConformance, AdapterHarness
from outrider_adapters.pbs import PBSAdapter
from outrider_adapters.pbs.settings import PBSSettings
from tests.adapters.pbs.fake_pbs import NODES, FakePBS


class PBSHarness(AdapterHarness):
    """Server to which one job at a time is submitted and started."""

    quiet_within_s = 3.0

    def __init__(self, dialect: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="conformance-"))
        self.pbs = FakePBS(self.folder, dialect)
        self.is_new = True
        self.silence = ExitStack()

    def adapter(self) -> Adapter:
        settings = PBSSettings(
            commands=str(self.folder), start_at="beginning", look_s=1.0, nodes_s=1.0
        )
        return PBSAdapter("pbs", settings)

    def append(self) -> int:
        job = self.pbs.submit()
        self.pbs.start(job)
        once = len(NODES) if self.is_new else 0
        self.is_new = False
        return once + len(("submitted", "started"))

    def take_away(self) -> None:
        self.silence.enter_context(self.pbs.silenced())

    def bring_back(self) -> None:
        self.silence.close()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class TestOpenPBS(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return PBSHarness("openpbs")


class TestTorque(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return PBSHarness("torque")
