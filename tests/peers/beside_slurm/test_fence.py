"""Tests of the fence on a real Slurm: one Outrider acts, and only the others see that."""

import re
import time
from contextlib import closing
from pathlib import Path

import pytest

from outrider.api import PeerError
from outrider_adapters.slurm.acting.fence_jobs import NAME
from tests.peers.beside_slurm.levers import LEASE_S, Site, decision
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


def fences(slurm: Slurm, *states: str) -> list[str]:
    """Return the numbers of fence jobs in these states."""
    words = ("-n", NAME, "-t", ",".join(states) or "all", "-o", "%A")
    return slurm.run("squeue", "-a", "-h", *words).split()


def fenced(slurm: Slurm, label: str = "slurm") -> Site:
    return Site(slurm, label=label, fence=True)


@pytest.fixture
def job(slurm: Slurm, folder: Path, full: list[str]) -> str:
    """Return a job that waits."""
    assert full
    return submit(slurm, folder)


def test_another_changes_nothing_and_says_who_acts(slurm: Slurm, job: str) -> None:
    first, second = fenced(slurm), fenced(slurm, "other")
    other_state = fenced(slurm)  # of the same label, with a state directory of its own
    with closing(first.lever()) as lever:
        assert lever.apply([decision(job, "defer")]) == {}
        until_s = first.eligible_s(job)
        [fence] = fences(slurm, "PD")
        for site in (second, other_state):
            acts = rf"slurm@here:\S+ acts on this Slurm already \(job {fence} of root"
            with pytest.raises(PeerError, match=acts):
                site.defer(job)
            assert not site.adapter.undo_log.entries
        assert first.eligible_s(job) == until_s
        assert fences(slurm) == [fence], "the others submitted none"
    assert fences(slurm, "PD") == [], "a clean end cancels it"
    first.withdraw(job)
    assert second.defer(job) == {}


def test_it_lapses_by_itself_in_a_full_pool_and_never_runs(slurm: Slurm, job: str) -> None:
    first, second = fenced(slurm), fenced(slurm, "other")
    lever = first.lever()  # is never closed, as after kill -9
    assert lever.apply([decision(job, "defer")]) == {}
    [fence] = fences(slurm, "PD")
    with pytest.raises(PeerError, match="acts on this Slurm already"):
        second.defer(job)
    slurm.wait_until("its end", lambda: fences(slurm, "DL") == [fence], LEASE_S + 5.0)
    assert of_slurm(slurm, fence)["NodeList"] in ("", "(null)")
    assert second.defer(job) == {}


def test_it_is_renewed_and_outlives_a_restart(slurm: Slurm, job: str) -> None:
    site = fenced(slurm)
    killed = site.lever()
    assert killed.apply([decision(job, "defer")]) == {}
    [fence] = fences(slurm, "PD")
    until_s = site.eligible_s(fence)
    time.sleep(LEASE_S / 2)
    with closing(fenced_again(site).lever()) as lever:
        assert lever.apply([decision(job, "defer")]) == {}
        assert fences(slurm, "PD") == [fence]
        assert site.eligible_s(fence) > until_s
        assert float(of_slurm(slurm, fence)["Deadline"]) == site.eligible_s(fence) + 1


def fenced_again(site: Site) -> Site:
    return Site(site.slurm, site.adapter.undo_log, fence=True)


def test_of_two_that_came_at_once_the_lower_number_counts(slurm: Slurm, job: str) -> None:
    site = fenced(slurm)
    with closing(site.lever()) as lever:
        assert lever.apply([decision(job, "defer")]) == {}
        [mine] = fences(slurm, "PD")
        hers = by_hand(slurm, "hers@elsewhere 1")
        assert int(mine) < int(hers)
        assert lever.apply([decision(job, "defer")]) == {}, "a later one does not count"
        slurm.run("scancel", mine)
        with pytest.raises(PeerError, match=rf"hers@elsewhere 1 acts .* \(job {hers} of root"):
            lever.apply([decision(job, "defer")])
    assert fences(slurm, "PD") == [hers], "and it is left alone"


def by_hand(slurm: Slurm, who: str, *before: str) -> str:
    words = (f"--job-name={NAME}", f"--comment={who}", "--begin=now+60", "-o", "/dev/null")
    return slurm.run(*before, "sbatch", "--parsable", "--chdir=/", *words, "--wrap=true").strip()


def test_jobs_of_ordinary_users_under_that_name_count_for_nothing(slurm: Slurm, job: str) -> None:
    slurm.run("chmod", "a+rx", *(str(p) for p in (slurm.run_dir, *slurm.run_dir.parents)))
    users = by_hand(slurm, "slurm@here 1", *NOBODY)
    site = fenced(slurm)
    with closing(site.lever()) as lever:
        assert lever.apply([decision(job, "defer")]) == {}
        watched = Watched(slurm, undo_log=site.adapter.undo_log)
        watched.look()
        assert watched.kinds_of(users) == ["submitted", "held"], "it is a user's"
    slurm.run("scancel", users)


def test_nobody_is_told_of_it(slurm: Slurm, job: str) -> None:
    site = fenced(slurm)
    watched = Watched(slurm, undo_log=site.adapter.undo_log)
    watched.look_until("the job", lambda: watched.kinds_of(job) != [])
    with closing(site.lever()) as lever:
        lever.apply([decision(job, "defer")])
        [fence] = fences(slurm, "PD")
        watched.look()
        again = Watched(slurm, watched.cursor, site.adapter.undo_log)
        again.look()
    watched.look()
    again.look()
    assert watched.kinds_of(fence) == again.kinds_of(fence) == []
    assert watched.ask(f"outrider:{fence}") is None


def test_one_that_cannot_be_submitted_says_what_would_be_right(slurm: Slurm, job: str) -> None:
    site = Site(slurm, fence=True, fence_partition="nosuch")
    right = re.escape("use: its user may submit a job of one CPU and one minute")
    with pytest.raises(PeerError, match=f"sbatch: .*[Ii]nvalid partition.*; .*{right}"):
        site.defer(job)
    assert site.ahead_s(job) == 0
    assert not site.adapter.undo_log.entries


def test_what_comes_too_late_for_the_fence_is_not_done(
    slurm: Slurm, folder: Path, full: list[str]
) -> None:
    """Stop a call in its middle, as it takes longer than the fence lasts."""
    assert full
    jobs = [submit(slurm, folder) for _ in range(8)]
    site = Site(slurm, fence=True, updates_per_s=0.5)
    with pytest.raises(PeerError, match="the fence expired before this update"):
        site.defer(*jobs)
    noted = site.adapter.undo_log.entries
    done = [job for job in jobs if f"outrider:{job}" in noted]
    assert 2 <= len(done) <= LEASE_S / 2 + 1
    assert {site.eligible_s(job) for job in done} == {one.until_s for one in noted.values()}
    until_s = site.eligible_s(done[0])
    assert all(site.eligible_s(job) < until_s for job in jobs if job not in done)


def test_doctor_proves_the_lever_on_a_job_that_is_gone_afterwards(slurm: Slurm, job: str) -> None:
    assert job
    site = fenced(slurm)
    with closing(site.lever()) as lever:
        [(what, state, found, _)] = lever.prove()
        assert (what, state) == ("a job of its own", "ok"), found
        assert "submitted, moved as an operator may, and cancelled" in found
    assert fences(slurm, "PD") == []
    assert Site(slurm).lever().prove() == [], "without a fence there is no such job"
