"""Machines: their specification, given by an adapter when a machine joins."""

import re
from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from outrider.model.errors import ConfigurationError

# -- resources -------------------------------------------------------------------------------------
# Resources besides CPUs: those that a job requests, and those that a machine has.

MEMORY: Final = "memory_mib"
GPUS: Final = "gpus"


class Resources(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Amounts of resources of a machine besides its CPUs.

    Attributes:
        memory_mib: memory, MiB; None for a machine that does not declare it: not checked.
        gpus: GPUs; None: as above.
        named: other resources by name, as ``(("licence", 1.0),)``; those that a machine does not
            declare are not checked there.
    """

    memory_mib: float | None = None
    gpus: float | None = None
    named: tuple[tuple[str, float], ...] = ()

    def amounts(self) -> Iterator[tuple[str, float]]:
        """Name and amount of each given resource; the first two are named `MEMORY` and `GPUS`."""
        if self.memory_mib is not None:
            yield MEMORY, self.memory_mib
        if self.gpus is not None:
            yield GPUS, self.gpus
        yield from self.named


# -- machines --------------------------------------------------------------------------------------


class MachineSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Specification of a machine, as known when it joins the site.

    Attributes:
        cluster: name of the group of machines that are located and used together.
        cpus: CPUs that jobs may use, at least 1.
        active_w: watts while a job or an owner uses it, or None if unknown.
        idle_w: watts while it is on and unused, or None.
        sleep_w: watts while it sleeps, or None.
        inferred: True if the machine is only known because a job ran there: its owners,
            capacity and idle time are guesses, and every decision on it is marked so.
        usable: whether jobs may start on it as soon as it joins.
        speed: work per second and CPU, relative to the machine that run times refer to.
        resources: its resources besides CPUs; undeclared ones are not checked.
    """

    cluster: str = "default"
    cpus: int = 1
    active_w: float | None = None
    idle_w: float | None = None
    sleep_w: float | None = None
    inferred: bool = False
    usable: bool = True
    speed: float = 1.0
    resources: Resources | None = None


# -- opening ---------------------------------------------------------------------------------------
# Opening hours of a cluster: ``mon-fri 09:00-17:00, sat 10:00-14:00`` or ``always``.

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(
    r"(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))?\s+"
    r"(?P<from_h>\d{1,2}):(?P<from_m>\d{2})-(?P<to_h>\d{1,2}):(?P<to_m>\d{2})"
)
MINUTES_A_WEEK = 7 * 24 * 60


class OpeningHours:
    """A week in minutes, one byte each: 1 while the cluster is open to its owners.

    Args:
        text: ``always``, ``never``, or spans ``DAY[-DAY] HH:MM-HH:MM`` separated by commas. A
            span may cross midnight (``fri 22:00-02:00``) and ``24:00`` is the end of a day.

    Raises:
        ConfigurationError: the text is none of these.

    >>> OpeningHours("mon-fri 09:00-17:00").is_open(9 * 3600)
    True
    """

    __slots__ = ("minutes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        words = text.strip().lower()
        if words in ("always", "never"):
            self.minutes = bytes([words == "always"]) * MINUTES_A_WEEK
            return
        week = bytearray(MINUTES_A_WEEK)
        for part in words.split(","):
            _mark(week, part.strip(), text)
        self.minutes = bytes(week)

    def is_open(self, week_second: float) -> bool:
        """Return whether it is open at this second since Monday 00:00."""
        return self.minutes[int(week_second) // 60] == 1


def _mark(week: bytearray, part: str, text: str) -> None:
    span = _SPAN.fullmatch(part)
    if span is None or span["first"] not in _DAYS or (span["last"] or "mon") not in _DAYS:
        raise ConfigurationError(
            f'opening hours "{text}": cannot read "{part}"; expected "mon-fri 09:00-17:00"'
        )
    start = int(span["from_h"]) * 60 + int(span["from_m"])
    end = int(span["to_h"]) * 60 + int(span["to_m"])
    if max(start, end) > 24 * 60 or int(span["from_m"]) > 59 or int(span["to_m"]) > 59:
        raise ConfigurationError(
            f'opening hours "{text}": "{part}" names no time of day; expected "mon-fri 09:00-17:00"'
        )
    if end <= start:
        end += 24 * 60
    first = _DAYS.index(span["first"])
    last = _DAYS.index(span["last"] or span["first"])
    for day in range(first, last + 1 if last >= first else last + 8):
        for minute in range(day * 1440 + start, day * 1440 + end):
            week[minute % MINUTES_A_WEEK] = 1


ALWAYS = OpeningHours("always")


# -- clusters --------------------------------------------------------------------------------------
# Clusters: declared properties of machines that are located and used together.

NEVER_S: Final = float("inf")


class ClusterSpec(NamedTuple):
    """Opening hours and sleep of a cluster. Machines of undeclared clusters never sleep.

    Attributes:
        name: the cluster.
        hours: opening hours, in which owners may use it.
        sleep_after_open_s: idle seconds before a machine sleeps, if it became idle while open.
        sleep_after_closed_s: the same, if it became idle while closed.
    """

    name: str
    hours: OpeningHours = ALWAYS
    sleep_after_open_s: float = NEVER_S
    sleep_after_closed_s: float = NEVER_S

    @property
    def sleeps(self) -> bool:
        """True if its machines ever go to sleep."""
        return self.sleep_after_open_s < NEVER_S or self.sleep_after_closed_s < NEVER_S

    def sleep_after_s(self, week_second: float) -> float:
        """Idle seconds until sleep for a machine that becomes idle now."""
        if self.hours.minutes[int(week_second) // 60]:
            return self.sleep_after_open_s
        return self.sleep_after_closed_s


# -- site habits -----------------------------------------------------------------------------------
# Habits of a site: what machines and runs do there by rule, which no event tells.

_Seconds = Annotated[float, Meta(ge=0)]


class SiteHabits(Struct, frozen=True):
    """Site profile: known rules of the machines; None: not known. Opening hours are elsewhere.

    Attributes:
        reboot: local time of the nightly reboot, ``HH:MM``; ``never``: there is none.
        idle_before_job_open_s: seconds after a log-out or reboot before jobs may use a machine
            whose cluster is open then.
        idle_before_job_closed_s: the same, where it is closed.
        reconsider_s: seconds after which a job that was deferred is decided again.
        wake_s: seconds that a job waits for a machine that has to be woken.
        wake_j: joules of waking it.
        transfer_s: seconds that a job copies its data at every start.
        suspend_s: seconds that a job stays suspended after a log-in before it is evicted.
        checkpoint_every_s: seconds of work between two checkpoints of a run.
    """

    reboot: str | None = None
    idle_before_job_open_s: _Seconds | None = None
    idle_before_job_closed_s: _Seconds | None = None
    reconsider_s: Annotated[float, Meta(gt=0)] | None = None
    wake_s: _Seconds | None = None
    wake_j: _Seconds | None = None
    transfer_s: _Seconds | None = None
    suspend_s: _Seconds | None = None
    checkpoint_every_s: Annotated[float, Meta(gt=0)] | None = None

    def completed_by(self, other: "SiteHabits") -> "SiteHabits":
        """Return this profile, with unknown values taken from `other`."""
        return SiteHabits(
            *(
                getattr(other, name) if getattr(self, name) is None else getattr(self, name)
                for name in self.__struct_fields__
            )
        )


class Clause(msgspec.Struct, frozen=True):
    """One condition that a job puts on its machines; all of them have to hold.

    Attributes:
        text: as the batch system writes it.
        machines: how many machines meet it, regardless of the other conditions.
        without_it: how many machines would meet all the others without this one.
    """

    text: str
    machines: int
    without_it: int
