"""A daemon under load and attack, with kills between, and beside it one that nobody disturbed."""

import json
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider.ledger import Journal
from outrider.model.events import KIND_NAMES, TICK
from tests.service.running.process import DaemonProcess
from tests.soak.attacks import ATTACKS, Attack
from tests.soak.probes import Probe, Sample
from tests.soak.site import SoakSite

CALM: Final = "calm"
BEGINS: Final = "begins"
ENDS: Final = "ends"
NOT_PROBED: Final = (BEGINS, ENDS)
"""A daemon need not answer while it is killed and begins, or reads to the end and stops."""
READ_WITHIN_S: Final = 300.0

Row = tuple[Any, ...]


class Ledger(NamedTuple):
    """What a daemon recorded of a site, without what the wall clock says of it.

    Attributes:
        events: by adapter and kind.
        decisions, outcomes: in order.
        set_aside: by adapter and reason.
    """

    events: Counter[tuple[str, str]]
    decisions: list[Row]
    outcomes: list[Row]
    set_aside: Counter[tuple[str, str]]


class SoakReport(NamedTuple):
    """What a soak saw.

    Attributes:
        samples: of the attacked daemon.
        attacks: how often each was tried, by name.
        written: records of the steady log, by kind.
        attacked, undisturbed: the ledgers of the two daemons.
    """

    samples: Sequence[Sample]
    attacks: Counter[str]
    written: Counter[str]
    attacked: Ledger
    undisturbed: Ledger

    def during(self, name: str) -> list[Sample]:
        """The samples of one attack, by its name; `CALM` of the time between."""
        return [sample for sample in self.samples if sample.during == name]

    def calm_memory_mb(self) -> list[float]:
        """Median resident memory of each calm spell, in order."""
        spells: list[list[float]] = [[]]
        for sample in self.samples:
            if sample.during == CALM:
                spells[-1].append(sample.memory_mb)
            elif spells[-1]:
                spells.append([])
        return [statistics.median(spell) for spell in spells if spell]

    def lines(self) -> list[str]:
        """A line for each attack: the slowest answer of ``/healthz``, the most memory."""
        return [
            f"{name}: {self.attacks[name]} times, {len(seen)} looks, slowest answer "
            f"{max(s.answer_s for s in seen):.2f} s, most memory "
            f"{max(s.memory_mb for s in seen):.0f} MB"
            for name in dict.fromkeys(sample.during for sample in self.samples)
            if (seen := self.during(name))
        ]


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
    each_s = max(1.0, min(30.0, seconds / len(attacks) / 1.6))
    with SoakSite(folder, seed, seconds * 3 + 600) as site:
        daemon = DaemonProcess(site.config("attacked"))
        with daemon, Probe(lambda: daemon.url, lambda: _pid(daemon)) as probe:
            probe.during = CALM
            time.sleep(each_s)
            ends_s = time.monotonic() + seconds
            while not tried or time.monotonic() < ends_s:
                for attack in attacks:
                    probe.during = attack.__name__
                    attack(site, daemon, each_s)
                    tried[attack.__name__] += 1
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
        ledgers = [ledger_of(one.config.parent / "state") for one in (daemon, undisturbed)]
    return SoakReport(probe.samples, tried, written, *ledgers)


def ledger_of(state: Path) -> Ledger:
    """The ledger in a state directory."""
    with Journal(state / "journal.sqlite", read_only=True) as journal:
        events = _events(journal)
        decisions = [
            (d.time_s, d.job, d.action, d.machine, d.reason, d.policy, d.propensity)
            for _, d in journal.decisions()
        ]
        outcomes = [
            (o.time_s, o.job, o.ending, o.reason, o.policy, o.reward, o.on_policy)
            for _, o in journal.outcomes()
        ]
        set_aside = Counter(
            (record.adapter, record.reason) for _, record in journal.latest_set_aside(1_000_000)
        )
    return Ledger(events, decisions, outcomes, set_aside)


def _read_to_the_end(daemon: DaemonProcess, written: Counter[str]) -> None:
    """Start it if it does not run; stop it when all is read, and was decided on as well."""
    if daemon.process is None:
        daemon.start()
    state = daemon.config.parent / "state"
    deadline_s = time.monotonic() + READ_WITHIN_S
    before: Counter[tuple[str, str]] = Counter()
    while True:
        time.sleep(3.0)
        with Journal(state / "journal.sqlite", read_only=True) as journal:
            now = _events(journal)
            newest_s = max(e[0] for _, _, e in journal.inputs_after(0) if e[1] != TICK)
        read = sum(n for (adapter, _), n in now.items() if adapter == "jobs")
        if now == before and read >= written.total() and daemon.status()["now_s"] >= newest_s:
            break
        assert time.monotonic() < deadline_s, f"{read} of {written.total()} records were read"
        before = now
    assert daemon.stop() == 0


def _events(journal: Journal) -> Counter[tuple[str, str]]:
    inputs = journal.inputs_after(0)
    return Counter((adapter, KIND_NAMES[e[1]]) for _, adapter, e in inputs if e[1] != TICK)


def _written(site: SoakSite) -> Counter[str]:
    counts = json.loads(site.counts.read_text())
    return Counter({kind: n for kind, n in counts.items() if kind != "seconds"})


def _pid(daemon: DaemonProcess) -> int | None:
    running = daemon.process is not None and daemon.process.poll() is None
    return daemon.process.pid if daemon.process is not None and running else None
