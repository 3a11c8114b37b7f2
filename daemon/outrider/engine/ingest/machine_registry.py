"""Machines named by sources: their numbers, specifications, and what uses them."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from outrider.engine.ingest.bounded_names import OTHER, Names
from outrider.engine.ingest.set_aside import UNKNOWN_MACHINE, NotApplicableError
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.machines import MachineSpec
from outrider.model.printable import clean_name

_MAX_SEEN_EVENTS = 20_000
_NEVER_YET = float("-inf")
_TAKEN_AWAY = frozenset({"owner", "unknown", "preempted", "drained", "reboot"})

MAX_MEMBERS: Final = 1_000_000
"""Members of all classes of machines together, each of which names the machine once more."""
INFERRED_FOR_S: Final = 7 * 86_400.0
"""Seconds for which inferred CPUs are assumed to exist, at least; at most twice as long.

They end at a start on the machine unless as many were in use together again: a week has all that
recurs on a site."""


Describe = Callable[[str], MachineSpec]
Complete = Callable[[MachineSpec], MachineSpec]


def as_reported(spec: MachineSpec) -> MachineSpec:
    """Return the specification as a source reported it: the site adds nothing."""
    return spec


def inferred_machine(name: str) -> MachineSpec:
    """Return the specification of a machine that is only known because a job ran there."""
    return MachineSpec(inferred=True)


class MachineRegistry:
    """Numbering of machines; drops duplicate events and closes gaps, as `Normaliser` for jobs.

    Args:
        describe: the specification of a machine that is only known because a job ran there. With
            more than one CPU it is definite, whatever runs on the machine.
        complete: adds what the site declares of a machine to what a source reported.
        repairs: counts of repairs, by kind; shared with the normaliser.
        bounds: limits on the names that are followed; None: all are. The machine `OTHER`
            represents all others: it is never open, and has no slots.
    """

    def __init__(
        self,
        describe: Describe,
        complete: Complete,
        repairs: Counter[str],
        bounds: Names | None = None,
    ) -> None:
        self._numbers = MachineNumbers()
        self._bounds = bounds
        if bounds is not None:
            bounds.machine.in_use = self._in_use
            bounds.machine.forget = self._numbers.give_up
        self._describe = describe
        self._complete = complete
        self._repairs = repairs
        self._specs: list[MachineSpec | None] = []
        self._busy: list[int] = []
        self._widest: dict[int, tuple[float, int, int]] = {}
        self._declared: dict[int, int] = {}
        self._closed: set[int] = set()
        self._owned: set[int] = set()
        self._read_s: dict[int, float] = {}
        self._seen_events: OrderedDict[tuple[str, int, int, str], None] = OrderedDict()
        self._classes: dict[str, frozenset[str]] = {}
        self._members_n = 0

    @property
    def names(self) -> list[str]:
        """Names of the machines, by number."""
        return self._numbers.names

    # -- runs ---------------------------------------------------------------------------------

    def begin_run(self, name: str, cpus: int, time_s: float) -> tuple[int, list[Event]]:
        """Begin a run; return the machine's number, and what must have happened before."""
        out: list[Event] = []
        m = self._known(name, time_s, out)
        out += self.resize_run(m, cpus, time_s)
        spec = self._specs[m]
        if spec is not None and spec.inferred and m in self._closed:
            self._closed.discard(m)
            out.append((time_s, ev.USABLE, m, None))
        return m, out

    def number_of(self, name: str) -> int | None:
        """Return the number of a machine; None for one that was never named."""
        return self._numbers.get(name)

    def has_room(self, name: str, cpus: int) -> bool:
        """Return whether a machine has `cpus` CPUs unused; True for an unknown machine."""
        m = self._numbers.get(name)
        spec = None if m is None else self._specs[m]
        if name == OTHER and self._bounds is not None:
            return True
        return m is None or spec is None or self._busy[m] + cpus <= spec.cpus

    def resize_run(self, m: int, more_cpus: int, time_s: float) -> list[Event]:
        """Change the CPUs of a run, up or down.

        An inferred machine has the CPUs seen in use, unless the site declares how many it has: a
            run
        over several machines is reported with the CPUs of all and the first of them.
        """
        self._busy[m] += more_cpus
        spec = self._specs[m]
        if spec is None or not spec.inferred:
            return []
        cpus = self._declared.get(m) or self._seen_in_use(m, time_s)
        if cpus == spec.cpus:
            return []
        return [self._join(time_s, m, msgspec.structs.replace(spec, cpus=cpus))]

    def _seen_in_use(self, m: int, time_s: float) -> int:
        """Return the most CPUs in use together, in this period and the one before."""
        busy = self._busy[m]
        since_s, before, most = self._widest.get(m, (time_s, 0, 0))
        if time_s - since_s >= INFERRED_FOR_S:
            before = most if time_s - since_s < 2 * INFERRED_FOR_S else 0
            since_s, most = time_s, 0
        most = max(most, busy)
        self._widest[m] = since_s, before, most
        return max(before, most, 1)

    def end_run(self, m: int, cpus: int, time_s: float, reason: str = "") -> list[Event]:
        """End a run; `reason` if it was evicted. Return what follows for the machine."""
        self._busy[m] -= cpus
        spec = self._specs[m]
        if spec is None or not spec.inferred or reason not in _TAKEN_AWAY or m in self._closed:
            return []
        # the reason is not known: the machine is not assumed free until it is used again
        self._closed.add(m)
        return [(time_s, ev.DRAINED, m, None)]

    # -- events of machines -------------------------------------------------------------------

    def translate(self, time_s: float, kind: int, name: str, extra: Any) -> list[Event] | None:
        """Return the events that a machine's event means, in order; None if nothing is new.

        Raises:
            NotApplicableError: it is impossible, and nothing explains it.
        """
        if kind == ev.POWER:
            return self._reading(time_s, name, extra)
        if kind == ev.ELIGIBLE:
            return self._class_event(time_s, name, frozenset(extra))
        if self._bounds is not None and self._bounds.machine.of(name, time_s) == OTHER:
            return []
        key = (name, kind, round(time_s * 1000), clean_name(repr(extra)))
        if key in self._seen_events:
            return None
        self._seen_events[key] = None
        if len(self._seen_events) > _MAX_SEEN_EVENTS:
            self._seen_events.popitem(last=False)
        if kind == ev.JOINED:
            return self._joined(time_s, name, extra)
        out: list[Event] = []
        if name not in self._numbers:
            self._repairs["unseen_machine"] += 1
        m = self._known(name, time_s, out)
        if not self._changes(kind, m):
            return out or None
        if kind == ev.USABLE and m in self._owned:
            self._owned.discard(m)
            self._repairs["log_out_unseen"] += 1
            out.append((time_s, ev.OWNER_WENT, m, None))
        return [*out, (time_s, kind, m, extra)]

    def _reading(self, time_s: float, name: str, watts: float) -> list[Event] | None:
        """Return a meter's reading; a meter of an unknown name does not create a machine."""
        m = self._numbers.get(name)
        if m is None or self._specs[m] is None:
            raise NotApplicableError(UNKNOWN_MACHINE)
        if time_s <= self._read_s.get(m, _NEVER_YET):
            return None  # a duplicate, or overtaken by a later one
        self._read_s[m] = time_s
        return [(time_s, ev.POWER, m, watts)]

    def _class_event(
        self, time_s: float, name: str, machines: frozenset[str]
    ) -> list[Event] | None:
        """Return the event of a class of machines; None if its members are as before."""
        if self._classes.get(name) == machines:
            return None
        if self._bounds is not None:
            eligible, known = self._bounds.eligible, self._bounds.machine
            if eligible.of(name, time_s) != name:
                return []  # its jobs may run nowhere that Outrider knows of
            self._members_n -= len(self._classes.pop(name, ()))
            if self._members_n + len(machines) > MAX_MEMBERS:
                eligible.folded += 1
                return [(time_s, ev.ELIGIBLE, 0, (name, (), True))]
            machines = frozenset(map(known.own, machines))
            self._members_n += len(machines)
        self._classes[name] = machines
        return [(time_s, ev.ELIGIBLE, 0, (name, self._numbers.known(machines), True))]

    def _in_classes(self, time_s: float, name: str, m: int) -> list[Event]:
        """Return the classes of a machine that was unknown when the classes were reported."""
        names = (each for each, machines in self._classes.items() if name in machines)
        return [(time_s, ev.ELIGIBLE, 0, (each, (m,), False)) for each in names]

    def _joined(self, time_s: float, name: str, reported: MachineSpec) -> list[Event] | None:
        spec = self._placed(self._complete(reported), time_s)
        before = self._numbers.get(name)
        if before is not None and self._specs[before] == spec:
            return None
        out: list[Event] = []
        is_new = before is None
        m = self._number(name, time_s, out)
        classes = self._in_classes(time_s, name, m) if is_new else []
        return [*out, self._join(time_s, m, spec), *classes]

    def _changes(self, kind: int, m: int) -> bool:
        """Store the machine's state; return False if the event contains nothing new."""
        if kind == ev.LEFT:
            self._specs[m] = None
        elif kind in (ev.OWNER_CAME, ev.OWNER_WENT):
            here = kind == ev.OWNER_CAME
            if (m in self._owned) == here:
                return False
            (self._owned.add if here else self._owned.discard)(m)
        return True

    # -- names --------------------------------------------------------------------------------

    def _known(self, name: str, time_s: float, out: list[Event]) -> int:
        """Return the machine's number; one that is unknown, or that had left, joins first."""
        had_left = name in self._numbers
        m = self._number(name, time_s, out)
        if self._specs[m] is None:
            if had_left:
                self._repairs["unseen_machine"] += 1
            out.append(self._join(time_s, m, self._placed(self._described(name), time_s)))
            out += [] if had_left else self._in_classes(time_s, name, m)
        return m

    def _described(self, name: str) -> MachineSpec:
        if name == OTHER and self._bounds is not None:
            return MachineSpec(cluster=OTHER, usable=False)
        return self._describe(name)

    def _placed(self, spec: MachineSpec, time_s: float) -> MachineSpec:
        """Return the specification with a cluster that is followed."""
        if self._bounds is None:
            return spec
        cluster = self._bounds.cluster.of(spec.cluster, time_s)
        return spec if cluster == spec.cluster else msgspec.structs.replace(spec, cluster=cluster)

    def _number(self, name: str, time_s: float, out: list[Event]) -> int:
        """Return the number of a machine; a new one may get that of a forgotten machine."""
        m = self._numbers.get(name)
        if m is not None:
            return m
        if self._numbers.given_up:
            out += self._taken_off(time_s)
        m = self._numbers.give(name)
        if m == len(self._specs):
            self._specs.append(None)
            self._busy.append(0)
        self._declare(m)
        return m

    def _in_use(self) -> set[str]:
        """Return machines that must be kept: they run something, or sources report them."""
        return {
            name
            for name, m in self._numbers.items()
            if self._busy[m] or m in self._owned or not _may_go(self._specs[m])
        }

    def _taken_off(self, time_s: float) -> list[Event]:
        """Return the events that must precede the reuse of the numbers that were given up."""
        out: list[Event] = []
        given_up = self._numbers.given_up
        names = {self.names[m] for m in given_up}
        for m in given_up:
            if self._specs[m] is not None:
                out.append((time_s, ev.LEFT, m, None))
                self._specs[m] = None
            self._widest.pop(m, None)
            self._read_s.pop(m, None)
            self._closed.discard(m)
        given_up.clear()
        for each, machines in self._classes.items():
            if not names.isdisjoint(machines):
                out.append((time_s, ev.ELIGIBLE, 0, (each, self._numbers.known(machines), True)))
        return out

    def _declare(self, m: int) -> None:
        """Store the number of CPUs that the site declares for the machine."""
        cpus = self._describe(self.names[m]).cpus
        if cpus > 1:
            self._declared[m] = cpus
        else:  # the number may have been another machine's
            self._declared.pop(m, None)

    def _join(self, time_s: float, m: int, spec: MachineSpec) -> Event:
        self._specs[m] = spec
        return (time_s, ev.JOINED, m, spec)

    def realign(self, joined: Sequence[bool], owned: Sequence[bool]) -> None:
        """Adopt the engine's view, after a fault, of which machines are there and have owners.

        A machine that is not there joins with the next event that names it.
        """
        for m in range(len(self.names)):
            if m >= len(joined) or not joined[m]:
                self._specs[m] = None
        self._owned = {m for m, here in enumerate(owned) if here}

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self._numbers.save(),
            "specs": [None if s is None else msgspec.to_builtins(s) for s in self._specs],
            "busy": self._busy,
            "widest": [[m, *seen] for m, seen in self._widest.items()],
            "closed": sorted(self._closed),
            "owned": sorted(self._owned),
            "read_s": list(self._read_s.items()),
            "classes": {name: sorted(machines) for name, machines in self._classes.items()},
            "told": [list(key) for key in self._seen_events],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self._numbers.restore(saved)
        self._declared = {}
        for m in range(len(self.names)):
            self._declare(m)
        self._specs = [
            None if s is None else msgspec.convert(s, MachineSpec) for s in saved["specs"]
        ]
        self._busy = list(saved["busy"])
        self._widest = {m: (since_s, was, now) for m, since_s, was, now in saved["widest"]}
        self._closed, self._owned = set(saved["closed"]), set(saved["owned"])
        self._read_s = dict(saved["read_s"])
        self._classes = {name: frozenset(members) for name, members in saved["classes"].items()}
        self._members_n = sum(map(len, self._classes.values()))
        self._seen_events = OrderedDict.fromkeys((n, k, ms, x) for n, k, ms, x in saved["told"])


