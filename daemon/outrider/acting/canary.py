"""The part of a site on which the mode `canary` acts. Pure code."""

import hashlib
from collections.abc import Container
from typing import Final, NamedTuple

_OF: Final = 1 << 32


class Canary(NamedTuple):
    """Jobs are in it by any one of these; with nothing named, none is.

    Attributes:
        clusters: machine groups: decisions to start a job there.
        users: names, as the events have them.
        vos: virtual organisations, accounting groups or accounts.
        fraction: of all jobs, 0 to 1; which ones is settled by their names, so it stays the same.
    """

    clusters: Container[str] = ()
    users: Container[str] = ()
    vos: Container[str] = ()
    fraction: float = 0.0

    def holds(self, job: str, user: str, vo: str, cluster: str | None) -> bool:
        """Whether a decision is about a job in it.

        Args:
            job: its name.
            user: whose it is.
            vo: of which virtual organisation.
            cluster: the machine group that was decided for; None: the job stays in the queue.

        >>> Canary(fraction=0.4).holds("12.0", "alice", "physics", None)
        False
        >>> Canary(vos=["physics"]).holds("12.0", "alice", "physics", None)
        True
        """
        return (
            (cluster is not None and cluster in self.clusters)
            or user in self.users
            or vo in self.vos
            or _place_of(job) < self.fraction
        )


def _place_of(job: str) -> float:
    """A number from 0 to below 1, of the job's name alone, evenly spread."""
    digest = hashlib.sha256(job.encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:4], "big") / _OF
