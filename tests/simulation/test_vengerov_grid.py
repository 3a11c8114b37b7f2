"""The workload of Vengerov 2005: one machine of 24 CPUs and jobs that would fill part of it."""

import numpy as np
import pytest

from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.grids import vengerov_grid
from outrider.simulation.generators.grids.workloads import Steps


def test_jobs_ask_for_4_to_20_cpus_of_24_for_5_to_10_steps() -> None:
    workload = vengerov_grid(0.1, 1)
    assert [spec.cpus for spec in workload.machines] == [24]
    assert set(workload.cpus.tolist()) == set(range(4, 21))
    assert set(workload.run_s.tolist()) == set(map(float, range(5, 11)))
    assert set(workload.job_class) == {"batch"}


@pytest.mark.parametrize("steps", ["integer", "continuous"])
@pytest.mark.parametrize(("rate", "offered"), [(0.1, 9.0), (0.2, 18.0)])
def test_it_offers_as_much_work_a_step_as_the_rate_says(
    rate: float, offered: float, steps: Steps
) -> None:
    runs, length_s = 200, 5000.0
    work = [
        float((made.run_s * made.cpus).sum()) / length_s
        for made in (
            vengerov_grid(rate, seed, steps=steps, length_s=length_s) for seed in range(runs)
        )
    ]
    squared = (12.0**2 + 24.0) * 7.5**2 * 1.06  # mean square of CPUs x steps, for Poisson's spread
    error = np.sqrt(rate * squared / length_s / runs)
    assert np.mean(work) == pytest.approx(offered, abs=4 * error)


def test_whole_steps_are_whole_and_real_ones_are_not() -> None:
    whole, real = vengerov_grid(0.1, 3), vengerov_grid(0.1, 3, steps="continuous")
    for column in (whole.submit_s, whole.run_s):
        assert not (column % 1).any()
    for column in (real.submit_s, real.run_s):
        assert (column % 1 != 0).all()
    assert ((real.run_s >= 5) & (real.run_s <= 10)).all()


@pytest.mark.parametrize("steps", ["integer", "continuous"])
def test_jobs_come_in_order_until_the_last_step(steps: Steps) -> None:
    workload = vengerov_grid(0.5, 4, steps=steps, length_s=500)
    assert (np.diff(workload.submit_s) >= 0).all()
    assert 450 < workload.submit_s[-1] < 500
    assert workload.submit_s[0] >= 0


def test_the_number_of_jobs_varies_as_a_poisson_number_does() -> None:
    counts = [len(vengerov_grid(0.1, seed, length_s=1000).run_s) for seed in range(200)]
    assert np.mean(counts) == pytest.approx(100, abs=3)
    assert np.var(counts) == pytest.approx(100, rel=0.4)


def test_the_same_seed_makes_the_same_jobs() -> None:
    one, same = vengerov_grid(0.2, 9), vengerov_grid(0.2, 9)
    assert (one.submit_s == same.submit_s).all()
    assert (one.run_s * one.cpus == same.run_s * same.cpus).all()


def test_the_same_seed_has_the_same_jobs_however_long_the_trace_is() -> None:
    short, long = vengerov_grid(0.2, 9, length_s=100), vengerov_grid(0.2, 9, length_s=1000)
    n = len(short.run_s)
    assert (long.run_s[:n] == short.run_s).all()
    assert (long.cpus[:n] == short.cpus).all()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rate": 0.0}, "rate = 0.0; expected above 0"),
        ({"steps": "whole"}, 'steps "whole"; known: continuous, integer'),
        ({"length_s": 0.0}, "length = 0.0; expected steps"),
        ({"seed": -3}, "seed = -3"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        vengerov_grid(**{"rate": 0.1, "seed": 1, **wrong})  # type: ignore[arg-type]
    assert why in str(caught.value)
