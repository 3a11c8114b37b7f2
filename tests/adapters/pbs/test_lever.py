"""Execution times as leases, with fake commands that answer as documented."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from outrider.api import DecisionRow, Lever, PeerError
from outrider.testing import LeverConformance, LeverHarness
from outrider_adapters.pbs.adapter import LeasedExecutionTimes, PBSAdapter
from outrider_adapters.pbs.dialects import dialect_of, pbs_commands
from outrider_adapters.pbs.pbs_watch import PBSWatch
from outrider_adapters.pbs.settings import PBSSettings
from tests.adapters.pbs.fake_pbs import SERVER, FakePBS

LEASE_S = 300.0
BOTH = pytest.mark.parametrize("dialect", ["openpbs", "torque"])


def decision(job: str, action: str) -> DecisionRow:
    return DecisionRow(0.0, job, action, None, 1, "best", "bandit", "active", gate="act")


class Site:
    """Server, its adapter's undo log, and levers on it; commands use their caller's time zone."""

    def __init__(self, folder: Path, dialect: str = "openpbs", **more: Any) -> None:
        self.pbs = FakePBS(folder, dialect, by_zone=True)
        self.settings = PBSSettings(commands=str(folder), lease_s=LEASE_S, **more)
        self.adapter = PBSAdapter("pbs", self.settings)

    def lever(self) -> LeasedExecutionTimes:
        return LeasedExecutionTimes(self.adapter, lambda: self.pbs.now_s)

    def defer(self, *jobs: str) -> Mapping[str, str]:
        return self._asked(lambda lever: lever.apply([decision(job, "defer") for job in jobs]))

    def start(self, *jobs: str) -> Mapping[str, str]:
        return self._asked(lambda lever: lever.apply([decision(job, "start") for job in jobs]))

    def withdraw(self, *jobs: str) -> Mapping[str, str]:
        return self._asked(lambda lever: lever.withdraw(jobs))

    def _asked(self, call: Callable[[Lever], Mapping[str, str]]) -> Mapping[str, str]:
        with closing(self.lever()) as lever:
            return call(lever)

    def ad(self, job: str) -> dict[str, Any]:
        """Return a job's attributes at the server now."""
        commands = pbs_commands(self.settings)
        dialect_of(self.settings, commands).jobs()  # whoever asks sees what the server has done
        self.pbs.load()
        found: dict[str, Any] = self.pbs.state["jobs"][job]
        return found

    def ahead_s(self, job: str) -> float:
        """Return how far its execution time lies ahead; 0: it may begin."""
        ad = self.ad(job)
        return float(ad["Execution_Time"] - self.pbs.now_s) if ad["job_state"] == "W" else 0.0


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    """Provide a fake PBS server of the dialect that the test names."""
    return Site(tmp_path / "pbs", getattr(request, "param", "openpbs"))


class Queue(LeverHarness):
    """Return a job to defer, one to leave alone, and one that has left."""

    def __init__(self, folder: Path, dialect: str) -> None:
        self.site = Site(folder, dialect)
        self.job, self.other, self._gone = (self.site.pbs.submit() for _ in range(3))
        self.site.pbs.leave(self._gone)

    def lever(self) -> Lever:
        return self.site.lever()

    def decision(self) -> DecisionRow:
        return decision(self.job, "defer")

    def seen(self) -> Any:
        return [self.site.ahead_s(job) > 0 for job in (self.job, self.other)]

    @property
    def gone(self) -> str:
        return self._gone

    def wait(self, seconds: float) -> None:
        self.site.pbs.wait(seconds)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class TestLeasedExecutionTimesOfOpenPBS(LeverConformance):
    dialect = "openpbs"

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "pbs"

    def harness(self) -> LeverHarness:
        return Queue(self.folder, self.dialect)


class TestLeasedExecutionTimesOfTorque(TestLeasedExecutionTimesOfOpenPBS):
    dialect = "torque"


