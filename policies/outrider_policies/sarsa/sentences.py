"""Why a job waits or would start, in one sentence."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.guards import Guards
from outrider_policies.sarsa.job_features import Asks

_SHOWN: Final = 4


class Standing(NamedTuple):
    """A job among all that wait.

    Attributes:
        at: its row.
        asks, values: of all, by row.
        guards: those in force.
        guarded: whose turn it is by a guard, by row and reason, if anybody's.
        now: the time, seconds.
    """

    at: int
    asks: Asks
    values: NDArray[np.float64]
    guards: Guards
    guarded: tuple[int, str] | None
    now: float


def kind_of(asks: Asks, at: int) -> str:
    """A job by what its value depends on: ``batch physics 12 min``, ``x4`` with four CPUs."""
    name = "interactive" if asks.interactive[at] else "batch"
    estimate_s, cpus = asks.estimate_s[at], int(asks.cpus[at])
    length = "of unknown length" if np.isnan(estimate_s) else f"{estimate_s / 60:.3g} min"
    return f"{name} {asks.vo_names[asks.vo[at]]} {length}" + (f" x{cpus}" if cpus > 1 else "")


def best_few(row: int, asks: Asks, values: NDArray[np.float64]) -> dict[str, float]:
    """What was chosen and the best of all, by kind, and their values."""
    best = np.argpartition(-values, _SHOWN)[:_SHOWN] if len(values) > _SHOWN else range(len(values))
    told = {kind_of(asks, row): float(values[row])}
    for at in sorted(best, key=lambda at: -values[at]):
        told.setdefault(kind_of(asks, int(at)), float(values[at]))
    return told


def why(standing: Standing) -> str:
    """Its value and place, who is first, and which guard acts, or would when."""
    at, asks, values, guards, guarded, now = standing
    value = values[at]
    if guarded is not None and guarded[0] == at:
        waited_min = (now - asks.submit_s[at]) / 60
        return (
            f"it has waited {waited_min:.0f} min and is the oldest of those that waited too long: "
            f"it starts first (value {value:.2f}, which does not matter now)"
        )
    before = int((values > value).sum())
    if guarded is None and not before:
        said = f"value {value:.2f}, the highest of {len(asks)} waiting: it starts first"
    else:
        first = int(values.argmax()) if guarded is None else guarded[0]
        by = "of the highest value" if guarded is None else "which waited too long"
        said = (
            f"value {value:.2f}; {before} of {len(asks)} waiting have more; first is "
            f"{kind_of(asks, first)} ({values[first]:.2f}), {by}"
        )
    return f"{said}; {_what_changes_it(standing, guards)}"


def _what_changes_it(standing: Standing, guards: Guards) -> str:
    at, asks = standing.at, standing.asks
    interactive = bool(asks.interactive[at])
    limit_s = guards.interactive_s if interactive else guards.batch_s
    if limit_s == float("inf"):
        return "no guard is in force"
    left_min = (limit_s - (standing.now - asks.submit_s[at])) / 60
    turn = "the oldest first" if interactive else "while no interactive job waits, the oldest first"
    if left_min <= 0:
        return f"it has waited long enough to come before values, {turn}"
    return f"in {left_min:.0f} min its wait comes before values, {turn}"
