"""Tests of leases on a mock pool: their content, their expiry, and refusals."""

from pathlib import Path
from typing import Any

import pytest

from outrider.api import DecisionRow, Lever, PeerError
from outrider.testing import LeverConformance, LeverHarness
from outrider_adapters.htcondor.lease_edits import FIRST, HELD, PREFER, Wanted
from outrider_adapters.htcondor.lease_edits import HOLD as HOLD_ATTRIBUTE
from outrider_adapters.htcondor.pool_calls import quote, short_id
from outrider_adapters.mock_condor.faults import Faults
from tests.adapters.htcondor.leased_pool import LEASE_S, InThisProcess, LeasedPool, decision, site

__all__ = ["site"]


HOLD = Wanted(hold=True)
SET = {"True", "true", "B"}


class Queue(LeverHarness):
    """Lever harness for a mock pool: one job gets leases, another does not."""

    def __init__(self, folder: Path, machine: str | None, pins: bool) -> None:
        self.site = LeasedPool(folder)
        self.job, self.other = self.site.submit_heeding(), self.site.submit_heeding()
        self._gone = self.site.submit_heeding()
        self.site.act("remove", self._gone)
        self.machine, self.pins = machine, pins

    def lever(self) -> Lever:
        return InThisProcess(self.site, self.pins)

    def decision(self) -> DecisionRow:
        return decision(self.job, self.machine)

    def seen(self) -> Any:
        return self.site.places(self.job), self.site.places(self.other)

    @property
    def gone(self) -> str:
        return self._gone

    def wait(self, seconds: float) -> None:
        self.site.pool.now_s += seconds  # nothing is negotiated meanwhile: the jobs stay queued

    def close(self) -> None:
        self.site.close()


@pytest.mark.parametrize(
    ("machine", "pins"), [(None, False), ("m3", False), ("m3", True)], ids=["hold", "prefer", "pin"]
)
class TestLeasedAttributes(LeverConformance):
    @pytest.fixture(autouse=True)
    def _queue(self, tmp_path: Path, machine: str | None, pins: bool) -> None:
        self.made = tmp_path, machine, pins

    def harness(self) -> LeverHarness:
        return Queue(*self.made)


def test_a_job_that_is_kept_starts_nowhere_and_then_everywhere(site: LeasedPool) -> None:
    job = site.submit_heeding()
    assert site.edits().apply({job: HOLD}) == {}
    assert site.places(job) == {}
    assert site.edits().withdraw([job]) == {}
    assert site.places(job) == {"m1": 0.0, "m2": 0.0, "m3": 0.0, "m4": 0.0}


def attributes(site: LeasedPool, job: str) -> set[str]:
    """Return the lease attributes that are set, but for those of every lease."""
    [ad] = site.pool.schedd("condor").query(f"ClusterId == {short_id(job).split('.')[0]}")
    return {name for name in (HOLD_ATTRIBUTE, HELD, PREFER, FIRST) if str(ad.get(name)) in SET}


def test_where_the_site_wants_it_a_kept_job_is_shown_and_one_that_starts_comes_first(
    site: LeasedPool,
) -> None:
    kept, starts = site.submit_heeding(), site.submit_heeding()
    wanted = {kept: HOLD, starts: Wanted(False, "m3")}
    assert site.edits().apply(wanted) == {}
    assert (attributes(site, kept), attributes(site, starts)) == ({HOLD_ATTRIBUTE}, {PREFER})
    assert site.edits(first=True, shows=True).apply(wanted) == {}
    assert attributes(site, kept) == {HOLD_ATTRIBUTE, HELD}
    assert attributes(site, starts) == {PREFER, FIRST}


def test_a_job_prefers_the_group_of_the_machine_or_is_pinned_to_it(site: LeasedPool) -> None:
    job = site.submit_heeding(rank="5.0")
    assert site.edits().apply({job: Wanted(False, "m3")}) == {}
    assert site.places(job) == {"m1": 5.0, "m2": 5.0, "m3": 1_000_005.0, "m4": 1_000_005.0}
    assert site.edits(pins=True).apply({job: Wanted(False, "m1")}) == {}
    assert site.places(job) == {"m1": 5.0, "m2": 5.0}


def test_what_the_user_required_holds_as_before(site: LeasedPool) -> None:
    job = site.submit_heeding(requirements='MachineCluster == "A"')
    assert site.edits(pins=True).apply({job: Wanted(False, "m3")}) == {}
    assert site.places(job) == {}
    site.edits().withdraw_all()
    assert site.places(job).keys() == {"m1", "m2"}


def test_many_jobs_have_one_end_and_it_comes_no_later_than_the_lease(site: LeasedPool) -> None:
    jobs = [site.submit_heeding() for _ in range(20)]
    site.edits().apply(dict.fromkeys(jobs[:10], HOLD))
    site.pool.now_s += 7
    site.edits().apply(dict.fromkeys(jobs[10:], Wanted(False, "m1")))
    ads = site.pool.schedd("condor").query("true", ["OutriderUntil"])
    ends = {ad["OutriderUntil"] for ad in ads}
    assert len(ends) == 1
    assert 5 / 6 * LEASE_S - 7 <= ends.pop() - site.pool.now_s <= LEASE_S


