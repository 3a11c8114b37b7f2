"""The workload of Perez et al. 2008: Table I, and the shares of the VOs within each class."""

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.grids import perez_grid
from outrider.simulation.generators.grids.workloads import (
    ARRIVALS,
    FEASIBLE,
    INFEASIBLE,
    ROWS,
    mean_run_s,
)

# Table I: mu, lambda, mean execution time (minutes), simulated duration (hours)
TABLE_I = {
    0.2: (2.48e-4, 1.23e-2, 67, 136),
    0.4: (5.68e-4, 2.81e-2, 29, 59),
    0.5: (7.70e-4, 3.81e-2, 22, 44),
}


def of_class(workload: Workload, name: str) -> NDArray[np.bool_]:
    return np.array([job_class == name for job_class in workload.job_class])


@pytest.mark.parametrize("row", ROWS)
def test_the_row_gives_the_rates_of_the_papers_table(row: float) -> None:
    mu, rate, minutes, hours = TABLE_I[row]
    assert 1 / mean_run_s(row) == pytest.approx(mu, rel=0.005)
    assert round(mean_run_s(row) / 60) == minutes
    workload = perez_grid(row, 5, jobs=40_000)
    sampling = 4 / np.sqrt(40_000)  # four standard errors of an exponential's mean
    assert 40_000 / workload.submit_s[-1] == pytest.approx(rate, rel=sampling)
    assert workload.run_s.mean() == pytest.approx(1 / mu, rel=sampling)
    assert 6000 / rate / 3600 == pytest.approx(hours, rel=0.01)
    assert of_class(workload, "interactive").mean() == pytest.approx(row, abs=0.01)


def test_it_is_the_papers_size_unless_told_otherwise() -> None:
    workload = perez_grid(0.2, 1)
    assert (len(workload.run_s), len(workload.machines)) == (6000, 50)
    assert not workload.is_parallel
    small = perez_grid(0.2, 1, jobs=10, machines=3)
    assert (len(small.run_s), len(small.machines)) == (10, 3)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_work_of_the_vos_stands_as_their_shares_in_either_class(row: float, seed: int) -> None:
    workload = perez_grid(row, seed)
    vo = np.array(workload.vo)
    for name in ("interactive", "batch"):
        here = of_class(workload, name)
        total = workload.run_s[here].sum()
        longest = workload.run_s[here].max() / total
        for share_of, share in FEASIBLE.items():
            got = workload.run_s[here & (vo == share_of)].sum() / total
            assert abs(got - share) <= longest, (name, share_of)


def test_vos_are_dealt_out_over_time_and_not_in_turns() -> None:
    vo = np.array(perez_grid(0.2, 1).vo)
    first, second = vo[:3000], vo[3000:]
    for name, share in FEASIBLE.items():
        for half in (first, second):
            assert (half == name).mean() == pytest.approx(share, abs=0.04)
    runs = 1 + int((vo[1:] != vo[:-1]).sum())
    by_chance = 6000 * (1 - sum(share**2 for share in FEASIBLE.values()))
    assert runs == pytest.approx(by_chance, rel=0.06)


def test_the_infeasible_targets_are_other_shares_of_the_same_vos() -> None:
    assert INFEASIBLE.keys() == FEASIBLE.keys()
    assert sum(INFEASIBLE.values()) == pytest.approx(1.0)
    assert perez_grid(0.2, 1).shares == FEASIBLE


def test_arrivals_are_poisson_and_run_times_exponential() -> None:
    workload = perez_grid(0.4, 2, jobs=20_000)
    for drawn in (np.diff(workload.submit_s, prepend=0.0), workload.run_s):
        assert drawn.std() / drawn.mean() == pytest.approx(1.0, abs=0.03)
        assert (drawn > drawn.mean()).mean() == pytest.approx(np.exp(-1), abs=0.015)


def test_uniform_gaps_and_lengths_have_the_same_rates() -> None:
    workload = perez_grid(0.2, 2, jobs=20_000, arrivals="uniform", lengths="uniform")
    gaps = np.diff(workload.submit_s, prepend=0.0)
    assert gaps.max() <= 2.001 * gaps.mean() * 1.02
    assert workload.run_s.max() <= 900 / 0.2
    assert of_class(workload, "interactive").mean() == pytest.approx(0.2, abs=0.01)
    offered = workload.run_s.sum() / workload.submit_s[-1] / 50
    assert offered == pytest.approx(0.99, rel=0.03)


def test_the_load_is_the_work_that_comes_over_the_work_that_can_be_done() -> None:
    workload = perez_grid(0.5, 3, jobs=40_000, machines=20, load=0.6)
    assert workload.run_s.sum() / workload.submit_s[-1] / 20 == pytest.approx(0.6, rel=0.03)


def test_the_same_seed_makes_the_same_jobs_and_another_makes_others() -> None:
    one, same, other = perez_grid(0.2, 7), perez_grid(0.2, 7), perez_grid(0.2, 8)
    assert one.submit_s.tolist() == same.submit_s.tolist()
    assert (one.run_s.tolist(), one.vo) == (same.run_s.tolist(), same.vo)
    assert one.run_s.tolist() != other.run_s.tolist()


def test_what_one_thing_is_drawn_from_changes_nothing_else() -> None:
    plain, changed = perez_grid(0.2, 7), perez_grid(0.2, 7, arrivals="uniform")
    assert (plain.run_s.tolist(), plain.vo) == (changed.run_s.tolist(), changed.vo)
    assert plain.submit_s.tolist() != changed.submit_s.tolist()


WRONG = [
    ({"row": 1.0}, "row = 1.0; expected between 0 and 1"),
    ({"jobs": 0}, "jobs = 0; expected 1 or more"),
    ({"machines": 0}, "machines = 0"),
    ({"load": 0.0}, "load = 0.0; expected above 0"),
    ({"load": float("nan")}, "load = nan"),
    ({"seed": -1}, "seed = -1; expected 0 or more"),
    ({"arrivals": "poison"}, f'arrivals "poison"; did you mean "{ARRIVALS[0]}"'),
    ({"lengths": "gaussian"}, 'lengths "gaussian"; known: exponential, uniform'),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG)
def test_what_cannot_be_is_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        perez_grid(**{"row": 0.2, "seed": 1, **wrong})  # type: ignore[arg-type]
    assert why in str(caught.value)
