"""Whether the twin reproduces what happened: the incumbent, simulated anew, against the record."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.twin.measures import Stretch, capped_mean_s
from outrider.twin.replicates import Outcome

Floats = NDArray[np.float64]


class Bound(NamedTuple):
    """How far a part may be off.

    Attributes:
        most: the largest value that passes.
        mend: what is probably wrong beyond it, and what would mend that.
    """

    most: float
    mend: str


BOUNDS: Final[Mapping[str, Bound]] = {
    "energy": Bound(
        0.03, "watts of machines, or machines and owners that the record lacks; expected "
        "a source for each of them",
    ),
    "evictions": Bound(
        0.03, "machines that lose jobs by themselves, or owners who come unseen; expected "
        "a source that tells of their log-ins, and no machine on which nothing can run",
    ),
    "waste": Bound(
        0.045, "runs are lost otherwise than the simulated site loses them; expected a "
        "source that tells why",
    ),
    "overhead": Bound(
        0.10, "jobs wait for what the record does not tell: a slow negotiation, licences, holds; "
        "expected an incumbent that is named as it is configured",
    ),
    "machine_share_l1": Bound(
        0.07, "the incumbent prefers other machines than its policy does; expected an "
        "adapter that names the policy which ranks machines as the batch system does",
    ),
    "start_delay_s": Bound(
        600.0, "jobs wait beside free machines; expected a shorter negotiation cycle, or an "
        "incumbent that waits as the batch system does",
    ),
}  # fmt: skip


class Fidelity(NamedTuple):
    """The twin of the incumbent, held against what happened.

    Attributes:
        parts: how far off each is: a ratio less 1, without its sign; of the machines the sum of
            differences of their shares of the work, less what chance makes of it; of the starts
            seconds. None where it cannot be known; without any part nothing was simulated.
    """

    parts: Mapping[str, float | None]

    @property
    def passed(self) -> bool:
        """True if the twin is like the site, as far as is known."""
        return bool(self.parts) and not self.failed

    @property
    def failed(self) -> list[str]:
        """Parts beyond their bounds."""
        return [
            name for name, off in self.parts.items() if off is not None and off > BOUNDS[name].most
        ]

    def to_json(self) -> dict[str, object]:
        """As in ``outrider twin --json``."""
        return {
            "passed": self.passed,
            "parts": dict(self.parts),
            "bounds": {name: bound.most for name, bound in BOUNDS.items()},
            "failed": self.failed,
        }

    def complaint(self) -> str:
        """Return which part fails, and what would mend it; empty if none does."""
        return "; ".join(
            f"{name} of the re-simulated incumbent is off by {self.parts[name]:.3g}, more than "
            f"{BOUNDS[name].most:g}: {BOUNDS[name].mend}"
            for name in self.failed
        )


NOT_PROVEN: Final = Fidelity({})
"""Where nothing was simulated."""


def fidelity(
    seen: Stretch,
    seen_work_s: Floats,
    seen_delay_s: float,
    twin: Sequence[Outcome],
    twin_done: Sequence[Stretch],
) -> Fidelity:
    """Hold the incumbent's twin against what happened.

    Args:
        seen: what happened; overheads of completed jobs alone.
        seen_work_s: CPU-seconds of work by machine of the campus.
        seen_delay_s: mean seconds between a job's having room and its start.
        twin: the incumbent's outcome in each replicate.
        twin_done: the same as stretches, overheads of completed jobs alone.
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
    """How differently work is shared among machines, beyond what chance does.

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