@BOTH
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_the_time_is_the_same_in_every_zone(
    tmp_path: Path, dialect: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    site = Site(tmp_path / "pbs", dialect)
    job = site.pbs.submit()
    assert site.defer(job) == {}
    assert LEASE_S - 5 <= site.ahead_s(job) <= LEASE_S
    site.pbs.wait(LEASE_S + 1)
    assert site.ahead_s(job) == 0


@BOTH
def test_a_watch_tells_of_the_job_as_its_user_left_it(
    tmp_path: Path, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / "pbs", dialect)
    job = site.pbs.submit()
    since_s = float(site.ad(job)["etime"])
    settings = PBSSettings(commands=str(tmp_path / "pbs"), start_at="beginning")
    monkeypatch.setenv("TZ", "UTC0")  # the watch takes times for those of its own setting
    asks = dialect_of(settings, pbs_commands(settings))
    watch = PBSWatch(asks, settings, lambda: site.pbs.now_s, site.adapter.undo_log)
    watch.start(None)
    reported = watch.look().events
    assert site.defer(job) == {}
    reported += watch.look().events
    why = watch.why(job)
    assert why is not None
    assert why.code == "W (Outrider's)"
    assert why.sentence.endswith("because Outrider asked for that: no user did")
    site.pbs.wait(LEASE_S + 1)
    reported += watch.look().events
    site.pbs.load()
    site.pbs.start(job, site.pbs.now_s)
    reported += watch.look().events
    mine = [event for event in reported if event[2] == job]
    assert [event[0] for event in mine[:1]] == [since_s]
    assert len(mine) == 2, "submitted and started: no hold, no edit"
    assert mine[0][3].eligible_s is None, "its wait is counted from its submission"
    row = watch.jobs.row(job)
    assert row is not None
    assert row.spec.eligible_s is None
    assert float(site.ad(job)["etime"]) > since_s, "while PBS counts from the lease"


def test_a_users_own_time_is_never_shortened_and_holds_again(site: Site) -> None:
    later, sooner = site.pbs.submit(), site.pbs.submit()
    now_s = int(site.pbs.now_s)
    for job, begin_s in ((later, now_s + 9_000), (sooner, now_s + 100)):
        site.pbs.change(job, job_state="W", etime=None, Execution_Time=begin_s)
    assert site.defer(later, sooner) == {}
    assert site.ad(later)["Execution_Time"] == now_s + 9_000
    assert site.ad(sooner)["Execution_Time"] > now_s + 100
    assert site.adapter.undo_log.entries.keys() == {sooner}
    assert site.adapter.undo_log.entries[sooner].before["begin_s"] == now_s + 100
    assert site.start(later, sooner) == {}
    assert site.ad(later)["Execution_Time"] == now_s + 9_000
    assert site.ad(sooner)["Execution_Time"] == now_s + 100


def test_what_the_user_changes_meanwhile_stays(site: Site) -> None:
    job = site.pbs.submit(at_s=time.time() - 100)
    assert site.defer(job) == {}
    site.pbs.load()
    site.pbs.change(job, job_state="Q", Execution_Time=None, etime=int(site.pbs.now_s))
    message = "its start time was changed since Outrider set it"
    assert site.defer(job) == {job: message}
    assert site.withdraw(job) == {}
    assert site.ahead_s(job) == 0


def test_what_is_refused_is_told_in_its_own_words_and_not_noted(site: Site) -> None:
    job, held = site.pbs.submit(), site.pbs.submit()
    site.pbs.change(held, job_state="H", Hold_Types="u", etime=None)
    site.pbs.state["may_alter"] = False
    site.pbs.save()
    assert site.defer(job, held) == {
        job: f"qalter: qalter: Unauthorized Request {job}",
        held: "the batch system itself holds it: it has no eligible time",
    }
    assert site.ahead_s(job) == 0
    assert not site.adapter.undo_log.entries


def test_one_that_is_refused_spoils_nothing_for_the_others(site: Site) -> None:
    jobs = [site.pbs.submit() for _ in range(3)]
    in_an_array = f"7[2].{SERVER}"
    refused = site.defer(jobs[0], in_an_array, f"99.{SERVER}", jobs[2])
    assert refused == {
        in_an_array: "it is a job of an array, which PBS alters only as a whole",
        f"99.{SERVER}": "it no longer waits in the queue",
    }
    assert [site.ahead_s(job) > 0 for job in jobs] == [True, False, True]


@pytest.mark.parametrize("site", ["torque"], indirect=True)
def test_torque_alters_a_job_of_an_array_by_itself(site: Site) -> None:
    jobs = [site.pbs.submit() for _ in range(2)]
    for n, job in enumerate(jobs):
        site.pbs.state["jobs"][f"7[{n}].{SERVER}"] = site.pbs.state["jobs"].pop(job)
    site.pbs.save()
    assert site.defer(f"7[1].{SERVER}") == {}
    assert site.ahead_s(f"7[1].{SERVER}") > 0
    assert site.ahead_s(f"7[0].{SERVER}") == 0


def test_a_server_whose_clock_is_off_keeps_nothing(site: Site) -> None:
    job = site.pbs.submit(at_s=time.time() - 1_000)
    site.pbs.state["server_off_s"] = -LEASE_S / 2
    site.pbs.save()
    with pytest.raises(PeerError, match=r"the server's clock differs by -\d+ s from this host's"):
        site.defer(job)
    site.pbs.wait(LEASE_S / 2 + 5)
    assert site.ahead_s(job) == 0, "for no longer than a lease"


def test_a_server_that_does_not_answer_leaves_all_as_it_is(site: Site) -> None:
    job, other = site.pbs.submit(), site.pbs.submit()
    assert site.defer(job) == {}
    noted = dict(site.adapter.undo_log.entries)
    site.pbs.load()
    with site.pbs.silenced(), pytest.raises(PeerError, match="cannot connect to server"):
        site.defer(job, other)
    assert site.adapter.undo_log.entries == noted
    site.pbs.wait(LEASE_S + 1)
    assert site.ahead_s(job) == site.ahead_s(other) == 0


def test_release_lets_go_what_a_killed_daemon_left(site: Site) -> None:
    jobs = [site.pbs.submit() for _ in range(5)]
    assert site.defer(*jobs) == {}
    with closing(site.lever()) as lever:
        assert lever.withdraw_all() == 5
        assert lever.withdraw_all() == 0
    assert all(site.ahead_s(job) == 0 for job in jobs)
