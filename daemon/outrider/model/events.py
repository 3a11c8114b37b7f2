"""The events of a site: the kinds that every source yields and the engine applies.

An event is a plain tuple ``(time_s, kind, subject, extra)``. A tuple costs 90 ns to make, a
frozen dataclass 570; a campus year has six million of them. ``kind`` is one of the integers
below. At the edge (adapters, journal, logs) ``subject`` is the name of a job or machine and
machines in ``extra`` are names too: a `NamedEvent`. Inside the engine both are small integers
given out by `outrider.engine.ingest.normaliser`: an `Event`.

============  =========  ======================================================
kind          subject    extra
============  =========  ======================================================
completed     job        None
evicted       job        reason, one of `EVICTION_REASONS`
owner_went    machine    None; idle, but not yet open to jobs
usable        machine    None; from now on jobs may start here
rebooted      machine    None; idle again (machines with an owner are spared)
owner_came    machine    None; closed to jobs
submitted     job        `JobSpec`
removed       job        why, one of `EVICTION_REASONS`
tick          0          None; decisions fall now
started       job        (machine, cpus); at the edge also (machine, cpus, slot)
suspended     job        None; or `CPUS_GIVEN_BACK`: preempted, others may use its CPUs
resumed       job        None; or (machine, cpus) where it had given back its CPUs
held          job        why, in the batch system's own words, or None; not by a policy
released      job        None
changed       job        dict of changed `JobSpec` fields
joined        machine    `MachineSpec`
left          machine    None
asleep        machine    None
woken         machine    None
drained       machine    None, or why; closed to jobs by an administrator
power         machine    watts, measured
resized       job        CPUs of its run from now on
eligible      class      names of the machines in it, a tuple; those not heard of yet count later
disconnected  job        None; whether its run goes on is not known
reconnected   job        None; its run has gone on
============  =========  ======================================================

A class is what several kinds of job may be allowed to use: `JobSpec.eligible` names it. An adapter
resolves the batch system's own words (Requirements, partition, features) into machines once per
class and tells them again when they change; a class that no event told holds no machine. Inside the
engine the subject of ``eligible`` is 0 and the extra ``(class, machines, anew)``, the last False
where these machines come to those told before.

A slot is a part of a machine that runs one job at a time, and goes by a name that is unique on
the machine (HTCondor's ``slot1_2``): a start on a slot says that what ran there before is over.

The numbers of the first nine kinds are their order at equal times in a replayed trace: job end,
log-out or usable, reboot, log-in, submission, kill, tick (see docs/reference/definitions.md).
"""

from typing import Any, Final, TypeAlias

COMPLETED: Final = 0
EVICTED: Final = 1
OWNER_WENT: Final = 2
USABLE: Final = 3
REBOOTED: Final = 4
OWNER_CAME: Final = 5
SUBMITTED: Final = 6
REMOVED: Final = 7
TICK: Final = 8
STARTED: Final = 9
SUSPENDED: Final = 10
RESUMED: Final = 11
HELD: Final = 12
RELEASED: Final = 13
CHANGED: Final = 14
JOINED: Final = 15
LEFT: Final = 16
ASLEEP: Final = 17
WOKEN: Final = 18
DRAINED: Final = 19
POWER: Final = 20
RESIZED: Final = 21
ELIGIBLE: Final = 22
DISCONNECTED: Final = 23
RECONNECTED: Final = 24

CPUS_GIVEN_BACK: Final = "cpus_given_back"
"""Extra of a `SUSPENDED` event whose job gives its CPUs to others until it is resumed."""

KIND_NAMES: Final = (
    "completed", "evicted", "owner_went", "usable", "rebooted", "owner_came", "submitted",
    "removed", "tick", "started", "suspended", "resumed", "held", "released", "changed",
    "joined", "left", "asleep", "woken", "drained", "power", "resized", "eligible",
    "disconnected", "reconnected",
)  # fmt: skip
"""Names of the kinds, by number: metrics, journal exports and reports use these."""

KIND_NUMBERS: Final = {name: number for number, name in enumerate(KIND_NAMES)}

JOB_KINDS: Final = frozenset(
    {
        COMPLETED, EVICTED, SUBMITTED, REMOVED, STARTED, SUSPENDED, RESUMED, HELD, RELEASED,
        CHANGED, RESIZED, DISCONNECTED, RECONNECTED,
    }
)  # fmt: skip
"""Kinds whose subject is a job; of the rest, but for tick and eligible, it is a machine."""

MACHINE_KINDS: Final = frozenset(KIND_NUMBERS.values()) - JOB_KINDS - {TICK, ELIGIBLE}
"""Kinds whose subject is a machine."""

EVICTION_REASONS: Final = (
    "owner", "reboot", "preempted", "drained", "failed_start", "removed", "held", "killed",
    "unknown",
)  # fmt: skip
"""Reasons for the early end of a run, a closed list; ``unknown`` if a source gives none."""

Event: TypeAlias = tuple[float, int, int, Any]
NamedEvent: TypeAlias = tuple[float, int, str, Any]
