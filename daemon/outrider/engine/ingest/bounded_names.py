"""Bounds on the number of named users, VOs, machines and so on; all others are `other`.

Any user who may submit a job can invent names: accounting groups, machines, classes. Each name
costs memory, a line in every list and a part of every sum. So a bounded number of names is
followed, in order of arrival, and everything beyond that is counted under `OTHER`: totals stay
complete, and nothing else changes. A name that was not seen for the retention time is dropped for
another, but only when the bound is reached: below it no name is ever forgotten.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model.jobs import JobSpec

OTHER: Final = "other"
"""Replacement of every name beyond the bound; a real name that is equal is counted with them."""
SWEEP_EVERY_S: Final = 3600.0
"""Event time between two searches for names to drop, seconds."""

USER, VO, CLASS, CLUSTER, MACHINE, ELIGIBLE = KINDS = (
    "user", "vo", "class", "cluster", "machine", "eligible"
)  # fmt: skip
"""Kinds of names; `ELIGIBLE` is a class of machines that some jobs may use."""


class NameLimits(NamedTuple):
    """Maximum number of names of each kind."""

    user: int = 10_000
    vo: int = 1_000
    job_class: int = 16
    cluster: int = 1_000
    machine: int = 50_000
    eligible: int = 1_000


class BoundedNames:
    """Followed names of one kind.

    Args:
        most: maximum number, without those that are always named.
        always: declared names, such as VOs with a target share.
        forget_after_s: a name not seen for so long may be dropped; infinite: none ever is.
        in_use: names that must stay, however long ago they were seen.
        forget: called with the names that were dropped, before another takes their place.

    Attributes:
        folded: number of uses of names beyond the bound.
    """

    def __init__(
        self,
        most: int,
        always: Iterable[str] = (),
        forget_after_s: float = float("inf"),
        in_use: Callable[[], Collection[str]] = tuple,
        forget: Callable[[Collection[str]], None] = lambda names: None,
    ) -> None:
        self.most = most
        self.in_use, self.forget = in_use, forget
        self.folded = 0
        self._always = frozenset(always) | {OTHER}
        self._forget_after_s = forget_after_s
        self._seen_s: dict[str, float] = {}
        self._look_again_s = float("-inf")

    def __len__(self) -> int:
        return len(self._seen_s)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen_s)

    def of(self, name: str, time_s: float) -> str:
        """Return the name to use for a reported name: itself, or `OTHER`."""
        seen_s = self._seen_s
        if name in seen_s:
            if seen_s[name] < time_s:
                seen_s[name] = time_s
            return name
        if name in self._always:
            return name
        if len(seen_s) >= self.most and not self._make_room(time_s):
            self.folded += 1
            return OTHER
        seen_s[name] = time_s
        return name

    def adopt(self, names: Iterable[str]) -> None:
        """Follow names from before there was a bound; they are the first to be dropped."""
        for name in names:
            if name not in self._always:
                self._seen_s.setdefault(name, 0.0)

    def _make_room(self, time_s: float) -> bool:
        """Drop names that were not seen for long; return False if there are none."""
        if time_s < self._look_again_s:
            return False
        self._look_again_s = time_s + SWEEP_EVERY_S
        before_s = time_s - self._forget_after_s
        old = [name for name, seen_s in self._seen_s.items() if seen_s < before_s]
        if old:
            kept = frozenset(self.in_use())
            old = [name for name in old if name not in kept]
        if old:
            for name in old:
                del self._seen_s[name]
            self.forget(old)
        return bool(old)

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        again_s = self._look_again_s
        return {
            "seen_s": self._seen_s,
            "folded": self.folded,
            "look_again_s": None if again_s == float("-inf") else again_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._seen_s = dict(saved["seen_s"])
        self.folded = saved["folded"]
        again_s = saved["look_again_s"]
        self._look_again_s = float("-inf") if again_s is None else again_s


class Names:
    """Followed names of every kind.

    Args:
        most: how many of each.
        forget_after_s: see `BoundedNames`. Clusters and classes are never forgotten: they are
            declared by few, and totals by cluster are kept by their numbers.
        vos, clusters: declared names, always named.
    """

    def __init__(
        self,
        most: NameLimits | None = None,
        forget_after_s: float = float("inf"),
        vos: Iterable[str] = (),
        clusters: Iterable[str] = (),
    ) -> None:
        most = most or NameLimits()
        self.user = BoundedNames(most.user, ("",), forget_after_s)
        self.vo = BoundedNames(most.vo, ("all", *vos), forget_after_s)
        self.job_class = BoundedNames(most.job_class, ("batch", "interactive"))
        self.cluster = BoundedNames(most.cluster, ("default", *clusters))
        self.machine = BoundedNames(most.machine, (), forget_after_s)
        self.eligible = BoundedNames(most.eligible)

    @property
    def by_kind(self) -> dict[str, BoundedNames]:
        """Followed names of each kind, by one of `KINDS`."""
        kinds = (
            self.user, self.vo, self.job_class, self.cluster, self.machine, self.eligible,
        )  # fmt: skip
        return dict(zip(KINDS, kinds, strict=True))

    def begin(self) -> None:
        """Restart the counts of folded names."""
        for names in self.by_kind.values():
            names.folded = 0

    def spec(self, reported: JobSpec, time_s: float) -> JobSpec:
        """Return a job's reported specification with followed names only."""
        user, vo = self.user.of(reported.user, time_s), self.vo.of(reported.vo, time_s)
        job_class = self.job_class.of(reported.job_class, time_s)
        if user is reported.user and vo is reported.vo and job_class is reported.job_class:
            return reported
        return msgspec.structs.replace(reported, user=user, vo=vo, job_class=job_class)

    def changes(self, reported: dict[str, Any], time_s: float) -> dict[str, Any]:
        """Return reported changes of a job's specification with followed names only."""
        bounds = (("user", self.user), ("vo", self.vo), ("job_class", self.job_class))
        named = {
            field: names.of(reported[field], time_s) for field, names in bounds if field in reported
        }
        return {**reported, **named} if named else reported

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {kind: names.save() for kind, names in self.by_kind.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        for kind, names in self.by_kind.items():
            if kind in saved:
                names.restore(saved[kind])
