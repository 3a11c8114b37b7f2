"""A job in the queue and the slot it runs on: each refers to the other."""

import math
from typing import Final, TypeAlias

from outrider_adapters.htcondor.pool_calls import ClassAd, ExprTree
from outrider_adapters.mock_condor.ads import at_time, number

JobId: TypeAlias = tuple[int, int]

_LEAST: Final = -(2**31)
_ORDER: Final = (
    ("PreJobPrio1", _LEAST),
    ("PreJobPrio2", _LEAST),
    ("JobPrio", 0),
    ("PostJobPrio1", _LEAST),
    ("PostJobPrio2", _LEAST),
)
"""Attributes by which jobs of one user are ordered, largest first, and their default values."""

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


class QueuedJob:
    """A job: its ad, and the hidden state of its run.

    Attributes:
        run_s: true run time, seconds; `math.inf`: it never ends.
        submitter: the submitter that its usage is charged to, such as ``alice@mock.local``.
        slot: the slot it runs on, or None.
        ends_s: when its run will end, while it runs.
        left_s: seconds left of the run when it was suspended.
        autocluster: number of its autocluster, 0 while unknown.
    """

    __slots__ = (
        "_sort_key",
        "ad",
        "autocluster",
        "ends_s",
        "id",
        "left_s",
        "run_s",
        "slot",
        "submitter",
    )

    def __init__(self, ad: ClassAd, submitter: str, run_s: float) -> None:
        self.id: JobId = (ad["ClusterId"], ad["ProcId"])
        self.ad = ad
        self.submitter = submitter
        self.run_s = run_s
        self.slot: Slot | None = None
        self.ends_s = math.inf
        self.left_s = 0.0
        self.autocluster = 0
        self._sort_key: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """Id of the job: ``cluster.proc``."""
        return f"{self.id[0]}.{self.id[1]}"

    @property
    def running_slot(self) -> "Slot":
        """The slot of a running job.

        Raises:
            LookupError: it is not running.
        """
        if self.slot is None:
            raise LookupError(f"job {self.name} does not run")
        return self.slot

    @property
    def status(self) -> int:
        """Value of ``JobStatus`` in the ad."""
        return int(self.ad["JobStatus"])

    def sort_key(self) -> tuple[float, ...]:
        """Sort key among jobs of one user: priorities, then time of submission, then id."""
        if self._sort_key is None:
            ranks = [-number(self.ad.get(name), unset) for name, unset in _ORDER]
            self._sort_key = (*ranks, self.ad["QDate"], *self.id)
        return self._sort_key

    def invalidate(self) -> None:
        """Drop cached values after a change of the ad."""
        self.autocluster = 0
        self._sort_key = None


class Slot:
    """A static slot of a machine.

    Attributes:
        ad: the startd's present ad; the collector has earlier copies.
        job: the job that runs on it, or None.
    """

    def __init__(self, ad: ClassAd) -> None:
        self.ad = ad
        self.job: QueuedJob | None = None

    @property
    def name(self) -> str:
        """Name of the slot, such as ``slot1@host``."""
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
        """Start a job on this slot."""
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
        """Release the slot after its job has left; it becomes ``Owner`` or ``Unclaimed``."""
        self.job = None
        for name in _CLAIM_ATTRIBUTES:
            del self.ad[name]
        self.settle(now_s)

    def settle(self, now_s: float) -> None:
        """Set the state without a job: ``Owner`` if ``START`` is false, else ``Unclaimed``."""
        self.enter(OWNER if self.refuses(None, now_s) else UNCLAIMED, IDLE, now_s)

    def refuses(self, job: ClassAd | None, now_s: float) -> bool:
        """Return whether ``START`` is false for this job; None: for every job."""
        start = ExprTree(at_time(repr(self.ad.lookup("Start")), now_s))
        return start.eval(scope=self.ad, target=job) is False
