"""Attributes of jobs that Outrider sets for a while, and the configuration that heeds them.

``Requirements``, ``Rank`` and ``PreJobPrio1`` of every job get a part at submission
(`LEASES_CONFIG`) that reads them, and only while `UNTIL` is ahead. So when nobody renews that, a
job is as its user submitted it, on the clock of whoever matches it.
"""

from importlib import resources
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.bindings import quote

UNTIL: Final = "OutriderUntil"
HOLD: Final = "OutriderHold"
HELD: Final = "OutriderHeld"
PIN: Final = "OutriderPin"
PREFER: Final = "OutriderPrefer"
FIRST: Final = "OutriderFirst"
BY: Final = "OutriderBy"
ALL: Final = (UNTIL, HOLD, HELD, PIN, PREFER, FIRST, BY)
UNSET: Final = "undefined"
OWN_HOLD: Final = "Outrider keeps it in the queue for a while"
"""The reason of a hold by `HELD`."""

LEASES_CONFIG: Final = (
    resources.files("outrider_adapters.htcondor")
    .joinpath("outrider-leases.config")
    .read_text(encoding="utf-8")
)
"""What the administrator of an access point installs, with its explanation."""


class LeaseTerms(NamedTuple):
    """How leases of a pool are made.

    Attributes:
        by: who sets them: one name for each Outrider that may act on the pool.
        lease_s: how long what is set lasts.
        cluster_attribute: of slot ads, names a machine's group.
        pins: for a job that is to start no machine of another group will do; else it prefers those
            of its group.
        first: such a job comes before the others of its user.
        shows: a job that stays in the queue is shown as held.
    """

    by: str
    lease_s: float
    cluster_attribute: str = "MachineCluster"
    pins: bool = False
    first: bool = False
    shows: bool = False


class Wanted(NamedTuple):
    """What is to stand for a job.

    Attributes:
        hold: it stays in the queue.
        machine: on a machine of whose group it is to run; empty where it stays in the queue.
    """

    hold: bool
    machine: str = ""


def values_of(wanted: Wanted, cluster: str, terms: LeaseTerms) -> dict[str, str]:
    """The attributes that say so, but for `UNTIL`, as ClassAd expressions.

    >>> values_of(Wanted(hold=True), "", LeaseTerms("pool@host", 300.0))[HOLD]
    'true'

    Args:
        wanted: what is to stand.
        cluster: the machine group; empty where the job stays in the queue.
        terms: how leases are made here.
    """
    group = quote(cluster) if cluster else UNSET
    return {
        HOLD: _true_if(wanted.hold),
        HELD: _true_if(wanted.hold and terms.shows),
        PIN: group if terms.pins else UNSET,
        PREFER: UNSET if terms.pins else group,
        FIRST: _true_if(terms.first and not wanted.hold),
        BY: quote(terms.by),
    }


def _true_if(holds: bool) -> str:
    return "true" if holds else UNSET


def heeds(ad: Any) -> bool:
    """Whether a job's requirements read the attributes."""
    return (
        UNTIL.lower() in str(ad.lookup("Requirements")).lower() if "Requirements" in ad else False
    )
