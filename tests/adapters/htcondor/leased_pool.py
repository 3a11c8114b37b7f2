"""A mock pool with leases installed, and the lever on it, without a separate process."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.api import DecisionRow
from outrider_adapters.htcondor.lease_edits import LEASES_CONFIG, LeaseEdits, LeaseTerms
from outrider_adapters.htcondor.pool_calls import AdType, ClassAd, short_id
from outrider_adapters.htcondor.pool_process import LEASE, RELEASE
from outrider_adapters.htcondor.real_pool import LeasedAttributes
from outrider_adapters.htcondor.settings import HTCondorSettings
from outrider_adapters.mock_condor.ads import as_of
from tests.adapters.htcondor.watched_pool import WatchedPool

LEASE_S = 300.0


def transformed(attribute: str, before: str) -> str:
    """Return an attribute of a job after the shipped transform, like the schedd."""
    found = re.search(rf"^ +SET {attribute} (.+)$", LEASES_CONFIG, re.MULTILINE)
    assert found is not None
    text = re.sub(rf"\$\(MY\.{attribute}:[^)]*\)", before, found[1])
    return text.replace("$(OUTRIDER_CLUSTER_ATTRIBUTE)", "MachineCluster")


class LeasedPool(WatchedPool):
    """A pool of four machines, two in cluster A and two in B, watched by a superuser."""

    def __init__(self, folder: Path, **more: Any) -> None:
        super().__init__(folder, user=more.pop("user", "condor"), **more)

    def submit_heeding(self, run_s: float = 10_000, user: str = "alice", **commands: str) -> str:
        """Submit a job, transformed as the schedd would; its name."""
        requirements = transformed("Requirements", commands.pop("requirements", "True"))
        rank = transformed("Rank", commands.pop("rank", "0.0"))
        return self.submit(run_s, user, requirements=requirements, rank=rank, **commands)

    def edits(self, by: str = "pool@here", **terms: Any) -> LeaseEdits:
        """Return a new editor of the queue, as after a restart; see `LeaseTerms`."""
        return LeaseEdits(self.calls, LeaseTerms(by, LEASE_S, **terms), self.now)

    def places(self, job: str) -> dict[str, float]:
        """Return the machines on which a job may start now, by ClassAds, with its rank there."""
        found = self.pool.schedd("condor").query(f"ClusterId == {short_id(job).split('.')[0]}")
        ad = as_of(found[0], self.pool.now_s)
        places = {}
        for slot in self.pool.collector().query(AdType.Startd):
            if ad.symmetricMatch(slot):
                scope = ClassAd(repr(ad))
                rank = scope.lookup("Rank").simplify(scope, slot)
                places[slot["Name"].partition("@")[2]] = float(str(rank))
        return places


class InThisProcess(LeasedAttributes):
    """The lever, whose questions go to a mock pool."""

    def __init__(self, site: LeasedPool, pins: bool = False) -> None:
        settings = HTCondorSettings(lease_s=LEASE_S)
        super().__init__(_Adapter("pool", settings))
        self._edits = site.edits(pins=pins)

    def _ask(self, question: str, argument: Any) -> Any:
        if question == LEASE:
            return self._edits.apply(argument[1])
        if question == RELEASE:
            return self._edits.withdraw(argument[1])
        return self._edits.withdraw_all()


class _Adapter:
    def __init__(self, label: str, settings: HTCondorSettings) -> None:
        self.label, self.settings, self.identity = label, settings, f"{label}@here"


def decision(job: str, machine: str | None = None) -> DecisionRow:
    """Return a decision to keep a job in the queue, or to start it on a machine."""
    action = "defer" if machine is None else "start"
    return DecisionRow(0.0, job, action, machine, 1, "best", "bandit", "active", gate="act")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LeasedPool]:
    """A pool of the mock, with an adapter whose leases it honours."""
    made = LeasedPool(tmp_path)
    yield made
    made.close()
