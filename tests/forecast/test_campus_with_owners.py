"""Expected starts on a campus with owners agree with its simulation by the engine."""

import datetime as dt
from pathlib import Path

import pytest

from outrider.forecast.closures import NOTHING_CLOSED, ClosureHistory
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.outlook import Outlook
from outrider.formats.campus.files import write_campus
from outrider.journal import Journal
from outrider.model import events as ev
from outrider.model.localtime import HOUR_S
from outrider.model.modes import FIRST_FIT
from outrider.service.demo.simulated_journal import write_journal
from outrider.simulation.generators.campus import generate_campus


class OwnersNeverCome(FollowedSite):
    """The same site, followed by a forecast that ignores owners."""

    def closure_history(self) -> ClosureHistory:
        return NOTHING_CLOSED


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a journal of a campus that is busy by day."""
    folder = tmp_path_factory.mktemp("campus")
    campus = generate_campus(
        5, weeks=2, machines=40, clusters=4, start=dt.date(2010, 2, 1), jobs=3_600, bad_jobs=300
    )
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / "journal.sqlite")
    return folder / "journal.sqlite"


def hourly_scores(site: FollowedSite) -> dict[str, float]:
    """Return the scores of every third forecast at a full hour."""
    outlook = Outlook(site, FIRST_FIT, replicates=40)
    for now_s in site.catch_up():
        if now_s % (3 * HOUR_S) == 0:
            outlook.look()
    scores: dict[str, float] = outlook.scores()["hourly"]
    return scores


def test_intervals_hold_and_whoever_reckons_with_no_owner_does_worse(path: Path) -> None:
    site = FollowedSite(path)
    scores, without = hourly_scores(site), hourly_scores(OwnersNeverCome(path))
    assert site.requeueing.goes_behind, "the engine queues a job that was evicted at the end"
    assert site.closures.evicting == {"owner", "reboot"}
    assert min(scores["n"], without["n"]) > 200
    assert 0.65 <= scores["coverage_ratio"] <= 0.95
    assert scores["pinball_s"] < 0.9 * without["pinball_s"], (scores, without)


def test_every_start_answers_also_those_after_a_lost_run(path: Path) -> None:
    with Journal(path, read_only=True) as journal:
        recorded = [event for _, _, event in journal.inputs_after(0)]
    site = FollowedSite(path)
    *_, _ = site.catch_up()
    started = [(site.name(job), at_s) for job, at_s in site.started]
    assert started == [(job, at_s) for at_s, kind, job, _ in recorded if kind == ev.STARTED]
    assert len({job for job, _ in started}) < 0.9 * len(started), "many start again"


def test_who_lost_a_run_waits_at_the_end_and_will_run_for_longer(path: Path) -> None:
    site = FollowedSite(path)
    joined_s, since_s, lost_s = dict[str, float](), dict[str, float](), dict[str, float]()
    with Journal(path, read_only=True) as journal:
        recorded = [event for _, _, event in journal.inputs_after(0)]
    until = site.catch_up()
    now_s, seen = next(at_s for at_s in until if len(site.state().lost_s.nonzero()[0]) >= 5), 0
    for at_s, kind, job, _ in recorded:
        if at_s > now_s:
            break
        seen += 1
        if kind == ev.SUBMITTED:
            joined_s[job] = at_s
        elif kind == ev.STARTED:
            since_s[job] = at_s
        elif kind == ev.EVICTED:
            joined_s[job] = at_s
            lost_s[job] = max(at_s - since_s[job], lost_s.get(job, 0.0))
    waiting = [site.name(job) for job in site.waiting()]
    assert seen > 100
    assert [joined_s[job] for job in waiting] == sorted(joined_s[job] for job in waiting)
    assert site.state().lost_s.tolist() == pytest.approx([lost_s.get(job, 0.0) for job in waiting])


def test_a_step_of_days_is_gone_through_hour_by_hour(path: Path) -> None:
    times = list(FollowedSite(path).catch_up())
    assert times == sorted(times)
    hours = [time_s for time_s in times if time_s % HOUR_S == 0]
    assert len(hours) > 0.9 * (times[-1] - times[0]) / HOUR_S
