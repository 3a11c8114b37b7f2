"""Random draws for a grid workload: arrivals and run times, each from its own random stream."""

from typing import Final, Literal, NamedTuple

import numpy as np

from outrider.formats.workload import Floats
from outrider.model.errors import ConfigurationError, nearest

Arrivals = Literal["poisson", "uniform"]
Lengths = Literal["exponential", "uniform"]

ARRIVALS: Final[tuple[Arrivals, ...]] = ("poisson", "uniform")
LENGTHS: Final[tuple[Lengths, ...]] = ("exponential", "uniform")


class Streams(NamedTuple):
    """One generator per purpose. New ones go to the end, so that seeds keep their results."""

    arrivals: np.random.Generator
    lengths: np.random.Generator
    vos: np.random.Generator
    cpus: np.random.Generator


def streams_of(seed: int) -> Streams:
    """The streams of a seed. Raises `ConfigurationError` if it is below 0."""
    if seed < 0:
        raise ConfigurationError(f"generate grid: seed = {seed}; right would be 0 or more")
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))


def draw_arrivals(kind: Arrivals, rate_per_s: float, n: int, rng: np.random.Generator) -> Floats:
    """The first `n` arrival times, ascending seconds from 0.

    Args:
        kind: ``poisson``: independent of each other, gaps are exponential. ``uniform``: gaps are
            uniform between 0 and twice their mean.
        rate_per_s: mean arrivals per second.
        n: number of arrivals.
        rng: used for arrivals only.

    Raises:
        ConfigurationError: unknown kind.
    """
    _known("arrivals", kind, ARRIVALS)
    mean_s = 1.0 / rate_per_s
    gaps = rng.exponential(mean_s, n) if kind == "poisson" else rng.uniform(0.0, 2.0 * mean_s, n)
    times: Floats = np.cumsum(gaps)
    return times


def draw_lengths(kind: Lengths, mean_s: float, n: int, rng: np.random.Generator) -> Floats:
    """Run times of `n` jobs, seconds above 0.

    Args:
        kind: ``exponential``, or ``uniform`` between 0 and twice the mean.
        mean_s: mean run time, seconds.
        n: number of jobs.
        rng: used for run times only.

    Raises:
        ConfigurationError: unknown kind.
    """
    _known("lengths", kind, LENGTHS)
    drawn = rng.exponential(mean_s, n) if kind == "exponential" else rng.uniform(0, 2 * mean_s, n)
    return np.maximum(drawn, np.finfo(np.float64).tiny)


def _known(what: str, kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise ConfigurationError(f'generate grid: {what} "{kind}"; {nearest(kind, known)}')
