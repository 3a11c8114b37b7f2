"""Shadow beside a real pool of two access points: 200 jobs, owners that return, nothing changed.

Two daemons watch: one reads both event logs, the other has the queues alone.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from outrider.journal import Journal
from outrider.model.events import (
    COMPLETED,
    EVICTED,
    KIND_NAMES,
    RELEASED,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from tests.peers.pool import HTCondorPool, missing_reason
from tests.peers.presence import require_peer
from tests.peers.shadow_beside_htcondor.two_access_points import (
    ALL,
    LOGS,
    MACHINES,
    SCHEDDS,
    SECOND,
    ads_of,
    beside,
    differ,
    dump,
    evictions,
    looked,
    submit,
)

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

RETURNING: Final = ("m1", "m4", "m5")


class Site(NamedTuple):
    """The pool after all of it, and what the daemons recorded.

    Attributes:
        pool: of two access points.
        journals: of the daemons, by what they read.
        figures: the last status of each.
        ads: of all jobs, as the pool's own history has them, by name.
    """

    pool: HTCondorPool
    journals: dict[str, Path]
    figures: dict[str, dict[str, Any]]
    ads: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A real pool with two access points, and a daemon in shadow."""
    require_peer("HTCondor pool", missing_reason())
    folder = tmp_path_factory.mktemp("shadow")
    with HTCondorPool(folder / "pool", MACHINES, SECOND) as pool:
        schedds = "condor_status", "-schedd", "-af", "Name"
        pool.wait_until("two schedds", lambda: len(pool.run("root", *schedds).split()) == 2)
        submit(pool)
        daemons = {name: beside(pool, folder, name) for name in ("event logs", "queues alone")}
        before = dump(pool)
        with daemons["event logs"] as one, daemons["queues alone"] as other:
            for daemon in (one, other):
                daemon.wait_until("all jobs", lambda s: s["jobs"]["held"] == ALL)
                looked(daemon, before)
            differ(before, dump(pool))
            for schedd in SCHEDDS:
                pool.run("root", "condor_release", "-name", schedd, "-all")
            for machine in RETURNING:
                pool.evict(machine, partial(evictions, pool))
            one.wait_until("owners", lambda s: s["evictions"]["owner"] >= len(RETURNING))
            for machine in RETURNING:
                pool.owner_leaves(machine)
            figures = {
                name: daemon.wait_until("all ends", lambda s: s["jobs"]["completed"] == ALL)
                for name, daemon in daemons.items()
            }
            ads = [
                ad for schedd in SCHEDDS for ad in ads_of(pool, "condor_history", "-name", schedd)
            ]
            journals = {name: folder / name / "state" / "journal.sqlite" for name in daemons}
            named = {ad["GlobalJobId"].rpartition("#")[0]: ad for ad in ads}
            yield Site(pool, journals, figures, named)
            assert one.stop() == 0
            assert other.stop() == 0


def told(journal: Path) -> dict[str, list[NamedEvent]]:
    """Return the events of each job in a journal."""
    found: dict[str, list[NamedEvent]] = {}
    with Journal(journal, read_only=True) as opened:
        for _, _, event in opened.inputs_after(0):
            if "#" in event[2]:
                found.setdefault(event[2], []).append(event)
    return found


CODES: Final = {SUBMITTED: "000", STARTED: "001", EVICTED: "004", COMPLETED: "005",
                RELEASED: "013"}  # fmt: skip
ISO: Final = "%Y-%m-%d %H:%M:%S.%f"
RECORD: Final = re.compile(r"^(\d{3}) \((\d+)\.(\d+)\.\d+\) (\S+ \S+)Z ", re.MULTILINE)
BOTH: Final = pytest.mark.parametrize("source", ["event logs", "queues alone"])


