"""The ads of the daemons that a client can locate: the schedd and the negotiator."""

from typing import Final

from outrider_adapters.htcondor.bindings import AdType, ClassAd
from outrider_adapters.mock_condor.matchmaking import Cycle
from outrider_adapters.mock_condor.queue import JobQueue

_VERSION: Final = "$CondorVersion: 25.14.1 2026-09-24 BuildID: MockPool $"


def schedd_name(domain: str) -> str:
    """What the schedd of a pool is called, here and in the ids of its jobs."""
    return f"schedd@{domain}"


def daemon_ads(domain: str, queue: JobQueue, cycle: Cycle, now_s: float) -> dict[AdType, ClassAd]:
    """Up-to-date ads of both daemons.

    Args:
        domain: the pool's domain, also the host name of both.
        queue: the schedd's queue.
        cycle: the negotiator's last cycle.
        now_s: the pool's time.
    """
    common = {
        "Machine": domain,
        "MyAddress": "<127.0.0.1:0?sock=mock>",
        "CondorVersion": _VERSION,
        "MyCurrentTime": int(now_s),
        "LastHeardFrom": int(now_s),
    }
    schedd = {
        "MyType": "Scheduler",
        "Name": schedd_name(domain),
        **{f"Total{state}Jobs": count for state, count in queue.count().items()},
    }
    negotiator = {
        "MyType": "Negotiator",
        "Name": f"negotiator@{domain}",
        "LastNegotiationCycleEnd0": int(cycle.end_s),
        "LastNegotiationCycleCandidateSlots0": cycle.slots,
        "LastNegotiationCycleNumIdleJobs0": cycle.considered,
        "LastNegotiationCycleMatches0": cycle.matches,
    }
    return {
        AdType.Schedd: ClassAd({**common, **schedd}),
        AdType.Negotiator: ClassAd({**common, **negotiator}),
    }
