"""Figures of jobs, independent of when they are computed and equal to those of single jobs."""

from typing import Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.accounting.accounting import JobStatistics
from outrider.engine.accounting.distribution import Distribution
from outrider.model.jobs import Job, JobSpec
from outrider.model.utility import DEFAULT_UTILITIES
from tests.suite.examples import examples

SECONDS: Final = st.sampled_from((0.0, 0.1, 1.0, 9.7, 60.0, 3333.3, 1e5))
JOBS: Final = st.lists(
    st.tuples(
        st.builds(
            JobSpec,
            vo=st.sampled_from(("bio", "phys")),
            job_class=st.sampled_from(("batch", "interactive")),
            cpus=st.integers(1, 3),
            eligible_s=st.none() | SECONDS,
        ),
        st.none() | SECONDS,
        SECONDS,
        SECONDS,
        st.booleans(),
    ),
    max_size=40,
)


def eligible(spec: JobSpec, submit_s: float | None) -> float | None:
    """Return when it could first have run."""
    return submit_s if spec.eligible_s is None else spec.eligible_s


@settings(max_examples=examples(200), derandomize=True)
@given(jobs=JOBS)
def test_figures_do_not_depend_on_when_somebody_looks(
    jobs: list[tuple[JobSpec, float | None, float, float, bool]],
) -> None:
    seldom, often = JobStatistics(True, DEFAULT_UTILITIES), JobStatistics(True, DEFAULT_UTILITIES)
    waits: dict[tuple[str, str], Distribution] = {}
    slowdown, goodput = Distribution(True), 0.0
    for spec, submit_s, wait_s, run_s, looked in jobs:
        key, start_s = (spec.job_class, spec.vo), (submit_s or 0.0) + wait_s
        end_s, cpu_s = start_s + run_s, run_s * spec.cpus
        for book in (seldom, often):
            if submit_s is not None:
                since_s = submit_s if spec.eligible_s is None else spec.eligible_s
                book.starts.extend((book.numbers[key], submit_s, since_s, start_s))
            book.completions.extend((
                book.numbers[key], submit_s, eligible(spec, submit_s),
                start_s, end_s, run_s, cpu_s, spec.cpus, 0.5,
            ))  # fmt: skip
        waited_s = Job(0, spec, submit_s).wait_s(start_s)
        if waited_s is not None:
            waits.setdefault(key, Distribution(True)).add(waited_s)
            slowdown.add(max(1.0, (waited_s + run_s) / max(run_s, 10.0)))
        goodput += cpu_s + 0.5
        if looked:
            often.work_out()
    assert often.save() == seldom.save()
    assert {k: w.save() for k, w in seldom.waits.items()} == {k: w.save() for k, w in waits.items()}
    assert seldom.slowdown.save() == slowdown.save()
    assert abs(sum(seldom.goodput.values()) - goodput) <= 1e-9 * goodput


@given(values=st.lists(st.floats(0.0, 1e6)), cut=st.integers(0, 20))
def test_many_values_count_as_one_by_one(values: list[float], cut: int) -> None:
    one_by_one, at_once = Distribution(True), Distribution(True)
    for value in values:
        one_by_one.add(value)
    at_once.extend(np.array(values[:cut]))
    at_once.extend(np.array(values[cut:]))
    assert at_once.save() == one_by_one.save()
