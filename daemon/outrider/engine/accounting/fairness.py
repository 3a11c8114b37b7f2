"""Fair shares: target and delivered share of each VO, and the fairness utility.

Perez et al. 2008, section IV.B: with target shares w and delivered shares S, the deficit is
``D = max_k (w_k - S_k)+``, bounded by ``M = max_k w_k``, and the fairness utility is
``F = 1 - D / M`` (equation 4).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import exp2, inf
from typing import Any, Final

from outrider.model.errors import ConfigurationError

_LN2: Final = 0.6931471805599453
_MAX_DOUBLINGS: Final = 400.0
_NEVER_YET: Final = -inf
SAMPLE_S: Final = 3600.0
FEW_VOS: Final = 64
"""Limit up to which a submission copies what every VO got: the cheapest way for few."""


def check_targets(targets: Mapping[str, float], where: str) -> None:
    """Refuse target shares that do not sum to 1. Raises `ConfigurationError`."""
    total = sum(targets.values())
    if (targets and abs(total - 1.0) > 1e-6) or any(share < 0 for share in targets.values()):
        listed = ", ".join(f"{vo}={share:g}" for vo, share in targets.items())
        raise ConfigurationError(
            f"{where}: shares {listed} sum to {total:g}; expected shares >= 0 that sum to 1"
        )


class _Numbers(dict[str, int]):
    """Numbering of VOs: their positions in the lists; a new VO gets the next."""

    def __init__(self, add: Callable[[], int]) -> None:
        super().__init__()
        self._add = add

    def __missing__(self, vo: str) -> int:
        self[vo] = number = self._add()
        return number


class Fairness:
    """CPU-seconds delivered to each VO, running jobs counted to the moment of the call.

    Args:
        targets: target share of each VO, summing to 1; empty: every VO seen has the same.
        half_life_s: of the windowed figure; service counts half after this many seconds.
    """

    def __init__(self, targets: Mapping[str, float], half_life_s: float = 86_400.0) -> None:
        check_targets(targets, "fairness")
        self.targets = dict(targets)
        self.half_life_s = half_life_s
        self._number = _Numbers(self._add)
        self._running: list[int] = []
        # Service delivered until t is `_base[k] + _running[k] * t`: a start subtracts its moment,
        # an end adds its own, and nothing needs to be brought forward in between.
        self._base: list[float] = []
        # The same for fading service, in a measure that doubles every half-life.
        self._faded: list[float] = []
        self._fade_from_s = 0.0
        # The last submission: its time, and `_base` and `_running` then. With many VOs, `_before`
        # holds those values only of the VOs whose CPUs changed since.
        self._submission: tuple[float, list[float], list[int]] | None = None
        self._before: dict[int, tuple[float, int]] = {}
        self._are_many, self._vos_then = False, 0
        self._sum = 0.0
        self._samples = 0
        self._next_sample_s = _NEVER_YET
        self._look_at_s = _NEVER_YET

    def _add(self) -> int:
        """Return the position of a new VO in the lists."""
        self._running.append(0)
        self._base.append(0.0)
        self._faded.append(0.0)
        if len(self._base) == FEW_VOS + 1:
            self._are_many, self._look_at_s = True, _NEVER_YET
        return len(self._base) - 1

    @property
    def vos(self) -> list[str]:
        """Names of every VO seen."""
        return list(self._number)

    def submitted(self, vo: str, now: float) -> None:
        """Record the service delivered at the moment of a submission."""
        self._number[vo]
        if self._are_many:
            self._before.clear()
            self._submission, self._vos_then = (now, [], []), len(self._base)
        else:
            self._submission = (now, self._base.copy(), self._running.copy())

    def _at_submission(self) -> tuple[float, list[float], list[int]] | None:
        """Return the last submission's time, and `_base` and `_running` then; None before any."""
        if self._submission is None or self._submission[1]:
            return self._submission
        base, running = self._base[: self._vos_then], self._running[: self._vos_then]
        for k, (had, ran) in self._before.items():
            if k < self._vos_then:
                base[k], running[k] = had, ran
        return self._submission[0], base, running

    def _look(self, vo: str, now: float) -> None:
        """Prepare a change of a VO's CPUs: take due samples, record the values before it."""
        if now >= self._next_sample_s:
            self._sample(now)
        if self._are_many:
            k = self._number[vo]
            self._before.setdefault(k, (self._base[k], self._running[k]))
        else:
            self._look_at_s = self._next_sample_s

    def reach(self, now: float) -> None:
        """Take the samples of full hours until now, in which nothing changed."""
        if now >= self._next_sample_s > _NEVER_YET:
            self._sample(now)

    def change(self, vo: str, cpus: int, time_s: float, now: float) -> None:
        """Change the CPUs at work for a VO by `cpus`; `time_s` < `now` if reported late."""
        if now >= self._look_at_s:
            self._look(vo, now)
        k = self._number[vo]
        self._running[k] += cpus
        self._base[k] -= cpus * time_s
        self._faded[k] -= cpus * exp2((now - self._fade_from_s) / self.half_life_s)

    def merge(self, vos: Collection[str], into: str) -> None:
        """Merge what these VOs got into another; none of their jobs may run."""
        then, target = self._at_submission(), self._number[into]
        gone = {self._number[vo] for vo in vos if vo != into and vo in self._number}
        kept = {vo: k for vo, k in self._number.items() if k not in gone}
        n = len(self._number)

        def joined(column: Sequence[Any]) -> list[Any]:
            whole = [*column, *[column[0] * 0] * (n - len(column))]
            for k in sorted(gone):
                whole[target] += whole[k]
            return [whole[k] for k in kept.values()]

        self._running, self._base = joined(self._running), joined(self._base)
        self._faded = joined(self._faded)
        self._submission = None if then is None else (then[0], joined(then[1]), joined(then[2]))
        self._before.clear()
        self._number.clear()
        self._number.update((vo, k) for k, vo in enumerate(kept))
        self._are_many, self._look_at_s = len(kept) > FEW_VOS, _NEVER_YET

    def correct(self, running: Mapping[str, int], now: float) -> None:
        """Correct the CPUs at work for each VO after a fault (0 for those not named)."""
        for vo in {**self._number, **running}:
            more = running.get(vo, 0) - self._running[self._number[vo]]
            if more:
                self.change(vo, more, now, now)

    def _fade_from(self, now: float) -> None:
        """Restart the doubling clock now, and scale down what it measured so far."""
        shrink = exp2(max(-1000.0, (self._fade_from_s - now) / self.half_life_s))
        self._faded = [swollen * shrink for swollen in self._faded]
        self._fade_from_s = now

    def _recent_service(self, k: int, now: float) -> float:
        """Return the CPU-seconds of a VO until now, older ones fading by half-life."""
        age = min((now - self._fade_from_s) / self.half_life_s, 2 * _MAX_DOUBLINGS)
        return (self._faded[k] / exp2(age) + self._running[k]) * self.half_life_s / _LN2

    def _sample(self, now: float) -> None:
        """Sample F at every full hour since the last one, and keep the doublings bounded."""
        if self._next_sample_s == _NEVER_YET:
            self._next_sample_s = (now // SAMPLE_S + 1) * SAMPLE_S
            self._fade_from_s = now
        elif now - self._fade_from_s > _MAX_DOUBLINGS * self.half_life_s:
            self._fade_from(now)
        for utility in self._hourly(self._next_sample_s, now):
            self._sum += utility
            self._samples += 1
        if now >= self._next_sample_s:
            self._next_sample_s = (now // SAMPLE_S + 1) * SAMPLE_S

    def _hourly(self, first_s: float, now: float) -> Iterator[float]:
        """Yield F at full hours; exact, for nothing has changed in between."""
        hours = int((now - first_s) // SAMPLE_S) + 1 if now >= first_s > _NEVER_YET else 0
        for hour in range(hours):
            at_s = first_s + hour * SAMPLE_S
            utility = self._utility(self._delivered(at_s, self._base, self._running))
            if utility is not None:
                yield utility

    @staticmethod
    def _delivered(now: float, base: list[float], running: list[int]) -> list[float]:
        return [b + r * now for b, r in zip(base, running, strict=True)]

    def target(self, vo: str) -> float:
        """Return the target share of a VO; 0 for one without a target."""
        return self.targets.get(vo, 0.0) if self.targets else 1.0 / len(self._number)

    def _utility(self, delivered: list[float]) -> float | None:
        total = sum(delivered)
        if total <= 0:
            return None
        got = {vo: delivered[k] / total for vo, k in self._number.items() if k < len(delivered)}
        shares = self.targets or {vo: 1.0 / len(got) for vo in got}
        deficit = max(w - got.get(vo, 0.0) for vo, w in shares.items())
        return 1.0 - max(0.0, deficit) / max(shares.values())

    def report(self, now: float) -> dict[str, Any]:
        """Return the ``fairness`` object of reports; None for what has no value yet."""
        delivered = self._delivered(now, self._base, self._running)
        total = sum(delivered)
        recent = [self._recent_service(k, now) for k in range(len(self._number))]
        hourly = list(self._hourly(self._next_sample_s, now))
        samples = self._samples + len(hourly)
        utility = None
        then = self._at_submission()
        if then is not None:
            utility = self._utility(self._delivered(*then))
        listed = list(self._number) + [vo for vo in self.targets if vo not in self._number]
        got = {vo: delivered[k] / total for vo, k in self._number.items()} if total > 0 else {}
        return {
            "utility": utility,
            "time_mean": (self._sum + sum(hourly)) / samples if samples else None,
            "windowed": self._utility(recent),
            "share": {vo: got.get(vo, 0.0) if got else None for vo in listed},
            "target": {vo: self.target(vo) for vo in listed},
        }

    def delivered_cpu_s(self, now: float) -> float:
        """Return the CPU-seconds delivered to all VOs until now."""
        return sum(self._delivered(now, self._base, self._running))

    def shares(self, now: float) -> dict[str, tuple[float, float]]:
        """Return each VO's share of what was delivered until now (0 before any), and its target."""
        delivered = self._delivered(now, self._base, self._running)
        total = sum(delivered)
        got = {vo: delivered[k] / total if total > 0 else 0.0 for vo, k in self._number.items()}
        return {
            vo: (got.get(vo, 0.0), self.target(vo)) for vo in dict.fromkeys((*got, *self.targets))
        }

    def save(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""
        return {
            "vos": list(self._number),
            "running": self._running,
            "base": self._base,
            "faded": self._faded,
            "fade_from_s": self._fade_from_s,
            "at_submission": self._at_submission(),
            "sum": self._sum,
            "samples": self._samples,
            "next_sample_s": None if self._next_sample_s == _NEVER_YET else self._next_sample_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._number.clear()
        self._number.update((vo, k) for k, vo in enumerate(saved["vos"]))
        self._running = list(saved["running"])
        self._base, self._faded = list(saved["base"]), list(saved["faded"])
        self._fade_from_s = saved["fade_from_s"]
        at = saved["at_submission"]
        self._submission = None if at is None else (at[0], list(at[1]), list(at[2]))
        self._before.clear()
        self._sum, self._samples = saved["sum"], saved["samples"]
        next_s = saved["next_sample_s"]
        self._next_sample_s = _NEVER_YET if next_s is None else next_s
        self._are_many, self._look_at_s = len(self._base) > FEW_VOS, _NEVER_YET
