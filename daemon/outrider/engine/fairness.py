"""Fair shares: what each VO was owed, what it got, and one number that says how well they agree.

Perez et al. 2008, section IV.B: with target shares w and delivered shares S, the deficit is
``D = max_k (w_k - S_k)+``, bounded by ``M = max_k w_k``, and the fairness utility is
``F = 1 - D / M`` (equation 4).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from outrider.model.errors import ConfigurationError

_LN2 = 0.6931471805599453
SAMPLE_S = 3600.0


def check_targets(targets: Mapping[str, float], where: str) -> None:
    """Refuse target shares that do not sum to 1. Raises `ConfigurationError`."""
    total = sum(targets.values())
    if (targets and abs(total - 1.0) > 1e-6) or any(share < 0 for share in targets.values()):
        listed = ", ".join(f"{vo}={share:g}" for vo, share in targets.items())
        raise ConfigurationError(
            f"{where}: shares {listed} sum to {total:g}; right would be shares >= 0 that sum to 1"
        )


class Fairness:
    """CPU-seconds delivered to each VO, running jobs counted to the moment of asking.

    Args:
        targets: share owed to each VO, summing to 1; empty: every VO seen is owed the same.
        half_life_s: of the windowed figure; service counts half after this many seconds.
    """

    def __init__(self, targets: Mapping[str, float], half_life_s: float = 86_400.0) -> None:
        check_targets(targets, "fairness")
        self.targets = dict(targets)
        self.half_life_s = half_life_s
        self._number: dict[str, int] = {}
        self._done: list[float] = []
        self._running: list[int] = []
        self._at: list[float] = []
        self._recent: list[float] = []
        self._at_submission: tuple[float, list[float], list[int], list[float]] | None = None
        self._sum = 0.0
        self._samples = 0
        self._next_sample: float | None = None

    def number(self, vo: str) -> int:
        """The position of a VO in the lists; a new VO gets one."""
        if vo not in self._number:
            self._number[vo] = len(self._number)
            self._done.append(0.0)
            self._running.append(0)
            self._at.append(0.0)
            self._recent.append(0.0)
        return self._number[vo]

    def submitted(self, vo: str, now: float) -> None:
        """A job came: remember the service delivered at this moment."""
        if vo not in self._number:
            self.number(vo)
        self._at_submission = (now, self._done.copy(), self._running.copy(), self._at.copy())

    def started(self, vo: str, time_s: float, now: float, cpus: int) -> None:
        """A run began, or went on, on so many CPUs; `time_s` is before `now` if told late."""
        k = self._advance(vo, now)
        self._running[k] += cpus
        self._done[k] += cpus * (now - time_s)

    def ended(self, vo: str, time_s: float, now: float, cpus: int) -> None:
        """A run ended, or was suspended."""
        k = self._advance(vo, now)
        self._running[k] -= cpus
        self._done[k] -= cpus * (now - time_s)

    def _advance(self, vo: str, now: float) -> int:
        """Deliver what ran until now; returns the VO's position."""
        if self._next_sample is None or now >= self._next_sample:
            self._sample(now)
        k = self.number(vo)
        self._decay(k, now)
        return k

    def _decay(self, k: int, now: float) -> None:
        passed_s = now - self._at[k]
        if passed_s <= 0:
            return
        self._recent[k] = self._recent_service(k, now)
        self._done[k] += self._running[k] * passed_s
        self._at[k] = now

    def _recent_service(self, k: int, now: float) -> float:
        """CPU-seconds of a VO until now, older ones fading by half-life."""
        keep = math.pow(0.5, max(0.0, now - self._at[k]) / self.half_life_s)
        gain = self._running[k] * self.half_life_s / _LN2
        return self._recent[k] * keep + gain * (1.0 - keep)

    def _sample(self, now: float) -> None:
        """Take F at every full hour since the last one."""
        if self._next_sample is None:
            self._next_sample = (now // SAMPLE_S + 1) * SAMPLE_S
        for utility in self._hourly(self._next_sample, now):
            self._sum += utility
            self._samples += 1
        if now >= self._next_sample:
            self._next_sample = (now // SAMPLE_S + 1) * SAMPLE_S

    def _hourly(self, first_s: float, now: float) -> Iterator[float]:
        """F at full hours; exact, for nothing has changed in between."""
        hours = int((now - first_s) // SAMPLE_S) + 1 if now >= first_s else 0
        for hour in range(hours):
            at_s = first_s + hour * SAMPLE_S
            utility = self._utility(self._delivered(at_s, self._done, self._running, self._at))
            if utility is not None:
                yield utility

    @staticmethod
    def _delivered(
        now: float, done: list[float], running: list[int], at: list[float]
    ) -> list[float]:
        return [d + r * (now - t) for d, r, t in zip(done, running, at, strict=True)]

    def target(self, vo: str) -> float:
        """The share owed to a VO; 0 for one without a target."""
        return self.targets.get(vo, 0.0) if self.targets else 1.0 / len(self._number)

    def _utility(self, delivered: list[float]) -> float | None:
        total = sum(delivered)
        if total <= 0:
            return None
        got = {vo: delivered[k] / total for vo, k in self._number.items() if k < len(delivered)}
        owed = self.targets or {vo: 1.0 / len(got) for vo in got}
        deficit = max(w - got.get(vo, 0.0) for vo, w in owed.items())
        return 1.0 - max(0.0, deficit) / max(owed.values())

    def report(self, now: float) -> dict[str, Any]:
        """The ``fairness`` object of FORMATS; None for what has no value yet. Changes nothing."""
        delivered = self._delivered(now, self._done, self._running, self._at)
        total = sum(delivered)
        recent = [self._recent_service(k, now) for k in range(len(self._number))]
        hourly = [] if self._next_sample is None else list(self._hourly(self._next_sample, now))
        samples = self._samples + len(hourly)
        utility = None
        if self._at_submission is not None:
            utility = self._utility(self._delivered(*self._at_submission))
        listed = list(self._number) + [vo for vo in self.targets if vo not in self._number]
        got = {vo: delivered[k] / total for vo, k in self._number.items()} if total > 0 else {}
        return {
            "utility": utility,
            "time_mean": (self._sum + sum(hourly)) / samples if samples else None,
            "windowed": self._utility(recent),
            "share": {vo: got.get(vo, 0.0) if got else None for vo in listed},
            "target": {vo: self.target(vo) for vo in listed},
        }

    def save(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "vos": list(self._number),
            "done": self._done,
            "running": self._running,
            "at": self._at,
            "recent": self._recent,
            "at_submission": self._at_submission,
            "sum": self._sum,
            "samples": self._samples,
            "next_sample": self._next_sample,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._number = {vo: k for k, vo in enumerate(saved["vos"])}
        self._done = list(saved["done"])
        self._running = list(saved["running"])
        self._at = list(saved["at"])
        self._recent = list(saved["recent"])
        at = saved["at_submission"]
        self._at_submission = None if at is None else (at[0], list(at[1]), list(at[2]), list(at[3]))
        self._sum, self._samples = saved["sum"], saved["samples"]
        self._next_sample = saved["next_sample"]
