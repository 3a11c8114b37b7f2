"""Fidelity check of the twin: the simulated incumbent, compared with the record."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.twin.measures import Stretch, capped_mean_s
from outrider.twin.replicates import Outcome

Floats = NDArray[np.float64]


class Bound(NamedTuple):
    """Maximal deviation of a part.

    Attributes:
        most: the largest value that passes.
        fix: the probable cause beyond it, and how to fix that.
    """

    most: float
    fix: str


BOUNDS: Final[Mapping[str, Bound]] = {
    "energy": Bound(
        0.03, "watts of machines, or machines and owners that the record lacks; expected "
        "a source for each of them",
    ),
    "evictions": Bound(
        0.03, "machines lose jobs without a recorded cause, or log-ins of owners are missing; "
        "expected a source of log-ins, and no machine on which nothing can run",
    ),
    "waste": Bound(
        0.045, "runs are lost in other ways than the simulated site loses them; expected a "
        "source that reports the causes",
    ),
    "overhead": Bound(
        0.10, "jobs wait for something that is not on record: a slow negotiation, licences, holds; "
        "expected an incumbent that is named as it is configured",
    ),
    "machine_share_l1": Bound(
        0.07, "the batch system prefers other machines than the incumbent's policy; expected an "
        "adapter that names the policy which ranks machines as the batch system does",
    ),
    "start_delay_s": Bound(
        600.0, "jobs wait although machines are free; use a shorter negotiation cycle, or an "
        "incumbent that waits as the batch system does",
    ),
}  # fmt: skip


class Fidelity(NamedTuple):
    """Comparison of the incumbent's twin with what happened.

    Attributes:
        parts: deviation of each part: an absolute ratio less 1; for machines the sum of the
            differences of their shares of the work, less that of chance; for starts seconds.
            None: not known. Without any part nothing was simulated.
    """

    parts: Mapping[str, float | None]

    @property
    def passed(self) -> bool:
        """True if the twin is like the site, as far as known."""
        return bool(self.parts) and not self.failed

    @property
    def failed(self) -> list[str]:
        """Names of the parts beyond their bounds."""
        return [
            name for name, off in self.parts.items() if off is not None and off > BOUNDS[name].most
        ]

    def to_json(self) -> dict[str, object]:
        """Return the object of ``outrider twin --json``."""
        return {
            "passed": self.passed,
            "parts": dict(self.parts),
            "bounds": {name: bound.most for name, bound in BOUNDS.items()},
            "failed": self.failed,
        }

    def complaint(self) -> str:
        """Return the parts that fail, with probable causes and fixes; empty if none fails."""
        return "; ".join(
            f"{name} of the simulated current scheduler is off by {self.parts[name]:.3g}, more "
            f"than {BOUNDS[name].most:g}: {BOUNDS[name].fix}"
            for name in self.failed
        )


NOT_SIMULATED: Final = Fidelity({})
"""Fidelity without any part, where nothing was simulated."""


def fidelity(
    seen: Stretch,
    seen_work_s: Floats,
    seen_delay_s: float,
    twin: Sequence[Outcome],
    twin_done: Sequence[Stretch],
) -> Fidelity:
    """Compare the incumbent's twin with what happened.

    Args:
        seen: what happened; overheads of completed jobs only.
        seen_work_s: CPU-seconds of work by machine of the campus.
        seen_delay_s: mean seconds between the moment a job could start and its start.
        twin: the incumbent's outcome in each replicate.
        twin_done: the same as stretches, overheads of completed jobs only.
    """

    def off(seen_value: float, twin_values: list[float]) -> float | None:
        mean = float(np.mean(twin_values))
        if not (np.isfinite(seen_value) and np.isfinite(mean)):
            return None
        if seen_value <= 0.0:
            return None if mean <= 0.0 else 1.0
        return abs(mean / seen_value - 1.0)

    delays = [outcome.start_delay_s for outcome in twin]
    return Fidelity({
        "energy": off(seen.energy_j, [stretch.energy_j for stretch in twin_done]),
        "evictions": off(float(seen.evictions), [float(s.evictions) for s in twin_done]),
        "waste": off(seen.badput_s, [stretch.badput_s for stretch in twin_done]),
        "overhead": off(capped_mean_s(seen), [capped_mean_s(stretch) for stretch in twin_done]),
        "machine_share_l1": share_distance(seen_work_s, np.stack([o.work_s for o in twin])),
        "start_delay_s": abs(seen_delay_s - float(np.mean(delays))),
    })  # fmt: skip


def share_distance(seen_s: Floats, twin_s: Floats) -> float | None:
    """Return the distance between the machines' shares of work, beyond that of chance.

    Args:
        seen_s: (machines,) CPU-seconds.
        twin_s: (replicates, machines) of the twin.

    Returns:
        The L1 distance of the shares from the mean of the replicates, less the mean distance of a
        replicate from the mean of the others; not below 0. None without any work.
    """
    if not seen_s.sum() or not twin_s.sum(axis=1).all():
        return None
    seen, twin = seen_s / seen_s.sum(), twin_s / twin_s.sum(axis=1, keepdims=True)
    m = len(twin)
    others = (twin.sum(axis=0) - twin) / (m - 1)
    by_chance = float(np.abs(twin - others).sum(axis=1).mean())
    return max(0.0, float(np.abs(seen - twin.mean(axis=0)).sum()) - by_chance)