def test_a_renewal_edits_the_end_alone(site: LeasedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    edited: list[str] = []
    real = site.point.schedd.edit

    def noting(jobs: list[str], attribute: str, value: str) -> int:
        edited.append(attribute)
        return real(jobs, attribute, value)

    monkeypatch.setattr(site.point.schedd, "edit", noting)
    jobs = [site.submit_heeding() for _ in range(50)]
    edits = site.edits()
    edits.apply(dict.fromkeys(jobs, HOLD))
    assert sorted(edited) == ["OutriderBy", "OutriderHold", "OutriderUntil"]
    assert edited[-1] == "OutriderUntil", "nothing is heeded before all is set"
    edited.clear()
    edits.apply(dict.fromkeys(jobs, HOLD))
    assert edited == ["OutriderUntil"]


def test_a_job_without_the_hook_is_refused_and_left_alone(site: LeasedPool) -> None:
    old, new = site.submit(10_000), site.submit_heeding()
    refused = site.edits().apply({old: HOLD, new: HOLD})
    assert refused.keys() == {old}
    assert "submitted before Outrider's leases were installed" in refused[old]
    assert site.places(old).keys() == {"m1", "m2", "m3", "m4"}
    assert site.places(new) == {}


def test_machines_without_a_group_and_jobs_of_other_access_points_are_refused(
    site: LeasedPool,
) -> None:
    job = site.submit_heeding()
    refused = site.edits().apply({job: Wanted(False, "m9"), "elsewhere#1.0": HOLD})
    assert refused == {
        job: "no slot of machine m9 names its group (MachineCluster)",
        "elsewhere#1.0": "no access point elsewhere is watched",
    }


def test_where_edits_have_no_right_everything_is_refused(tmp_path: Path) -> None:
    site = LeasedPool(tmp_path, user="bob")
    job = site.submit_heeding()
    assert site.edits().apply({job: HOLD}) == {job: "reported as done, but OutriderHold is "}
    assert site.places(job).keys() == {"m1", "m2", "m3", "m4"}
    site.close()


def test_edits_that_are_lost_are_refused_and_the_others_stand(site: LeasedPool) -> None:
    jobs = [site.submit_heeding() for _ in range(30)]
    site.pool.transport.faults = Faults(refused_edit_ratio=0.3)
    refused = site.edits().apply(dict.fromkeys(jobs, HOLD))
    assert 0 < len(refused) < 30
    for job in jobs:
        assert (site.places(job) == {}) == (job not in refused)


def test_a_second_outrider_is_told_who_acts_and_changes_nothing(site: LeasedPool) -> None:
    mine, theirs = site.submit_heeding(), site.submit_heeding()
    site.edits("pool@one").apply({mine: HOLD})
    with pytest.raises(PeerError, match=r"another Outrider acts here: .* by pool@one, this is po"):
        site.edits("pool@two").apply({theirs: HOLD})
    assert site.places(theirs).keys() == {"m1", "m2", "m3", "m4"}
    site.pool.now_s += LEASE_S  # it was killed, and its leases have lapsed
    assert site.edits("pool@two").apply({theirs: HOLD}) == {}


@pytest.mark.parametrize("off_s", [-80.0, 80.0])
def test_nothing_is_done_by_a_clock_that_is_wrong(site: LeasedPool, off_s: float) -> None:
    job = site.submit_heeding()
    site.clock = lambda: site.pool.now_s + off_s
    with pytest.raises(PeerError, match=rf"clock differs by \{-off_s:+.0f} s .* lease_s, 75 s"):
        site.edits().apply({job: HOLD})
    assert site.places(job).keys() == {"m1", "m2", "m3", "m4"}


def test_an_outage_raises(site: LeasedPool) -> None:
    job = site.submit_heeding()
    site.fails(outage_ratio=1.0)
    for question in (
        lambda: site.edits().apply({job: HOLD}),
        lambda: site.edits().apply({job: Wanted(False, "m1")}),
        lambda: site.edits().withdraw([job]),
        lambda: site.edits().withdraw_all(),
    ):
        with pytest.raises(PeerError, match="does not answer"):
            question()


@pytest.mark.parametrize(
    "group", ['a "b"', "back\\slash", "new\nline", 'x" || true || "', "ä" * 50]
)
def test_a_group_may_have_any_name(tmp_path: Path, group: str) -> None:
    """Names come from machines' ads: they are quoted, never spliced in."""
    site = LeasedPool(tmp_path)
    for machine in ("m3", "m4"):
        site.pool.publish(machine, "MachineCluster", quote(group))
    job = site.submit_heeding()
    assert site.edits(pins=True).apply({job: Wanted(False, "m3")}) == {}
    assert site.places(job).keys() == {"m3", "m4"}
    site.close()
