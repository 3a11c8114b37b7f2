"""A daemon under load, attacks and kills, and an undisturbed one for comparison."""

import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider.journal import Journal
from tests.service.running.process import DaemonProcess
from tests.soak.attacks import ATTACKS, Attack
from tests.soak.ledgers import differences, recorded_events
from tests.soak.probes import Probe, Sample, loop_lag_s
from tests.soak.site import SoakSite

CALM: Final = "calm"
BEGINS: Final = "begins"
ENDS: Final = "ends"
NOT_PROBED: Final = (BEGINS, ENDS)
"""A daemon need not answer while it is killed and begins, or reads to the end and stops."""
LEAST_READ_WITHIN_S: Final = 300.0
SLOWEST_EVENTS_A_SECOND: Final = 1_000


class SoakReport(NamedTuple):
    """Observations of a soak.

    Attributes:
        samples: of the attacked daemon.
        attacks: how often each was tried, by name.
        lag_s: the longest delay of the event loop while it went on, by name; what was last.
        written: records of the steady log, by kind.
        recorded: events of that log in the attacked daemon's ledger, by kind.
        differences: between its ledger and the undisturbed daemon's.
    """

    samples: Sequence[Sample]
    attacks: Counter[str]
    lag_s: dict[str, float]
    written: Counter[str]
    recorded: Counter[str]
    differences: list[str]

    def during(self, name: str) -> list[Sample]:
        """The samples of one attack, by its name; `CALM` of the time between."""
        return [sample for sample in self.samples if sample.during == name]

    def calm_memory_mb(self) -> list[float]:
        """Median resident memory of each calm spell, in order."""
        return [calm_mb for calm_mb, _ in self.rises_mb()]

    def rises_mb(self) -> list[tuple[float, float]]:
        """Median resident memory of each calm spell, and the most from then to the next one."""
        rises: list[tuple[float, float]] = []
        for is_calm, spell in groupby(self.samples, lambda sample: sample.during == CALM):
            memory_mb = [sample.memory_mb for sample in spell]
            if is_calm:
                rises.append((statistics.median(memory_mb), max(memory_mb)))
            elif rises:
                calm_mb, most_mb = rises[-1]
                rises[-1] = calm_mb, max(most_mb, *memory_mb)
        return rises

    def lines(self) -> list[str]:
        """A line for each attack: slowest ``/healthz``, most memory, lag; one of calm memory."""
        return [
            f"{name}: {self.attacks[name]} times, {len(seen)} looks, slowest answer "
            f"{max(s.answer_s for s in seen):.2f} s, most memory "
            f"{max(s.memory_mb for s in seen):.0f} MB"
            + (f", loop lag {self.lag_s[name] * 1e3:.0f} ms" if name in self.lag_s else "")
            for name in dict.fromkeys(sample.during for sample in self.samples)
            if (seen := self.during(name))
        ] + ["calm memory, MB: " + " ".join(f"{mb:.0f}" for mb in self.calm_memory_mb())]


def soak(
    folder: Path, seconds: float, seed: int, attacks: Sequence[Attack] = ATTACKS
) -> SoakReport:
    """Attack a daemon in turn for so many seconds; then read the same logs undisturbed.

    Args:
        folder: empty; holds logs, states and the daemons' own logs.
        seconds: how long; every attack is tried once at least.
        seed: of the steady log.
        attacks: in this order, again and again.
    """
    tried: Counter[str] = Counter()
    lag_s: dict[str, float] = {}
    each_s = max(1.0, min(30.0, seconds / len(attacks) / 1.6))
    with SoakSite(folder, seed, seconds * 3 + 600) as site:
        daemon = DaemonProcess(site.config("attacked"))
        with daemon, Probe(lambda: daemon.url, lambda: _pid(daemon)) as probe:
            probe.during = CALM
            time.sleep(each_s)
            ends_s = time.monotonic() + seconds
            while not tried or time.monotonic() < ends_s:
                for attack in attacks:
                    name = probe.during = attack.__name__
                    daemon.text("/metrics")  # which tells the longest delay since it was asked last
                    attack(site, daemon, each_s)
                    lag = loop_lag_s(daemon.text("/metrics"))
                    lag_s[name] = max(lag, lag_s.get(name, 0.0))
                    tried[name] += 1
                    probe.during = BEGINS
                    daemon.kill()
                    daemon.start()
                    daemon.wait_until("ready", lambda _: bool(daemon.get("/readyz")["ready"]))
                    probe.during = CALM
                    time.sleep(each_s / 2)
            probe.during = ENDS
            site.finish()
            written = _written(site)
            _read_to_the_end(daemon, written)
        undisturbed = DaemonProcess(site.config("undisturbed"))
        with undisturbed:
            _read_to_the_end(undisturbed, written)
        attacked, spared = (one.config.parent / "state" for one in (daemon, undisturbed))
        with Journal(attacked / "journal.sqlite", read_only=True) as journal:
            events = recorded_events(journal)
        recorded = Counter({kind: n for (label, kind), n in events.items() if label == "jobs"})
        found = differences(attacked, spared)
    return SoakReport(probe.samples, tried, lag_s, written, recorded, found)


def _read_to_the_end(daemon: DaemonProcess, written: Counter[str]) -> None:
    """Start it if it does not run; stop it when all is read, and every job has ended."""
    if daemon.process is None:
        daemon.start()
    deadline_s = time.monotonic() + LEAST_READ_WITHIN_S + written.total() / SLOWEST_EVENTS_A_SECOND
    before: list[Any] = []
    while True:
        time.sleep(3.0)
        status = daemon.status()
        now = [adapter["events"] for adapter in status["adapters"]]
        read = sum(
            n for a in status["adapters"] if a["label"] == "jobs" for n in a["events"].values()
        )
        left = status["jobs"]["queued"] + status["jobs"]["running"]
        if now == before and read >= written.total() and not left:
            break
        assert time.monotonic() < deadline_s, f"{read} of {written.total()} read, {left} jobs left"
        before = now
    assert daemon.stop() == 0


def _written(site: SoakSite) -> Counter[str]:
    counts = json.loads(site.counts.read_text())
    return Counter({kind: n for kind, n in counts.items() if kind != "seconds"})


def _pid(daemon: DaemonProcess) -> int | None:
    running = daemon.process is not None and daemon.process.poll() is None
    return daemon.process.pid if daemon.process is not None and running else None
