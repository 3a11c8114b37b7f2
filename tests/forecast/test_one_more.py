"""An extra job of each kind waits like the jobs before it, and its forecast changes nothing."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.one_more import OneMore, kinds_of, one_more
from outrider.forecast.outlook import Outlook
from outrider.forecast.recent_jobs import RecentJob
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.forecast.recorded_grid import EPOCH_S, busy_weeks, journal, started

HALF_HOUR_S = 1_800.0
SPEC = JobSpec(user="ann", vo="cms", cpus=4, estimate_s=HALF_HOUR_S)


def site_with(
    folder: Path, given: Iterable[NamedEvent], cpus: int = 4
) -> tuple[FollowedSite, Outlook]:
    """Return a site with one machine that ran twenty jobs of half an hour, then given events."""
    events: list[NamedEvent] = [
        (EPOCH_S, ev.JOINED, "m1", MachineSpec("A", cpus=cpus)),
        (EPOCH_S, ev.USABLE, "m1", None),
    ]
    for n in range(20):
        at_s = EPOCH_S + n * HALF_HOUR_S
        events += [
            (at_s, ev.SUBMITTED, f"old-{n}", SPEC),
            (at_s, ev.STARTED, f"old-{n}", ("m1", 4)),
            (at_s + HALF_HOUR_S, ev.COMPLETED, f"old-{n}", None),
        ]
    with Journal(folder / "journal.sqlite") as opened:
        opened.append(Entry(inputs=[("grid", event) for event in (*events, *given)]))
    site = FollowedSite(folder / "journal.sqlite")
    outlook = Outlook(site, "strict", replicates=20)
    for _ in site.catch_up():
        pass
    return site, outlook


def asked(site: FollowedSite, outlook: Outlook) -> dict[str, OneMore]:
    """Return the forecast of an extra job, by its VO."""
    found = one_more(site, outlook, "strict", np.random.default_rng(0), 50)
    return {one.kind.vo: one for one in found}


END_S = EPOCH_S + 20 * HALF_HOUR_S


def test_where_a_machine_is_free_it_starts_now(tmp_path: Path) -> None:
    site, outlook = site_with(tmp_path, [(END_S + 60, ev.TICK, "grid", None)])
    one = asked(site, outlook)["cms"]
    assert one.wait_s is not None
    assert one.wait_s.tolist() == [0, 0, 0]
    assert one.kind.n == 20
    assert one.runs_s == pytest.approx(HALF_HOUR_S)


def test_it_waits_behind_all_that_run_and_wait(tmp_path: Path) -> None:
    given: list[NamedEvent] = [
        (END_S + 1, ev.SUBMITTED, "runs", SPEC),
        (END_S + 1, ev.STARTED, "runs", ("m1", 4)),
        (END_S + 2, ev.SUBMITTED, "waits", SPEC),
        (END_S + 3, ev.SUBMITTED, "waits too", SPEC),
        (END_S + 601, ev.TICK, "grid", None),
    ]
    site, outlook = site_with(tmp_path, given)
    one = asked(site, outlook)["cms"]
    assert one.wait_s is not None
    assert one.wait_s[1] == pytest.approx(3 * HALF_HOUR_S - 600.0, rel=0.01)
    assert one.waits_s == pytest.approx(one.wait_s[1], rel=0.01)


def test_each_kind_is_asked_about_and_one_that_fits_nowhere_is_not_known(tmp_path: Path) -> None:
    wide = JobSpec(user="eve", vo="atlas", cpus=64)
    given: list[NamedEvent] = [
        (END_S + 1, ev.SUBMITTED, "too wide", wide), (END_S + 2, ev.TICK, "grid", None)
    ]  # fmt: skip
    site, outlook = site_with(tmp_path, given)
    found = asked(site, outlook)
    assert list(found) == ["cms", "atlas"], "those of which most came first"
    assert found["atlas"].wait_s is None
    assert not len(found["atlas"].waits_s)


def test_room_that_is_scattered_over_machines_is_none(tmp_path: Path) -> None:
    given: list[NamedEvent] = [
        (END_S + 1, ev.JOINED, "m2", MachineSpec("A", cpus=2)),
        (END_S + 1, ev.JOINED, "m3", MachineSpec("A", cpus=2)),
        (END_S + 1, ev.USABLE, "m2", None),
        (END_S + 1, ev.USABLE, "m3", None),
        (END_S + 1, ev.SUBMITTED, "runs", SPEC),
        (END_S + 1, ev.STARTED, "runs", ("m1", 4)),
        (END_S + 2, ev.TICK, "grid", None),
    ]
    site, outlook = site_with(tmp_path, given)
    assert asked(site, outlook)["cms"].wait_s is None, "four CPUs are free, no machine has them"


def test_the_middle_job_stands_for_its_kind() -> None:
    sizes = [(1, 60.0), (8, None), (2, 900.0), (2, 100.0), (2, 5_000.0)]
    recent = [
        RecentJob(n, 0.0, JobSpec(vo="cms", job_class="batch", cpus=cpus, estimate_s=s))
        for n, (cpus, s) in enumerate(sizes)
    ]
    recent.append(RecentJob(9, 0.0, JobSpec(vo="alice", job_class="batch")))
    first, second = kinds_of(recent)
    assert (first.vo, first.n, first.spec.cpus, first.spec.estimate_s) == ("cms", 5, 2, 900.0)
    assert (second.vo, second.n) == ("alice", 1)
    assert kinds_of(recent, max_kinds=1) == [first]
    assert kinds_of([]) == []


def test_asking_changes_no_answer_and_no_score(tmp_path: Path) -> None:
    path = journal(busy_weeks(3, 500), tmp_path / "journal.sqlite")
    plain, beside = FollowedSite(path), FollowedSite(path)
    without, asking = Outlook(plain, "strict", 0, 20), Outlook(beside, "strict", 0, 20)
    rng = np.random.default_rng(1)
    for looks, _ in enumerate(zip(plain.catch_up(), beside.catch_up(), strict=True)):
        if looks % 20 == 0:
            assert without.look() == asking.look()
            list(one_more(beside, asking, "strict", rng, 5))
    assert without.scores() == asking.scores()


@pytest.mark.parametrize(
    ("jobs", "every"), [(450, 6), pytest.param(900, 12, marks=pytest.mark.long)]
)
def test_jobs_that_come_wait_about_as_long_as_was_said(
    jobs: int, every: int, tmp_path: Path
) -> None:
    """Forecasts of the middle job of recent arrivals hold for the next job that comes."""
    workload = busy_weeks(3, jobs)
    submit_s, starts_s = workload.submit_s + EPOCH_S, started(workload) + EPOCH_S
    site = FollowedSite(journal(workload, tmp_path / "journal.sqlite"))
    outlook, rng, pairs = Outlook(site, "strict", 0, 20), np.random.default_rng(2), []
    for looks, now_s in enumerate(site.catch_up()):
        outlook.look()
        next_job = int(np.searchsorted(submit_s, now_s, side="right"))
        if looks % every or looks < 60 or next_job == len(submit_s):
            continue
        [one] = one_more(site, outlook, "strict", rng, 40)
        if one.wait_s is not None:
            pairs.append((float(one.wait_s[1]), float(starts_s[next_job] - now_s)))
    predicted_s, waited_s = np.array(pairs).T
    assert len(pairs) >= 20
    assert waited_s.mean() > 600.0, "there is something to foretell"
    assert (
        np.abs(predicted_s - waited_s).mean() < 0.5 * np.abs(waited_s - np.median(waited_s)).mean()
    )
