"""The demo opens on an afternoon on which jobs wait, after weeks of which the twin can speak."""

import datetime as dt

import pytest

from outrider.model import events
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun, keep_nothing
from outrider.service.demo.demo import busy_afternoon_s
from outrider.simulation.generators.campus import generate_campus

DAY_S = 86_400.0


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_it_begins_on_a_working_afternoon_on_which_jobs_wait(seed: int) -> None:
    begin_s = busy_afternoon_s(120, 8.0, seed)
    assert 5 * 7 * DAY_S < begin_s < 7 * 7 * DAY_S
    assert begin_s // DAY_S % 7 < 5
    assert 12 <= begin_s % DAY_S / 3600 < 18
    campus = generate_campus(
        seed, weeks=8.0, machines=120, clusters=6, start=dt.date(2010, 2, 1)
    )  # fmt: skip
    policy = make_policy("random_match", {}, seed, "test")
    run = CampusRun(campus, [policy], keep_nothing, begin_s, exact=False)
    came = {job for _, kind, job, _ in run.stream() if kind == events.SUBMITTED}
    assert len(came) > 1000
    assert sum(job.machine < 0 for job in run.site.jobs.values()) > 20


def test_where_nobody_waits_it_begins_after_the_past() -> None:
    assert busy_afternoon_s(120, 8.0, 3) == 5 * 7 * DAY_S


def test_a_short_campus_has_a_short_past() -> None:
    assert busy_afternoon_s(20, 3.0, 1) < 3 * 7 * DAY_S
    assert busy_afternoon_s(20, 1.0, 1) < 7 * DAY_S
