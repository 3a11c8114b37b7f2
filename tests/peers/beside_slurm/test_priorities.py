"""Tests of priorities on a real Slurm: restored age, raised starts, and reverting both."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from outrider.api import PeerError
from tests.cli.running import shell
from tests.peers.beside_slurm.levers import LEASE_S, Site, as_user
from tests.peers.beside_slurm.ranked import (
    AGE_WEIGHT,
    MOST_AGE_S,
    OPERATOR_UID,
    priorities,
    ranked_slurm,
)
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit
from tests.peers.plain_policies import install_policies
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason
from tests.peers.slurm_accounting import missing_reason as missing_accounting
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm

STEP = AGE_WEIGHT * LEASE_S // MOST_AGE_S + 1
"""Priority by the age of a lease: restored priority is a multiple of it."""
HERS = 70
"""Site factor that an administrator gave a job."""


CONFIG = """\
mode = "active"
state_dir = "{state}"
listen = "127.0.0.1:0"

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0
lease_s = {lease_s}
order_by = "site_factor"

[policies.youngest_first]
"""


@pytest.fixture(scope="module")
def slurm(folder: Path) -> Iterator[Slurm]:
    """Provide a real Slurm with priorities and accounting."""
    require_peer("Slurm", missing_reason())
    require_peer("slurmdbd", missing_accounting())
    with ranked_slurm(folder) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        patch.setenv("SBATCH_ACCOUNT", "physics")
        yield running


@pytest.fixture
def jobs(slurm: Slurm, folder: Path, full: list[str]) -> list[str]:
    """Return four jobs that wait, and whose age counts."""
    assert full
    made = [submit(slurm, folder, "-N1", "--exclusive", sleep_s=600) for _ in range(4)]
    slurm.wait_until("ages", lambda: all(accrues(slurm, job) for job in made))
    return made


def accrues(slurm: Slurm, job: str) -> bool:
    return of_slurm(slurm, job)["AccrueTime"].isdecimal()


def test_a_deferral_takes_no_age_from_a_job_whoever_ends_it(slurm: Slurm, jobs: list[str]) -> None:
    released, lapsed, bare, other = jobs
    slurm.run("scontrol", "update", f"JobId={released}", f"SiteFactor={HERS}")
    slurm.run("scontrol", "update", f"JobId={other}", f"SiteFactor={HERS}")
    site, without = Site(slurm, keeps_age=True), Site(slurm)
    time.sleep(LEASE_S)  # of age to lose
    assert site.defer(released, lapsed) == without.defer(bare) == {}
    time.sleep(LEASE_S / 2)
    assert site.defer(released) == without.defer(bare) == {}
    assert site.start(released) == {}
    slurm.wait_until("lapses", lambda: all(accrues(slurm, job) for job in jobs), LEASE_S + 5.0)
    time.sleep(2)
    now = priorities(slurm, *jobs)
    assert now[other]["age"] - now[released]["age"] > STEP, "Slurm counts from the lease"
    assert abs(now[other]["priority"] - now[released]["priority"]) <= STEP / 2 + 2
    assert abs(now[other]["priority"] - HERS - now[lapsed]["priority"]) <= STEP / 2 + 2
    assert now[other]["priority"] - HERS - now[bare]["priority"] > STEP, "without, it is lost"
    assert {job["partition"] for job in now.values()} == {1000}
    assert {job["nice"] for job in now.values()} == {0}
    with closing(site.lever()) as lever:
        assert lever.withdraw_stale() == 0, "it is due for as long as they wait"
        assert lever.withdraw_all() == 2
        assert lever.withdraw_all() == 0
    then = priorities(slurm, *jobs)
    assert (then[released]["site"], then[lapsed]["site"]) == (HERS, 0), "exactly as before"


@pytest.mark.parametrize(("order_by", "column"), [("site_factor", "site"), ("nice", "nice")])
def test_one_that_starts_comes_before_the_others_and_has_its_old_value_then(
    slurm: Slurm, full: list[str], jobs: list[str], order_by: str, column: str
) -> None:
    *others, second, first = jobs
    site = Site(slurm, order_by=order_by)
    assert site.start(second, first) == {}
    now = priorities(slurm, *jobs)
    assert now[first]["priority"] > max(now[job]["priority"] for job in others)
    assert site.withdraw(second) == {}
    assert priorities(slurm)[second][column] == 0
    slurm.run("scancel", full[0])
    slurm.wait_until("its run", lambda: shows(slurm, first, "RUNNING"))
    assert site.withdraw(first) == {}, "as the daemon does once it has started"
    assert not any(site.adapter.undo_log.part(name).entries for name in ("site_factor", "nice"))
    slurm.run("scontrol", "requeue", first)
    rest = [*others, second]
    slurm.wait_until("another's run", lambda: any(shows(slurm, job, "RUNNING") for job in rest))
    slurm.run("scontrol", "update", f"JobId={first}", "StartTime=now")
    assert priorities(slurm)[first][column] == 0


def shows(slurm: Slurm, job: str, state: str) -> bool:
    return of_slurm(slurm, job)["JobState"] == state


def test_a_value_that_somebody_else_gave_since_is_left_alone_and_told(
    slurm: Slurm, jobs: list[str]
) -> None:
    mine, hers = jobs[:2]
    site = Site(slurm, order_by="site_factor")
    assert site.start(mine, hers) == {}
    slurm.run("scontrol", "update", f"JobId={hers}", f"SiteFactor={HERS}")
    changed = "its site factor was changed since Outrider set it"
    assert site.start(mine, hers) == {hers: changed}
    assert site.defer(hers) == {hers: changed}
    with closing(site.lever()) as lever:
        with pytest.raises(PeerError, match=f"1 of 2 jobs were not restored: .*{changed}"):
            lever.withdraw_all()
        assert lever.withdraw_all() == 0
    now = priorities(slurm)
    assert (now[mine]["site"], now[hers]["site"]) == (0, HERS)


def test_what_nobody_renews_is_taken_back_and_what_is_renewed_is_not(
    slurm: Slurm, jobs: list[str]
) -> None:
    kept, left = jobs[:2]
    slurm.run("scontrol", "update", f"JobId={left}", f"SiteFactor={HERS}")
    site = Site(slurm, order_by="site_factor")
    assert site.start(kept, left) == {}
    with closing(site.lever()) as lever:
        assert lever.withdraw_stale() == 0
        time.sleep(LEASE_S / 2)
        assert site.start(kept) == {}
        time.sleep(LEASE_S / 2 + 1)
        assert lever.withdraw_stale() == 1
    now = priorities(slurm)
    assert now[left]["site"] == HERS
    assert now[kept]["site"] > AGE_WEIGHT


def test_release_puts_back_what_a_killed_daemon_left_and_nothing_of_one_that_lives(
    slurm: Slurm, folder: Path, tmp_path: Path
) -> None:
    """Raise a job with `--exclusive`, which has a node for Outrider, but not for Slurm."""
    for node in slurm.nodes:
        submit(slurm, folder, "-w", node, sleep_s=600)
    slurm.wait_until("their runs", lambda: len(slurm.jobs("R")) == len(slurm.nodes))
    job = submit(slurm, folder, "--exclusive", sleep_s=600)
    slurm.wait_until("its wait", lambda: accrues(slurm, job))
    slurm.run("scontrol", "update", f"JobId={job}", f"SiteFactor={HERS}")
    config = tmp_path / "outrider.toml"
    config.write_text(CONFIG.format(state=tmp_path / "state", lease_s=LEASE_S))
    with DaemonProcess(config, install_policies(tmp_path)) as daemon:
        slurm.wait_until("its raise", lambda: priorities(slurm)[job]["site"] > AGE_WEIGHT)
        time.sleep(LEASE_S + 1)  # renewed several times
        message = shell("release", "--stale", "--config", config, **daemon.environ)
        assert message.out == "slurm: leased_start_times: reverted for 0 jobs.\n", message
        assert priorities(slurm)[job]["site"] > AGE_WEIGHT
        daemon.kill()
        time.sleep(LEASE_S + 1)
        message = shell("release", "--stale", "--config", config, **daemon.environ)
        assert message.out == "slurm: leased_start_times: reverted for 1 jobs.\n", message
    assert priorities(slurm)[job]["site"] == HERS


def test_an_operator_may_do_all_of_it_and_nothing_more_once_that_is_revoked(
    slurm: Slurm, jobs: list[str]
) -> None:
    mine, other = jobs[:2]
    with as_user(slurm, OPERATOR_UID) as commands:
        site = Site(slurm, fence=True, keeps_age=True, order_by="site_factor", **commands)
        assert site.defer(mine) == site.start(other) == {}
        assert site.ahead_s(mine) > 0
        assert priorities(slurm)[other]["site"] > AGE_WEIGHT
        slurm.run("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=None")
        try:
            revoked = Site(slurm, site.adapter.undo_log, **commands)
            noted = dict(site.adapter.undo_log.entries)
            denied = "scontrol: Invalid user id for job {}"
            assert revoked.defer(jobs[2]) == {jobs[2]: denied.format(jobs[2])}
            assert revoked.withdraw(other) == {other: denied.format(other)}
            assert site.ahead_s(jobs[2]) == 0
            assert site.adapter.undo_log.entries == noted
        finally:
            words = ("modify", "user", "daemon", "set", "adminlevel=Operator")
            slurm.run("sacctmgr", "-i", *words)


def test_a_limit_is_explained_with_its_value_and_use(slurm: Slurm, folder: Path) -> None:
    for words in (
        "add qos short MaxJobsPerUser=1 MaxWall=30",
        "modify user root set qos=normal,short",
    ):
        slurm.run("sacctmgr", "-i", *words.split())
    watched = Watched(slurm)
    first = submit(slurm, folder, "--qos=short", "-t", "10", sleep_s=300)
    slurm.wait_until("its run", lambda: first in slurm.jobs("R"))
    second = submit(slurm, folder, "--qos=short", "-t", "10")
    reason = "QOSMaxJobsPerUserLimit"
    slurm.wait_until(reason, lambda: of_slurm(slurm, second)["Reason"] == reason)
    watched.look()
    told = watched.why(second)
    assert told.sentence == (
        "a limit holds it back: QOS short allows 1 running job for each user (now: 1 running job)"
    )
    assert not told.never
    long = submit(slurm, folder, "--qos=short", "-t", "50", "-H")
    slurm.run("scancel", first, second)
    slurm.run("scontrol", "release", long)
    reason = "QOSMaxWallDurationPerJobLimit"
    slurm.wait_until(reason, lambda: of_slurm(slurm, long)["Reason"] == reason)
    watched.look()
    told = watched.why(long)
    assert told.never
    assert told.sentence == (
        "it never starts as submitted: QOS short allows 0:30:00 of run time for one job; it asks "
        "for 0:50:00 of run time"
    )