@BOTH
def test_every_submission_start_eviction_and_end_is_told_once(site: Site, source: str) -> None:
    assert len(site.ads) == ALL
    seen, refused = told(site.journals[source]), refused_claims(site)
    assert seen.keys() == site.ads.keys()
    for job, ad in site.ads.items():
        counted = Counter(KIND_NAMES[event[1]] for event in seen[job])
        runs = ad["NumShadowStarts"]
        if source == "event logs":
            runs -= refused[job]
        assert counted - Counter({"changed": counted["changed"]}) == Counter(
            submitted=1, held=1, released=1, started=runs, evicted=runs - 1, completed=1
        ), job
    lost = sum(ad["NumShadowStarts"] - 1 for ad in site.ads.values())
    assert lost >= len(RETURNING)
    evictions = Counter(site.figures[source]["evictions"])
    if source == "event logs":
        assert +evictions == Counter(owner=lost - refused.total())
    else:  # the slot of a refused start may already be its owner's
        assert (+evictions).keys() <= {"owner", "failed_start"}
        assert evictions["failed_start"] <= refused.total()
        assert evictions.total() == lost
    assert evictions["owner"] >= len(RETURNING)


def refused_claims(site: Site) -> Counter[str]:
    """Return how often each job was refused by the machine that it was to start on.

    An owner may return at just that moment. The queue counts that as a start, and the event log has
    no record of it. The shadows' own log has as many.
    """
    found = Counter({job: ad["NumShadowStarts"] for job, ad in site.ads.items()})
    for schedd, log in LOGS.items():
        text = (site.pool.run_dir / "log" / log).read_text()
        for code, cluster, proc, _ in RECORD.findall(text):
            found[f"{schedd}#{int(cluster)}.{int(proc)}"] -= code == CODES[STARTED]
    shadows = (site.pool.run_dir / "log" / "ShadowLog").read_text()
    assert found.total() <= shadows.count(" was REFUSED\n")
    assert min(found.values()) >= 0
    return found


def test_by_the_queues_every_time_is_the_pools_own_to_the_second(site: Site) -> None:
    seen = told(site.journals["queues alone"])
    for job, ad in site.ads.items():
        at_s = times(seen[job])
        assert at_s[SUBMITTED] == [ad["QDate"]]
        assert at_s[STARTED][0] == ad["JobStartDate"]
        assert at_s[STARTED][-1] == ad["JobCurrentStartDate"]
        assert at_s[COMPLETED] == [ad["CompletionDate"]]
    waits = [ad["JobStartDate"] - ad["QDate"] for ad in site.ads.values()]
    mean = site.figures["queues alone"]["wait_s"]["all"]
    assert (mean["n"], mean["mean"]) == (ALL, pytest.approx(sum(waits) / ALL))


def test_by_the_logs_every_time_is_that_of_its_record(site: Site) -> None:
    seen = told(site.journals["event logs"])
    kept = Counter(
        (job, CODES[event[1]], f"{dt.datetime.fromtimestamp(event[0], dt.UTC):{ISO}}"[:-3])
        for job, events in seen.items()
        for event in events
        if event[1] in CODES
    )
    written = Counter[tuple[str, str, str]]()
    for schedd, log in LOGS.items():
        text = (site.pool.run_dir / "log" / log).read_text()
        for code, cluster, proc, at in RECORD.findall(text):
            written[f"{schedd}#{int(cluster)}.{int(proc)}", code, at] += code in CODES.values()
    assert kept == +written
    for job, ad in site.ads.items():
        at_s = times(seen[job])
        # a record follows what it tells, after as long as that takes on a busy machine
        assert ad["QDate"] <= at_s[SUBMITTED][0], job
        assert ad["JobStartDate"] <= at_s[STARTED][0], job
        assert ad["JobCurrentStartDate"] <= at_s[STARTED][-1] < ad["CompletionDate"] + 1.0, job


def times(events: list[NamedEvent]) -> dict[int, list[float]]:
    """The times of each kind of event."""
    found: dict[int, list[float]] = {}
    for event in events:
        found.setdefault(event[1], []).append(event[0])
    return found
