"""What of HTCondor's own configuration the mock pool has."""

import msgspec

from outrider_adapters.mock_condor.matchmaking import PRE_JOB_RANK


class PoolConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Knobs of a pool; the times are HTCondor's defaults.

    Attributes:
        uid_domain: what follows the ``@`` in names of users (``UID_DOMAIN``).
        negotiator_interval_s: from one negotiation cycle to the next (``NEGOTIATOR_INTERVAL``).
        update_interval_s: how often a startd reads the keyboard's idle time, looks at its slots
            and tells the collector; changes are told at once (``UPDATE_INTERVAL``).
        priority_halflife_s: of a user's past usage (``PRIORITY_HALFLIFE``).
        pre_job_rank: ``NEGOTIATOR_PRE_JOB_RANK``.
        most_history: how many jobs that left `Schedd.history` knows, the newest; a real pool
            forgets likewise (``MAX_HISTORY_LOG``).
        superusers: who may change the jobs of others and the priorities, without domain
            (``QUEUE_SUPER_USERS``).
    """

    uid_domain: str = "mock.local"
    negotiator_interval_s: float = 60.0
    update_interval_s: float = 300.0
    priority_halflife_s: float = 86_400.0
    pre_job_rank: str = PRE_JOB_RANK
    most_history: int = 20_000
    superusers: tuple[str, ...] = ("condor",)
