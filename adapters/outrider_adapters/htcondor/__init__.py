"""Watching an HTCondor pool through its own calls: what every adapter of such a pool shares.

Jobs come from the event log, machines and owners from the collector's ads, and what a log lacks
from the schedd's queue.
"""

from outrider_adapters.htcondor.adapter import CondorAdapter
from outrider_adapters.htcondor.pool_calls import (
    CollectorCalls,
    PoolCalls,
    ScheddCalls,
    edit_and_read_back,
)
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.settings import WatchSettings

__all__ = [
    "CollectorCalls",
    "CondorAdapter",
    "PoolCalls",
    "PoolWatch",
    "ScheddCalls",
    "WatchSettings",
    "edit_and_read_back",
]
