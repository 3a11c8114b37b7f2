"""The part of HTCondor's configuration that the mock pool supports."""

from typing import Final

import msgspec

PRE_JOB_RANK: Final = (
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner is undefined)) - (100000 * Cpus) - Memory"
)
"""HTCondor's default ``NEGOTIATOR_PRE_JOB_RANK``: machines' ``RANK`` first, then small slots."""


class PoolConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a pool; times have HTCondor's defaults.

    Attributes:
        uid_domain: domain in the names of users (``UID_DOMAIN``).
        negotiator_interval_s: seconds between negotiation cycles (``NEGOTIATOR_INTERVAL``).
        update_interval_s: seconds between a startd's updates of the keyboard's idle time, its
            slots and its ads; changes are advertised at once (``UPDATE_INTERVAL``).
        priority_halflife_s: half-life of a user's past usage (``PRIORITY_HALFLIFE``).
        pre_job_rank: ``NEGOTIATOR_PRE_JOB_RANK``.
        most_history: number of past jobs that `Schedd.history` keeps, the newest; a real pool
            is limited likewise (``MAX_HISTORY_LOG``).
        superusers: users, without domain, who may change others' jobs and priorities
            (``QUEUE_SUPER_USERS``).
    """

    uid_domain: str = "mock.local"
    negotiator_interval_s: float = 60.0
    update_interval_s: float = 300.0
    priority_halflife_s: float = 86_400.0
    pre_job_rank: str = PRE_JOB_RANK
    most_history: int = 20_000
    superusers: tuple[str, ...] = ("condor",)
