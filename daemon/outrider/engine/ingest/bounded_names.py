"""Bounds on names of users, VOs, machines and on jobs, in number and in bytes.

Any user who may submit a job can invent names: accounting groups, machines, classes. Each name
costs memory, a line in every list and a part of every sum. So names are cleaned and cut where they
enter (`clean_event`), and a bounded number of them, of a bounded number of bytes, is followed, in
order of arrival. Everything beyond that is counted under `OTHER`: totals stay complete, and nothing
else changes. A name that was not seen for the retention time is dropped for another, but only when
the bound is reached: below it no name is ever forgotten.

Jobs are bounded in the same way. A job beyond the bound is counted, and followed once it starts.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources
from outrider.model.printable import MAX_NAME_BYTES, clean_job_name, clean_line, clean_name

OTHER: Final = "other"
"""Replacement of every name beyond the bound; a real name that is equal is counted with them."""
SWEEP_EVERY_S: Final = 3600.0
"""Event time between two searches for names to drop, seconds."""

NAME_BYTES: Final = 64
"""Bytes of UTF-8 that all names of a kind may have together, times the limit on their number."""
MAX_RESOURCES: Final = 16
"""Named resources of a job or a machine that are kept, in order."""

USER, VO, CLASS, CLUSTER, MACHINE, ELIGIBLE, JOB = KINDS = (
    "user", "vo", "class", "cluster", "machine", "eligible", "job"
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
    job: int = 200_000


# -- clean events ----------------------------------------------------------------------------------
# The one place where names and texts from outside become printable and short.


def clean_events(events: Sequence[NamedEvent]) -> list[NamedEvent]:
    """Return events with clean names and texts, see `clean_event`."""
    return [clean_event(event) for event in events]


def clean_event(event: NamedEvent) -> NamedEvent:
    """Return an event with names and texts that are printable and at most 256 bytes long.

    An event that is clean is returned as it is.
    """
    time_s, kind, subject, extra = event
    together = _texts_of(kind, subject, extra)
    if len(together) <= MAX_NAME_BYTES and together.isascii() and together.isprintable():
        return event  # almost all: each text costs a check less
    name = clean_job_name(subject) if kind in ev.JOB_KINDS else clean_name(subject)
    clean = _CLEAN.get(kind)
    content = extra if clean is None or extra is None else clean(extra)
    return event if name is subject and content is extra else (time_s, kind, name, content)


def _texts_of(kind: int, subject: str, extra: Any) -> str:
    """Return all texts of an event as one; a line break if it needs a closer look."""
    if extra is None:
        return subject
    if kind == ev.STARTED:
        machine, _, *slot = extra
        return "".join((subject, machine, *slot))
    if kind == ev.SUBMITTED and (extra.resources is None or not extra.resources.named):
        return "".join(
            (subject, extra.user, extra.vo, extra.job_class, extra.eligible, extra.reporter)
        )
    return subject if kind in (ev.EVICTED, ev.REMOVED, ev.POWER, ev.RESIZED) else "\n"


def _clean_job(spec: JobSpec) -> JobSpec:
    user, vo = clean_name(spec.user), clean_name(spec.vo)
    job_class, eligible = clean_name(spec.job_class), clean_name(spec.eligible)
    resources = spec.resources and _clean_resources(spec.resources)
    reporter = clean_name(spec.reporter)
    if (
        reporter is spec.reporter
        and user is spec.user
        and vo is spec.vo
        and job_class is spec.job_class
        and eligible is spec.eligible
        and resources is spec.resources
    ):
        return spec
    return msgspec.structs.replace(
        spec, user=user, vo=vo, job_class=job_class, eligible=eligible, resources=resources,
        reporter=reporter,
    )  # fmt: skip


def _clean_change(changes: dict[str, Any]) -> dict[str, Any]:
    cleaned = {
        field: clean_name(value)
        if isinstance(value, str)
        else _clean_resources(value)
        if isinstance(value, Resources)
        else value
        for field, value in changes.items()
    }
    return changes if all(cleaned[field] is changes[field] for field in changes) else cleaned


def _clean_place(place: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a machine, the CPUs there and perhaps a slot, with clean names."""
    machine, slot = clean_name(place[0]), place[2:]
    if slot and clean_name(slot[0]) is not slot[0]:
        return machine, place[1], clean_name(slot[0])
    return place if machine is place[0] else (machine, *place[1:])


def _clean_members(machines: tuple[str, ...]) -> tuple[str, ...]:
    cleaned = tuple(map(clean_name, machines))
    return machines if all(a is b for a, b in zip(machines, cleaned, strict=True)) else cleaned


def _clean_machine(spec: MachineSpec) -> MachineSpec:
    cluster = clean_name(spec.cluster)
    resources = spec.resources and _clean_resources(spec.resources)
    if cluster is spec.cluster and resources is spec.resources:
        return spec
    return msgspec.structs.replace(spec, cluster=cluster, resources=resources)


def _clean_resources(resources: Resources) -> Resources:
    named = tuple((clean_name(name), n) for name, n in resources.named[:MAX_RESOURCES])
    same = named == resources.named
    return resources if same else msgspec.structs.replace(resources, named=named)


