"""Watch an HTCondor pool through its Python bindings: the shared part of its adapters.

Jobs come from the event logs of the access points, machines and owners from the collector's ads,
and what a log lacks from the schedd's queue. Where no log can be read, jobs come from the queue.
"""

from outrider_adapters.htcondor.pool_calls import (
    AccessPoint,
    CollectorCalls,
    PoolCalls,
    ScheddCalls,
    edit_and_read_back,
)
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.questions import ask_why
from outrider_adapters.htcondor.real_pool import CondorAdapter
from outrider_adapters.htcondor.settings import WatchSettings

__all__ = [
    "AccessPoint",
    "CollectorCalls",
    "CondorAdapter",
    "PoolCalls",
    "PoolWatch",
    "ScheddCalls",
    "WatchSettings",
    "ask_why",
    "edit_and_read_back",
]
