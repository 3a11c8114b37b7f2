"""Rooms and their machines: sizes, opening hours and the watts of Table 1."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.machines import ClusterSpec, OpeningHours

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

ALWAYS_OPEN, TEACHING, LATE = 0, 1, 2
OPENING: Final = (
    "always",
    "mon-fri 09:00-17:00",
    "mon-fri 08:00-22:00, sat-sun 10:00-18:00",
)
KIND_SHARES: Final = (9 / 37, 16 / 37, 12 / 37)

NORMAL, HIGH_END, LEGACY = 0, 1, 2
TYPE_SHARES: Final = (24 / 37, 5 / 37, 8 / 37)

SIZE_SPREAD: Final = 0.40
SLEEP_AFTER_OPEN_S: Final = 3_600.0
SLEEP_AFTER_CLOSED_S: Final = 900.0
_ATTEMPTS = 64


class Rooms(NamedTuple):
    """Clusters in order, and their machines numbered cluster by cluster.

    Attributes:
        specs: (clusters,) specifications.
        kind: (clusters,) `ALWAYS_OPEN`, `TEACHING` or `LATE`.
        names: (machines,) host names.
        cluster: (machines,) cluster number.
        active_w, idle_w, sleep_w: (machines,) watts.
    """

    specs: list[ClusterSpec]
    kind: Ints
    names: list[str]
    cluster: Ints
    active_w: Floats
    idle_w: Floats
    sleep_w: Floats


def build_rooms(machines: int, clusters: int, rng: np.random.Generator) -> Rooms:
    """Draw rooms: log-normal sizes, opening hours and machine types in fixed shares."""
    weights = np.exp(SIZE_SPREAD * rng.standard_normal(clusters))
    sizes = 1 + _apportion(machines - clusters, weights)
    kind = rng.permutation(np.repeat(range(3), _apportion(clusters, KIND_SHARES)))
    watts = _watts(sizes, rng)
    digits = len(str(clusters - 1)) if clusters > 100 else 2
    specs = [
        ClusterSpec(
            f"c{number:0{digits}d}",
            OpeningHours(OPENING[kind[number]]),
            SLEEP_AFTER_OPEN_S,
            SLEEP_AFTER_CLOSED_S,
        )
        for number in range(clusters)
    ]
    names = [
        f"{spec.name}-{seat:03d}"
        for spec, size in zip(specs, sizes, strict=True)
        for seat in range(1, size + 1)
    ]
    active_w, idle_w, sleep_w = (np.repeat(column, sizes) for column in watts)
    cluster = np.repeat(np.arange(clusters), sizes).astype(np.int32)
    return Rooms(specs, kind.astype(np.int32), names, cluster, active_w, idle_w, sleep_w)


def _watts(sizes: NDArray[np.int64], rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw active, idle and sleep watts (clusters,) by Table 1, equal within a cluster.

    Of several random assignments, keep the one in which each type's share of *machines* is nearest
    to its share of clusters; otherwise one large legacy room would dominate the energy.
    """
    counts = _apportion(len(sizes), TYPE_SHARES)
    types = np.repeat(range(3), counts)
    wanted = counts / len(sizes)
    best = types
    least = np.inf
    for _ in range(_ATTEMPTS):
        shuffled = rng.permutation(types)
        share = np.bincount(shuffled, sizes, minlength=3) / sizes.sum()
        error = float(np.abs(share - wanted).sum())
        if error < least:
            best, least = shuffled, error
    place = (rng.permutation(counts[LEGACY]) + 0.5) / max(1, counts[LEGACY])
    active_w = np.array([57.0, 114.0, 0.0])[best]
    idle_w = np.array([40.0, 67.0, 0.0])[best]
    active_w[best == LEGACY] = np.round(100.0 + 80.0 * place, 1)
    idle_w[best == LEGACY] = np.round(50.0 + 30.0 * place, 1)
    return active_w, idle_w, np.array([2.0, 3.0, 4.0])[best]


def _apportion(total: int, shares: Sequence[float] | Floats) -> NDArray[np.int64]:
    """Return whole numbers that sum to `total`, proportional by largest remainders."""
    exact = total * np.asarray(shares, dtype=np.float64) / np.sum(shares)
    whole = np.floor(exact).astype(np.int64)
    short = total - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return whole
