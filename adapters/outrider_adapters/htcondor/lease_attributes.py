"""Attributes of jobs that Outrider sets for a while, and the configuration that heeds them.

``Requirements`` and ``Rank`` of every job get a part at submission (`LEASES_CONFIG`) that reads
them, and only while `UNTIL` is ahead. So when nobody renews that, a job is as its user submitted
it, on the clock of whoever matches it.
"""

from importlib import resources
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.bindings import quote

UNTIL: Final = "OutriderUntil"
HOLD: Final = "OutriderHold"
PIN: Final = "OutriderPin"
PREFER: Final = "OutriderPrefer"
BY: Final = "OutriderBy"
ALL: Final = (UNTIL, HOLD, PIN, PREFER, BY)
UNSET: Final = "undefined"

LEASES_CONFIG: Final = (
    resources.files("outrider_adapters.htcondor")
    .joinpath("outrider-leases.config")
    .read_text(encoding="utf-8")
)
"""What the administrator of an access point installs, with its explanation."""


class Wanted(NamedTuple):
    """What is to stand for a job.

    Attributes:
        hold: it stays in the queue.
        machine: on a machine of whose group it is to run; empty where it stays in the queue.
    """

    hold: bool
    machine: str = ""


def values_of(wanted: Wanted, cluster: str, pins: bool, by: str) -> dict[str, str]:
    """The attributes that say so, but for `UNTIL`, as ClassAd expressions.

    >>> values_of(Wanted(hold=True), "", pins=False, by="pool@host")[HOLD]
    'true'

    Args:
        wanted: what is to stand.
        cluster: the machine group; empty where the job stays in the queue.
        pins: no machine of another group will do.
        by: who sets them.
    """
    group = quote(cluster) if cluster else UNSET
    return {
        HOLD: "true" if wanted.hold else UNSET,
        PIN: group if pins else UNSET,
        PREFER: UNSET if pins else group,
        BY: quote(by),
    }


def heeds(ad: Any) -> bool:
    """Whether a job's requirements read the attributes."""
    return (
        UNTIL.lower() in str(ad.lookup("Requirements")).lower() if "Requirements" in ad else False
    )
