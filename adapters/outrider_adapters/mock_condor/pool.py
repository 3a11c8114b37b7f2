"""A whole HTCondor pool in one object, with its clients and its hidden state."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TextIO

from outrider_adapters.htcondor.pool_calls import (
    AdType,
    ClassAd,
    ExprTree,
    SubmitResult,
)
from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.ads import PoolConfig
from outrider_adapters.mock_condor.claims import IDLE, UNCLAIMED, QueuedJob, Slot
from outrider_adapters.mock_condor.collector import (
    AdStore,
    Collector,
    Machine,
    daemon_ads,
    schedd_name,
)
from outrider_adapters.mock_condor.event_log import EventLog
from outrider_adapters.mock_condor.faults import Faults, Transport
from outrider_adapters.mock_condor.matchmaking import Cycle, Matchmaker
from outrider_adapters.mock_condor.queue import Autoclusters, JobQueue
from outrider_adapters.mock_condor.runs import EVICTED_CODE, Runs
from outrider_adapters.mock_condor.schedd import Actions, Schedd
from outrider_adapters.mock_condor.submitting import job_ad, sleeping_s, submitter_of

# -- startd ----------------------------------------------------------------------------------------
# The startd of one machine: its slots, its owner, and their ads.


class Startd:
    """The slots of a machine, and whether its owner is logged in."""

    def __init__(self, machine: Machine, now_s: float) -> None:
        self.name = machine.name
        self._owner_here = False
        self._owner_seen_s = now_s
        self.slots = [Slot(_slot_ad(machine, n, now_s)) for n in range(1, machine.slots + 1)]
        self.evaluate(now_s)

    def owner_came(self, now_s: float) -> None:
        """Log the owner in."""
        self._owner_here = True
        self.publish("OwnerActive", "true", now_s)

    def owner_went(self, now_s: float) -> None:
        """Log the owner out."""
        self._owner_here = False
        self._owner_seen_s = now_s
        self.publish("OwnerActive", "false", now_s)

    def publish(self, attribute: str, value: str, now_s: float) -> None:
        """Set an attribute of all slots, and update the states of idle ones."""
        for slot in self.slots:
            slot.ad[attribute] = ExprTree(value)
        self.evaluate(now_s)

    def evaluate(self, now_s: float) -> None:
        """Update ``KeyboardIdle`` of all slots, and the states of those without a job."""
        idle_s = 0 if self._owner_here else int(now_s - self._owner_seen_s)
        for slot in self.slots:
            slot.ad["KeyboardIdle"] = slot.ad["ConsoleIdle"] = idle_s
            if slot.job is None:
                slot.settle(now_s)

    def jobs_to_evict(self, now_s: float) -> list[QueuedJob]:
        """Return the running jobs for which ``START`` has become false."""
        return [slot.job for slot in self.slots if slot.job and slot.refuses(slot.job.ad, now_s)]


def _slot_ad(machine: Machine, number: int, now_s: float) -> ClassAd:
    name = f"slot{number}@{machine.name}"
    ad = ClassAd(
        {
            "MyType": "Machine",
            "Name": name,
            "Machine": machine.name,
            "MyAddress": f"<127.0.0.1:0?alias={machine.name}>",
            "MachineCluster": machine.cluster,
            "SlotID": number,
            "SlotType": "Static",
            "SlotTypeID": 1,
            "TotalSlots": machine.slots,
            "Cpus": machine.cpus,
            "TotalCpus": float(machine.cpus * machine.slots),
            "Memory": machine.memory_mb,
            "TotalMemory": machine.memory_mb * machine.slots,
            "Disk": 100_000_000,
            "Arch": "X86_64",
            "OpSys": "LINUX",
            "HasFileTransfer": True,
            "CurrentRank": 0.0,
            "Start": ExprTree(machine.start),
            "Requirements": ExprTree("START"),
            "Rank": ExprTree(machine.rank),
            "SlotWeight": ExprTree("Cpus"),
            "OwnerActive": False,
            "State": UNCLAIMED,
            "Activity": IDLE,
            "EnteredCurrentState": int(now_s),
            "EnteredCurrentActivity": int(now_s),
            "DaemonStartTime": int(now_s),
            "JobStarts": 0,
        }
    )
    for attribute, expression in machine.attributes.items():
        ad[attribute] = ExprTree(expression)
    return ad


# -- negotiator ------------------------------------------------------------------------------------
# The client of the negotiator.

_NO_ANSWER = "Unable to connect to the negotiator"


class Negotiator:
    """A client with the calls of ``htcondor2.Negotiator``.

    Changes by a client without rights are ignored without an error: the real negotiator was
    observed to return None too.
    """

    def __init__(
        self, accountant: Accountant, transport: Transport, now: Callable[[], float], may_set: bool
    ) -> None:
        self._accountant = accountant
        self._transport = transport
        self._now = now
        self._may_set = may_set

    def getPriorities(self, rollup: bool = False) -> list[ClassAd]:  # noqa: N802  # htcondor2's name
        """Return one accounting ad per submitter: Name, Priority (effective), PriorityFactor, ...

        Raises:
            HTCondorException: the negotiator does not answer.
        """
        self._transport.call(_NO_ANSWER)
        return self._accountant.ads(self._now())

    def setPriority(self, user: str, priority: float) -> None:  # noqa: N802
        """Set a user's real priority.

        Raises:
            ValueError: the user has no domain, or the value is negative.
        """
        if priority < 0:
            raise ValueError("User priority must be non-negative")
        if self._may(user):
            self._accountant.set_real_priority(user, priority, self._now())

    def setFactor(self, user: str, factor: float) -> None:  # noqa: N802
        """Set a user's priority factor.

        Raises:
            ValueError: the user has no domain, or the factor is below 1.
        """
        if factor < 1:
            raise ValueError("Priority factors must be >= 1")
        if self._may(user):
            self._accountant.set_factor(user, factor, self._now())

    def setCeiling(self, user: str, ceiling: int) -> None:  # noqa: N802
        """Set the most slots that the user may have.

        Raises:
            ValueError: the user has no domain, or the ceiling is negative.
        """
        if ceiling <= -1:
            raise ValueError("Ceiling must be greater than -1.")
        if self._may(user):
            self._accountant.set_ceiling(user, int(ceiling), self._now())

    def _may(self, user: str) -> bool:
        if "@" not in user:
            raise ValueError("You must specify the submitter (user@uid.domain)")
        self._transport.call(_NO_ANSWER)
        return self._may_set


# -- pool ------------------------------------------------------------------------------------------

_CHARGES: Final = frozenset({"acctgroup", "acctgroupuser", "accountinggroup"})


class MockPool:
    """A schedd, a collector, a negotiator and their machines, without daemons or sockets.

    Its clock advances only in `advance`. Not thread-safe: call everything, the clients included,
    from one thread at a time.

    It has static slots, the vanilla universe and no preemption between users. Evictions take no
    time, a claim ends with its job, and an edit is seen by the next negotiation cycle.

    Args:
        machines: machines at the beginning; `join` adds more.
        now_s: the clock, Unix seconds.
        rng: source of all random numbers.
        event_log: an open text file for HTCondor's event log (UTC), flushed after every call that
            writes; None: no log.
        config: configuration of the pool; None: HTCondor's defaults.
        faults: faults to inject for clients; None: none.
        sleep: blocks for seconds (`Faults.answer_delay_s`), as real calls do.

    Attributes:
        now_s: the clock.
    """

    def __init__(
        self,
        machines: Iterable[Machine],
        *,
        now_s: float,
        rng: random.Random,
        event_log: TextIO | None = None,
        config: PoolConfig | None = None,
        faults: Faults | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.now_s = now_s
        self.config = config or PoolConfig()
        self.transport = Transport(
            faults or Faults(), random.Random(rng.random()), self._now, sleep
        )
        self.log = EventLog(event_log, self.transport.repeats_record)
        self.queue = JobQueue(self.config.most_history)
        self._ad_store = AdStore(self.transport.faults.stale_s)
        self._startds: dict[str, Startd] = {}
        self._accountant = Accountant(self.config.priority_halflife_s)
        self._autoclusters = Autoclusters()
        self._runs = Runs(self.queue, self._accountant, self.log)
        self.actions = Actions(self.queue, self._runs, self.log, self._advertise)
        self._rank = ExprTree(self.config.pre_job_rank)
        self._matchmaker = Matchmaker(
            self.queue, self._autoclusters, self._accountant, self._runs, self._rank, rng
        )
        self._last_cycle = Cycle(now_s, 0, 0, 0)
        self._next_cycle_s = now_s + self.config.negotiator_interval_s
        self._next_update_s = now_s + self.config.update_interval_s
        for machine in machines:
            self.join(machine)

    @property
    def schedd_name(self) -> str:
        """Name of the schedd, as in its ad."""
        return schedd_name(self.config.uid_domain)

    # Clients, with the same calls as those of htcondor2.

    def schedd(self, user: str) -> Schedd:
        """Return a client of the schedd with the identity of this user (without domain)."""
        return Schedd(self, user)

    def collector(self) -> Collector:
        """Return a client of the collector."""
        return Collector(self._ad_store, self._daemon_ads, self.transport, self._now)

    def negotiator(self, user: str) -> Negotiator:
        """Return a client of the negotiator with the identity of this user."""
        may_set = user in self.config.superusers
        return Negotiator(self._accountant, self.transport, self._now, may_set)

    # External events: called by the script of the pool.

    def submit(
        self, user: str, description: Mapping[str, str], run_s: float | None, count: int = 1
    ) -> SubmitResult:
        """Submit jobs as this user.

        Args:
            user: without domain.
            description: submit commands, such as ``{"executable": "/bin/work"}``.
            run_s: true run time, which no client sees before the job ends; `math.inf`: they never
                end by themselves; None: the argument of ``sleep``.
            count: number of jobs.

        Raises:
            HTCondorException: an unsupported description (see `submitting.job_ad`).
        """
        cluster, domain = self.queue.next_cluster(), self.config.uid_domain
        ads = [job_ad(description, user, domain, cluster, n, self.now_s) for n in range(count)]
        runs_s = [sleeping_s(ad) if run_s is None else run_s for ad in ads]
        for ad, job_run_s in zip(ads, runs_s, strict=True):
            self.queue.enter(QueuedJob(ad, submitter_of(ad, domain), job_run_s))
            self.log.submitted(self.now_s, ad)
        self.log.flush()
        return SubmitResult(cluster, 0, count, ads[0] if ads else ClassAd(), None)

    def remove(self, job: str) -> None:
        """Remove ``"cluster.proc"`` as its user; no effect if it has left already."""
        cluster, proc = job.split(".")
        found = self.queue.jobs.get((int(cluster), int(proc)))
        if found is not None:
            words = f"via condor_rm (by user {found.ad['Owner']})"
            self.actions.remove(found, words, self.now_s)
            self.log.flush()

    def owner_came(self, machine: str) -> None:
        """Log the owner in: ``OwnerActive``, ``KeyboardIdle`` 0, and jobs may be evicted."""
        self._startds[machine].owner_came(self.now_s)
        self._update_startd(self._startds[machine])

    def owner_went(self, machine: str) -> None:
        """Log the owner out; ``KeyboardIdle`` begins to grow."""
        self._startds[machine].owner_went(self.now_s)
        self._update_startd(self._startds[machine])

    def publish(self, machine: str, attribute: str, value: str) -> None:
        """Set an attribute of the machine's slots to an expression, as a startd cron job would.

        A sleeping machine has ``Offline = true``: no job is matched to it.
        """
        self._startds[machine].publish(attribute, value, self.now_s)
        self._update_startd(self._startds[machine])

    def join(self, machine: Machine) -> None:
        """Add a machine to the pool, without an owner logged in."""
        if machine.name in self._startds:
            raise ValueError(f'machine "{machine.name}" is in the pool already')
        startd = self._startds[machine.name] = Startd(machine, self.now_s)
        self._update_startd(startd)

    def leave(self, machine: str) -> None:
        """Shut a machine down gracefully: its jobs are evicted, its ads invalidated."""
        startd = self._startds.pop(machine)
        for slot in startd.slots:
            if slot.job is not None:
                self._runs.evict(slot.job, EVICTED_CODE, self.now_s)
            self._ad_store.advertise(self.now_s, slot.name, None)
        self.log.flush()

    def negotiate(self) -> int:
        """Run a negotiation cycle now; returns the number of jobs started."""
        slots = self.slots()
        self._last_cycle = self._matchmaker.cycle(slots, self.now_s)
        self._next_cycle_s = self.now_s + self.config.negotiator_interval_s
        if self._last_cycle.matches:
            for slot in slots:
                if slot.job is not None and slot.ad["JobStart"] == int(self.now_s):
                    self._advertise(slot, self.now_s)
        self.log.flush()
        return self._last_cycle.matches

    def request_cycle(self) -> None:
        """Schedule a negotiation cycle for the next `advance`."""
        self._next_cycle_s = self.now_s

    def advance(self, until_s: float) -> None:
        """Advance the clock: runs end, startds update their ads, negotiation cycles take place.

        At equal times they happen in this order.

        Raises:
            ValueError: `until_s` is in the past.
        """
        if until_s < self.now_s:
            raise ValueError(f"it is {self.now_s} already; time does not go back to {until_s}")
        while True:
            end_s = self._runs.next_end_s()
            next_s = min(end_s, self._next_update_s, self._next_cycle_s)
            if next_s > until_s:
                break
            self.now_s = max(next_s, self.now_s)
            if next_s == end_s:
                self._advertise(self._runs.finish_next(self.now_s), self.now_s)
            elif next_s == self._next_update_s:
                self._next_update_s += self.config.update_interval_s
                for startd in self._startds.values():
                    startd.evaluate(self.now_s)
                    self._update_startd(startd)
            else:
                self.negotiate()
        self.now_s = until_s
        self.log.flush()

    # Used by the pool's parts.

    def slots(self) -> list[Slot]:
        """Return every slot of every machine."""
        return [slot for startd in self._startds.values() for slot in startd.slots]

    def set_job_attribute(self, job: QueuedJob, attribute: str, value: ExprTree) -> None:
        """Set an attribute of a job; update its autocluster and submitter."""
        job.ad[attribute] = value
        job.invalidate()
        if attribute.lower() in _CHARGES:
            self._runs.charge(job, submitter_of(job.ad, self.config.uid_domain), self.now_s)

    def _update_startd(self, startd: Startd) -> None:
        """Evict jobs that the startd refuses now, and advertise its slots."""
        for job in startd.jobs_to_evict(self.now_s):
            self._runs.evict(job, EVICTED_CODE, self.now_s)
        for slot in startd.slots:
            self._autoclusters.read_slot(slot.ad, self._rank)
            self._advertise(slot, self.now_s)
        self.log.flush()

    def _advertise(self, slot: Slot, now_s: float) -> None:
        self._ad_store.advertise(now_s, slot.name, slot.ad)

    def _now(self) -> float:
        return self.now_s

    def _daemon_ads(self) -> dict[AdType, ClassAd]:
        return daemon_ads(self.config.uid_domain, self.queue, self._last_cycle, self.now_s)
