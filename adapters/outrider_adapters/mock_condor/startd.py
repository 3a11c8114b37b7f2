"""The startd of one machine: its slots, its owner, and their ads."""

from outrider_adapters.htcondor.bindings import ClassAd, ExprTree
from outrider_adapters.mock_condor.claims import IDLE, UNCLAIMED, QueuedJob, Slot
from outrider_adapters.mock_condor.machines import Machine


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
