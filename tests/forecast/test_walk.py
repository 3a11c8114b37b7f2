"""Questions of the walk are those of FORMATS, and nothing later is known to them."""

from dataclasses import replace

import numpy as np
import pytest

from outrider.forecast.expected_starts import KNOWN_DISCIPLINES
from outrider.forecast.questions import HIGH, LOW, Questions
from outrider.forecast.walk import JobLog, log_of, walk
from outrider.model.localtime import HOUR_S
from outrider.model.modes import Discipline
from tests.forecast.random_sites import engine_starts, random_workload

REPLICATES = 20


def log(discipline: Discipline, seed: int = 1) -> JobLog:
    """Return a site of some hours under a rule; each estimate is a request of its user."""
    workload = random_workload(seed)
    workload = replace(
        workload,
        requested_s=workload.estimate_s,
        user=[f"u{number % 5}" for number in range(len(workload.job_names))],
    )
    return log_of(workload, engine_starts(workload, discipline))


def asked(of: JobLog, discipline: Discipline) -> Questions:
    """Return all questions of the walk."""
    return walk(of, discipline, REPLICATES, np.random.default_rng(0))


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_asked_is_at_submission_and_at_each_full_hour(discipline: Discipline) -> None:
    of = log(discipline)
    wanted = set()
    for job, (submit_s, start_s) in enumerate(zip(of.submit_s, of.start_s, strict=True)):
        if start_s > submit_s:
            hours = np.arange(np.ceil(submit_s / HOUR_S), np.ceil(start_s / HOUR_S)) * HOUR_S
            wanted |= {(job, submit_s), *((job, float(hour_s)) for hour_s in hours)}
    questions = asked(of, discipline)
    rows = list(zip(questions.job.tolist(), questions.asked_s.tolist(), strict=True))
    assert len(rows) == len(set(rows)) > 100
    assert set(rows) == wanted
    assert (questions.at_submission == (of.submit_s[questions.job] == questions.asked_s)).all()


def test_the_answer_is_the_wait_from_the_question_on() -> None:
    of = log("easy")
    questions = asked(of, "easy")
    assert (questions.answer_s == of.start_s[questions.job]).all()
    held = (questions.quantiles_s[:, LOW] <= questions.wait_s) & (
        questions.wait_s <= questions.quantiles_s[:, HIGH]
    )
    assert held.mean() > 0.4  # a few hours of history; coverage proper is judged on real logs


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_nothing_later_is_known(discipline: Discipline, seed: int) -> None:
    """The run times of jobs that have not ended are permuted, and later jobs are different."""
    of = log(discipline, seed)
    moment_s = float(np.quantile(of.submit_s, 0.6))
    rng = np.random.default_rng(seed)
    (open_jobs,) = (of.start_s + of.run_s > moment_s).nonzero()
    run_s = of.run_s.copy()
    long = rng.permutation(run_s[open_jobs]) + np.maximum(0.0, moment_s - of.start_s[open_jobs])
    run_s[open_jobs] = long + 1.0
    (later,) = (of.submit_s > moment_s).nonzero()
    (unstarted,) = ((of.submit_s <= moment_s) & (of.start_s > moment_s)).nonzero()
    start_s, cpus = of.start_s.copy(), of.cpus.copy()
    start_s[unstarted] = moment_s + 1.0 + rng.permutation(5000)[: len(unstarted)]
    start_s[later] = np.inf
    cpus[later] = 1 + rng.integers(0, 4, len(later))
    other = replace(
        of, run_s=run_s, start_s=start_s, cpus=cpus,
        user=["somebody" if job in later else user for job, user in enumerate(of.user)],
    )  # fmt: skip
    first, second = asked(of, discipline), asked(other, discipline)
    until, so_long = first.asked_s <= moment_s, second.asked_s <= moment_s
    assert until.sum() > 20
    assert first.job[until].tolist() == second.job[so_long].tolist()
    assert first.asked_s[until].tolist() == second.asked_s[so_long].tolist()
    assert first.quantiles_s[until].tolist() == second.quantiles_s[so_long].tolist()
    assert np.array_equal(first.known[until], second.known[so_long], equal_nan=True)
    assert not np.array_equal(first.wait_s[until], second.wait_s[so_long])
