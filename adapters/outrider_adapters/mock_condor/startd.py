"""The startd of one machine: its slots, its owner, and their ads."""

from outrider_adapters.mock_condor.ads import at_time, number
from outrider_adapters.mock_condor.bindings import ClassAd, ExprTree
from outrider_adapters.mock_condor.machines import Machine
from outrider_adapters.mock_condor.queue import QueuedJob

OWNER, UNCLAIMED, CLAIMED = "Owner", "Unclaimed", "Claimed"
IDLE, BUSY, SUSPENDED = "Idle", "Busy", "Suspended"

_CLAIM_ATTRIBUTES = (
    "RemoteOwner",
    "RemoteUser",
    "JobId",
    "GlobalJobId",
    "JobStart",
    "PublicClaimId",
)


class Slot:
    """A static slot.

    Attributes:
        ad: the startd's present ad; the collector has earlier copies.
        job: the job that runs on it, or None.
    """

    def __init__(self, ad: ClassAd) -> None:
        self.ad = ad
        self.job: QueuedJob | None = None

    @property
    def name(self) -> str:
        """Such as ``slot1@host``."""
        return str(self.ad["Name"])

    @property
    def weight(self) -> float:
        """``SlotWeight``: the slot's weight in fair share."""
        return number(self.ad.eval("SlotWeight"), 1.0)

    def enter(self, state: str, activity: str, now_s: float) -> None:
        """Change state or activity; add the time in the old ones to their ``TotalTime...``."""
        old = (self.ad["State"], self.ad["Activity"])
        if old == (state, activity):
            return
        total = f"TotalTime{old[0]}{old[1]}"
        spent_s = int(now_s) - self.ad["EnteredCurrentActivity"]
        self.ad[total] = self.ad.get(total, 0) + spent_s
        self.ad["State"], self.ad["Activity"] = state, activity
        self.ad["EnteredCurrentActivity"] = int(now_s)
        if old[0] != state:
            self.ad["EnteredCurrentState"] = int(now_s)

    def claim(self, job: QueuedJob, now_s: float) -> None:
        """A job starts on this slot."""
        self.job = job
        self.ad.update(
            {
                "RemoteOwner": job.submitter,
                "RemoteUser": job.ad["User"],
                "JobId": job.name,
                "GlobalJobId": job.ad["GlobalJobId"],
                "JobStart": int(now_s),
                "JobStarts": self.ad["JobStarts"] + 1,
                "PublicClaimId": f"{self.ad['MyAddress']}#{int(now_s)}#{self.ad['JobStarts']}#...",
            }
        )
        self.enter(CLAIMED, BUSY, now_s)

    def release(self, now_s: float) -> None:
        """The job has left; the slot becomes ``Owner`` or ``Unclaimed``."""
        self.job = None
        for name in _CLAIM_ATTRIBUTES:
            del self.ad[name]
        self.settle(now_s)

    def settle(self, now_s: float) -> None:
        """Set the state without a job: ``Owner`` if ``START`` is false, else ``Unclaimed``."""
        self.enter(OWNER if self.refuses(None, now_s) else UNCLAIMED, IDLE, now_s)

    def refuses(self, job: ClassAd | None, now_s: float) -> bool:
        """Whether ``START`` is false for this job; None: for every job."""
        start = ExprTree(at_time(repr(self.ad.lookup("Start")), now_s))
        return start.eval(scope=self.ad, target=job) is False


class Startd:
    """The slots of a machine, and whether its owner is logged in."""

    def __init__(self, machine: Machine, now_s: float) -> None:
        self.name = machine.name
        self._owner_here = False
        self._owner_seen_s = now_s
        self.slots = [Slot(_slot_ad(machine, n, now_s)) for n in range(1, machine.slots + 1)]
        self.evaluate(now_s)

    def owner_came(self, now_s: float) -> None:
        """The owner logs in."""
        self._owner_here = True
        self.publish("OwnerActive", "true", now_s)

    def owner_went(self, now_s: float) -> None:
        """The owner logs out."""
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
        """Running jobs for which ``START`` has become false."""
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
