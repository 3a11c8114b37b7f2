"""On a campus whose owners come and go, starts are expected as its engine makes them."""

import datetime as dt
from pathlib import Path

import pytest

from outrider.formats.campus.files import write_campus
from outrider.model.disciplines import FIRST_FIT
from outrider.model.localtime import HOUR_S
from outrider.service.simulated_journal import write_journal
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.starts.closures_ahead import NOTHING_CLOSED, ClosuresLately
from outrider.twin.starts.followed_site import FollowedSite
from outrider.twin.starts.outlook import Outlook


class OwnersNeverCome(FollowedSite):
    """The same site for somebody who reckons with no owner."""

    def closures_lately(self) -> ClosuresLately:
        return NOTHING_CLOSED


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campus")
    campus = generate_campus(
        5, weeks=2, machines=40, clusters=4, start=dt.date(2010, 2, 1), jobs=3_600, bad_jobs=300
    )
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / "journal.sqlite")
    return folder / "journal.sqlite"


def hourly_scores(site: FollowedSite) -> dict[str, float]:
    """Of what was said at full hours, every third."""
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


def test_a_step_of_days_is_gone_through_hour_by_hour(path: Path) -> None:
    times = list(FollowedSite(path).catch_up())
    assert times == sorted(times)
    hours = [time_s for time_s in times if time_s % HOUR_S == 0]
    assert len(hours) > 0.9 * (times[-1] - times[0]) / HOUR_S
