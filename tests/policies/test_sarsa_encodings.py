"""Inputs of a value function for a site and a job, number by number."""

from math import log, nan

import numpy as np
import pytest

from outrider_policies.sarsa.features import LiteralEncoding, RelativeEncoding
from outrider_policies.sarsa.job_features import JobColumns, JobProperties, MeanRuns
from outrider_policies.sarsa.site_state import SiteState

SHARES = {"a": (0.5, 0.25), "b": (0.125, 0.5)}
STATE = SiteState(
    next_end_s=180.0, idle_n=2, machines_n=8, backlog_s=1200.0, cpus_n=3, mean_utility=0.75,
    shares=SHARES,
)  # fmt: skip
INTERACTIVE = JobProperties(True, "a", 0.0, 60.0, 2)
BATCH = JobProperties(False, "b", 0.0, nan, 8)


@pytest.fixture
def runs() -> MeanRuns:
    """One run of the class batch has completed: 100 s on 2 CPUs."""
    made = MeanRuns()
    made.take(False, 100.0, 2)
    return made


def test_the_relative_state_is_bounded_and_of_the_site_as_a_whole(runs: MeanRuns) -> None:
    shown = RelativeEncoding().state(STATE, runs)
    # 3 of 4 minutes; 2 of 8 machines; 2 mean runs a CPU; mean utility; .375 of .5 missing for b
    assert shown == pytest.approx([0.75, 0.25, 2 / 3, 0.75, 0.25])
    empty = RelativeEncoding().state(SiteState(0.0, 0, 0, 0.0, 0, 1.0, {}), runs)
    assert empty == pytest.approx([0.0, 0.0, 0.0, 1.0, 1.0])


def test_a_relative_job_has_its_class_its_vos_need_and_its_work_over_a_mean_runs(
    runs: MeanRuns,
) -> None:
    huge = JobProperties(False, "new", 0.0, 1e9, 1)
    shown = RelativeEncoding().actions(JobColumns.of_jobs([INTERACTIVE, BATCH, huge]), SHARES, runs)
    assert shown == pytest.approx(
        np.array(
            [
                [1.0, -0.25, log(0.6) / 2, 1 / 1.6],
                [0.0, 0.375, log(4.0) / 2, 1 / 5],  # it is expected to run as long as the others
                [0.0, 0.0, log(8.0) / 2, 1 / (1 + 5e6)],
            ]
        )
    )


def test_the_state_of_the_paper_is_in_hours_and_machines_and_has_a_place_for_eight_vos(
    runs: MeanRuns,
) -> None:
    shares = {f"vo{n}": (n / 100, 0.0) for n in range(1, 11)}
    state = SiteState(7200.0, 3, 8, 36_000.0, 5, 0.5, shares)
    shown = LiteralEncoding().state(state, runs)
    assert shown[:4] == pytest.approx([2.0, 3.0, 2.0, 0.5])
    assert shown[4:] == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.27])
    idle = LiteralEncoding().state(SiteState(0.0, 0, 0, 3600.0, 0, 1.0, {}), runs)
    assert idle[:4] == pytest.approx([0.0, 0.0, 1.0, 1.0]), "a site without machines, too"


def test_a_job_of_the_paper_has_its_class_the_place_of_its_vo_and_its_hours(runs: MeanRuns) -> None:
    encoding = LiteralEncoding()
    encoding.state(STATE, runs)  # a, then b
    shown = encoding.actions(JobColumns.of_jobs([INTERACTIVE, BATCH]), SHARES, runs)
    none = [0.0] * 6
    assert shown == pytest.approx(
        np.array([[1.0, 1.0, 0.0, *none, 60 / 3600], [0.0, 0.0, 1.0, *none, 100 / 3600]])
    )
    again = LiteralEncoding()
    again.restore(encoding.save())
    assert again.actions(JobColumns.of_jobs([BATCH]), SHARES, runs) == pytest.approx(shown[1:])
