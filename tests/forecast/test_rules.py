"""Rules simulated forward start jobs exactly when the engine does, compiled and plain."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from outrider.forecast import expected_starts, running
from outrider.forecast.expected_starts import KNOWN_DISCIPLINES, simulated_starts
from outrider.forecast.queue_state import NO_ARRIVALS, Floats
from outrider.forecast.running import HAS_COMPILER
from outrider.model.errors import ConfigurationError
from outrider.model.modes import Discipline
from tests.forecast.random_sites import Moment, engine_starts, moment, random_workload


def forward(at: Moment, discipline: Discipline, first_wanted: int = 0) -> Floats:
    """Return (wanted,) the starts if all future events are known."""
    starts_s: Floats = simulated_starts(
        at.state, at.run_s, at.coming, at.shifts_s, discipline, first_wanted
    )[0]
    return starts_s


def moments(seed: int, discipline: Discipline, widest: int = 12) -> list[Moment]:
    """Return some moments of a site at which jobs wait."""
    workload = random_workload(seed, widest=widest)
    starts_s = engine_starts(workload, discipline)
    times = np.unique(np.concatenate([workload.submit_s, starts_s[np.isfinite(starts_s)] + 7.0]))
    found = [moment(workload, starts_s, float(time_s)) for time_s in times[5::29]]
    return [at for at in found if len(at.starts_s)]


@pytest.mark.parametrize("widest", [1, 12])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_jobs_start_when_the_engine_starts_them(
    discipline: Discipline, seed: int, widest: int
) -> None:
    found = moments(seed, discipline, widest)
    assert found or widest == 1
    for at in found:
        assert forward(at, discipline).tolist() == at.starts_s.tolist()


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_those_not_asked_for_change_nothing(discipline: Discipline) -> None:
    at = max(moments(3, discipline), key=lambda at: len(at.starts_s))
    assert len(at.starts_s) > 3
    assert forward(at, discipline, 2).tolist() == at.starts_s[2:].tolist()


def test_what_could_start_at_once_starts_now() -> None:
    at = max(moments(3, "strict"), key=lambda at: len(at.starts_s))
    width = int(at.state.waiting.cpus[0])
    roomy = replace(at.state, free_cpus=width, total_cpus=16 + width)
    for discipline in KNOWN_DISCIPLINES:
        starts_s = simulated_starts(roomy, at.run_s, NO_ARRIVALS, at.shifts_s[:, :0], discipline)
        assert starts_s[0, 0] == at.state.now_s


def test_a_discipline_that_is_not_carried_out_is_refused() -> None:
    at = moments(0, "strict")[0]
    with pytest.raises(ConfigurationError, match="conservative"):
        forward(at, "conservative")


def plain(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the compiled functions of a module by the plain ones."""
    for name, value in vars(module).copy().items():
        function: Callable[..., Any] | None = getattr(value, "py_func", None)
        if function is not None:
            monkeypatch.setattr(module, name, function)


@pytest.mark.skipif(not HAS_COMPILER, reason="numba, the extra forecast, is not installed")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_compiled_and_plain_give_the_same(
    discipline: Discipline, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = moments(seed, discipline)
    compiled = [forward(at, discipline).tolist() for at in found]
    for module in (running, expected_starts):
        plain(module, monkeypatch)
    assert [forward(at, discipline).tolist() for at in found] == compiled
