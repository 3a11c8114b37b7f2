"""Real eviction storms: a few hosts throw off job after job. `survival` beside them, in shadow."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from outrider.api import MachineSpec, NamedEvent, PolicySettings, ReaderOptions
from outrider.api import events as ev
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.model.localtime import ZoneTime
from outrider.plugins.finding import stream
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_policies.rules.placements import RandomMatch
from outrider_policies.survival import Survival, SurvivalSettings
from tests.engine.ingest.streams import Quiet

HOST = MachineSpec(cluster="pool", cpus=8)
LOGS = ("utexas_texplore_no_sepa", "utexas_texplore_try_long")


class Storm:
    """A log of an HTCondor pool whose hosts are all known and look free, as black holes do."""

    def __init__(self, log: Path) -> None:
        reader = HTCondorLogReader(ReaderOptions(year=2014))
        self.told: list[NamedEvent] = reader.read(gzip.decompress(log.read_bytes()), True).events
        starts = [event for event in self.told if event[1] == ev.STARTED]
        self.hosts = sorted({event[3][0] for event in starts})
        self.starts_n = Counter(event[3][0] for event in starts)
        where: dict[str, str] = {}
        self.evictions: Counter[str] = Counter()
        for _, kind, job, extra in self.told:
            if kind == ev.STARTED:
                where[job] = extra[0]
            elif kind == ev.EVICTED:
                self.evictions[where[job]] += 1
        self.worst = [host for host, _ in self.evictions.most_common(3)]

    def would_start(self, runner: PolicyRunner) -> tuple[Counter[str], int]:
        """Return where the policy would have started jobs, and how often it would have kept one."""
        site = Site(ZoneTime("UTC"), [])
        decision_log, merger = Quiet(site), EventMerger(["log"], lambda name: HOST)
        engine = Engine(site, Accounting(ZoneTime("UTC")), [runner], merger, decision_log)
        begin_s, end_s = self.told[0][0] - 1.0, self.told[-1][0] + 1.0
        joined = [(begin_s, ev.JOINED, host, HOST) for host in self.hosts]
        merger.arrive("log", [*joined, *self.told])
        engine.feed(merger.seen("log", end_s))
        names = merger.normaliser.machine_names
        starts = Counter(names[row[4]] for row in decision_log.rows if row[3] == "start")
        return starts, sum(row[3:6:2] == ("defer", "too_dear") for row in decision_log.rows)


@pytest.mark.parametrize("log", LOGS)
def test_the_worst_hosts_are_avoided_and_the_others_are_not(shared: Path, log: str) -> None:
    path = shared / f"data/condor/{log}.log.gz"
    if not path.exists():
        pytest.skip(f"no {path.name}: the shared logs are not here")
    storm = Storm(path)
    survival = Survival(SurvivalSettings(), stream(0, "policy:survival"))
    starts, kept = storm.would_start(PolicyRunner(survival, False, 3600.0))
    chosen, evictions = starts.total(), sum(storm.evictions.values())
    assert chosen > 0.7 * evictions, f"{kept} of {evictions} evicted jobs would have been deferred"
    blind = RandomMatch(PolicySettings(), stream(0, "policy:random_match"))
    by_chance, _ = storm.would_start(PolicyRunner(blind, False, 3600.0))
    for host in storm.worst:
        assert starts[host] <= 10, f"{host} threw off {storm.evictions[host]} jobs"
        assert by_chance[host] >= 5, "a host that chance hardly meets is no trap"
    share = sum(starts[host] for host in storm.worst) / chosen
    assert share < 0.02, f"share of the worst three, of {chosen} starts"