_CLEAN: Final[dict[int, Callable[[Any], Any]]] = {
    ev.SUBMITTED: _clean_job,
    ev.CHANGED: _clean_change,
    ev.STARTED: _clean_place,
    ev.RESUMED: _clean_place,
    ev.HELD: clean_line,
    ev.DRAINED: clean_line,
    ev.JOINED: _clean_machine,
    ev.ELIGIBLE: _clean_members,
}


# -- bounds ----------------------------------------------------------------------------------------


class BoundedNames:
    """Followed names of one kind.

    Together they have at most `NAME_BYTES` times that number of bytes.

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
        self._own: dict[str, str] = {}
        self._bytes = 0
        self._look_again_s = float("-inf")

    def __len__(self) -> int:
        return len(self._seen_s)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen_s)

    def of(self, name: str, time_s: float) -> str:
        """Return the name to use for a reported name: itself, or `OTHER`.

        Equal names are returned as one object: hundreds of thousands of jobs share it.
        """
        own = self._own.get(name)
        if own is not None:
            if self._seen_s[own] < time_s:
                self._seen_s[own] = time_s
            return own
        if name in self._always:
            return name
        if not self._has_room(name) and not (self._make_room(time_s) and self._has_room(name)):
            self.folded += 1
            return OTHER
        self._follow(name, time_s)
        return name

    def own(self, name: str) -> str:
        """Return the followed object that equals a name, or else the name itself."""
        return self._own.get(name, name)

    def _has_room(self, name: str) -> bool:
        most_bytes = NAME_BYTES * self.most
        return len(self._own) < self.most and self._bytes + len(name.encode()) <= most_bytes

    def _follow(self, name: str, time_s: float) -> None:
        self._own[name] = name
        self._seen_s[name] = time_s
        self._bytes += len(name.encode())

    def adopt(self, names: Iterable[str]) -> None:
        """Follow names from before there was a bound; they are the first to be dropped."""
        for name in names:
            if name not in self._always and name not in self._own:
                self._follow(name, 0.0)

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
                del self._seen_s[name], self._own[name]
                self._bytes -= len(name.encode())
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
        self._seen_s, self._own, self._bytes = {}, {}, 0
        for name, seen_s in saved["seen_s"].items():
            self._follow(name, seen_s)
        self.folded = saved["folded"]
        again_s = saved["look_again_s"]
        self._look_again_s = float("-inf") if again_s is None else again_s


class FollowedJobs:
    """Bound on the jobs that are followed, in number and in bytes of their names.

    A waiting job takes 1.3 kB with two policies. Beyond the bound a submission is only counted.
    Such a job is followed from its start: a quarter more than `most` may have a run.

    Args:
        most: maximum number of jobs; together their names have `BYTES` times as many bytes.

    Attributes:
        folded: submissions beyond the bound.
    """

    BYTES: Final = 128

    def __init__(self, most: int) -> None:
        self.most = most
        self.folded = 0
        self.clear()

    def clear(self) -> None:
        """Forget the jobs, not the count of those beyond the bound."""
        self._n = self._bytes = 0

    def __len__(self) -> int:
        return self._n

    def has_room(self, runs: bool) -> bool:
        """Return whether one more job may be followed; `runs`: it has a run."""
        most = self.most + self.most // 4 if runs else self.most
        return self._n < most and self._bytes < self.BYTES * most

    def add(self, name_bytes: int) -> None:
        """Note a job that is followed from now on."""
        self._n += 1
        self._bytes += name_bytes

    def drop(self, name_bytes: int) -> None:
        """Note that a job has left."""
        self._n -= 1
        self._bytes -= name_bytes

    def change(self, more_bytes: int) -> None:
        """Note that the names of a job have become longer or shorter."""
        self._bytes += more_bytes

    def save(self) -> dict[str, Any]:
        """Return the count as plain data; the jobs are the registry's."""
        return {"folded": self.folded}

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self.folded = saved["folded"]


_SHARED_SPECS: Final = 4_096


class Names:
    """Followed names of every kind, and the bound on jobs.

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
        self.job = FollowedJobs(most.job)
        self._specs: dict[JobSpec, JobSpec] = {}

    @property
    def by_kind(self) -> dict[str, BoundedNames | FollowedJobs]:
        """Followed names of each kind, by one of `KINDS`."""
        kinds = (
            self.user, self.vo, self.job_class, self.cluster, self.machine, self.eligible, self.job,
        )  # fmt: skip
        return dict(zip(KINDS, kinds, strict=True))

    def begin(self) -> None:
        """Restart the counts of folded names."""
        for names in self.by_kind.values():
            names.folded = 0

    def spec(self, reported: JobSpec, time_s: float) -> JobSpec:
        """Return a job's reported specification with followed names only.

        Jobs with equal specifications share one: most jobs of a user are alike.
        """
        user, vo = self.user.of(reported.user, time_s), self.vo.of(reported.vo, time_s)
        job_class = self.job_class.of(reported.job_class, time_s)
        spec = reported
        if user is not reported.user or vo is not reported.vo or job_class != reported.job_class:
            spec = msgspec.structs.replace(reported, user=user, vo=vo, job_class=job_class)
        if spec.eligible_s is not None:
            return spec
        if len(self._specs) >= _SHARED_SPECS:
            self._specs.clear()
        return self._specs.setdefault(spec, spec)

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