def _may_go(spec: MachineSpec | None) -> bool:
    """Return whether no source reports a machine: it left, or only a run named it."""
    return spec is None or spec.inferred


# -- machine numbers -------------------------------------------------------------------------------
# Numbers of machines by name; the number of a forgotten machine is given to another.


class MachineNumbers:
    """Machines by name and by number.

    Attributes:
        names: by number; that of a forgotten machine keeps its name until it is reused.
        given_up: numbers of forgotten machines that the engine has not been informed of.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.given_up: list[int] = []
        self._numbers: dict[str, int] = {}
        self._spare: list[int] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def get(self, name: str) -> int | None:
        """Return the number of a machine; None for one that was never named, or is forgotten."""
        return self._numbers.get(name)

    def items(self) -> Iterable[tuple[str, int]]:
        """Return name and number of every machine that is not forgotten."""
        return self._numbers.items()

    def known(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of those of the named machines that have one, ascending."""
        return tuple(sorted(self._numbers[name] for name in names if name in self._numbers))

    def give(self, name: str) -> int:
        """Give a number to a machine that has none."""
        if self._spare:
            m = self._spare.pop()
            self.names[m] = name
        else:
            m = len(self.names)
            self.names.append(name)
        self._numbers[name] = m
        return m

    def give_up(self, names: Collection[str]) -> None:
        """Forget these machines: their numbers go to others."""
        for name in names:
            m = self._numbers.pop(name, None)
            if m is not None:
                self.given_up.append(m)
                self._spare.append(m)

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {"names": self.names, "spare": self._spare, "given_up": self.given_up}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Resume from what `save` returned; before names were bounded, none was forgotten."""
        self.names = list(saved["names"])
        self._spare = list(saved.get("spare", ()))
        self.given_up = list(saved.get("given_up", ()))
        spare = set(self._spare)
        self._numbers = {name: m for m, name in enumerate(self.names) if m not in spare}
