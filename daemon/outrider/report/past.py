"""One pass over a journal: what happened in given windows, by the daemon's accounting."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from outrider.engine import Engine
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.report import open_energy_j, report
from outrider.engine.state.site import Site
from outrider.journal import TIMEZONE_KEY, Journal
from outrider.journal.journal_events import JournalEvents
from outrider.journal.site_facts import facts_on_record
from outrider.model.errors import TraceError
from outrider.model.events import Event
from outrider.model.localtime import ZoneTime
from outrider.replay.log_files import NoDecisionLog
from outrider.report.runs import Runs
from outrider.report.windows import Window

Joules = dict[str, dict[str, float]]
"""Joules by machine group and purpose; nan where watts are unknown."""


class Counted(NamedTuple):
    """Counted figures of one window.

    Attributes:
        window: as requested.
        covered_s: seconds of it that the journal covers.
        report: `outrider.engine.accounting.report.report` of it alone; but `fairness`, which
            counts from the beginning of the journal.
        joules: of runs that ended, of idle machines and of runs that continue (`open`).
        before_j: of runs that were running at its begin, up to then.
        delivered_s: CPU-seconds that each VO got in it.
        runs: those that ended in it.
    """

    window: Window
    covered_s: float
    report: Mapping[str, Any]
    joules: Joules
    before_j: float
    delivered_s: Mapping[str, float]
    runs: Runs


class Past(NamedTuple):
    """Contents of a journal, counted.

    Attributes:
        first_s, last_s: the first and the last moment that the journal covers.
        pruned: whether its beginning was deleted: what ran then is known from its next event on.
        incumbent: the policy that represents the batch system; None: none is on record.
        repairs, set_aside: over the whole journal: gaps that were filled, and events that could
            not be applied, by kind.
        inferred: machines known only because jobs ran there, and all.
        counted: by window, in the order in which they were requested.
        more: the runs of one more window, if that was requested.
        machine_names: by number.
    """

    first_s: float
    last_s: float
    pruned: bool
    incumbent: str | None
    repairs: Mapping[str, int]
    set_aside: Mapping[str, int]
    inferred: tuple[int, int]
    counted: Sequence[Counted]
    more: Runs | None
    machine_names: Sequence[str]


def read_past(
    path: Path,
    windows: Sequence[Window],
    more: Window | None = None,
    targets: Mapping[str, float] | None = None,
) -> Past:
    """Read a journal to its end.

    Args:
        path: of the journal.
        windows: ascending; none overlaps another.
        more: any window, of which only the runs are counted.
        targets: fair shares by VO; None: equal.

    Raises:
        LedgerError: the file cannot be read.
        TraceError: it holds no events of a site.
    """
    facts = facts_on_record(path)
    with Journal(path, read_only=True) as journal:
        zone = ZoneTime(journal.meta(TIMEZONE_KEY, "UTC"))
        clusters = [] if facts is None else list(facts.clusters)
        site, accounting = Site(zone, clusters), Accounting(zone, targets, exact=True)
        events = JournalEvents()
        engine = Engine(site, accounting, [], events.merger, NoDecisionLog())
        names = events.merger.normaliser.job_names
        walk = _Walk(engine, accounting, names, windows, more)
        engine.feed(walk.watch(events.all_of(journal)))
        pruned = journal.pruned_inputs_seq() > 0
    if walk.first_s == inf:
        raise TraceError(
            f"{path}: holds no events of a site; expected the journal of a daemon (what a "
            "replay writes are decisions only)"
        )
    last_s = max(walk.last_s, events.seen_s)
    counted = walk.close(last_s)
    normaliser = events.merger.normaliser
    specs = [spec for spec in site.specs if spec is not None]
    return Past(
        walk.first_s, last_s, pruned,
        facts.incumbent.policy if facts is not None and facts.incumbent is not None else None,
        dict(normaliser.repairs), {why: n for why, n in events.merger.set_aside.items() if n},
        (sum(spec.inferred for spec in specs), len(specs)),
        counted, walk.more, normaliser.machine_names,
    )  # fmt: skip


class _Walk:
    """Pass events to the engine, and close the counts at the edges of windows."""

    def __init__(
        self, engine: Engine, accounting: Accounting, names: Mapping[int, str],
        windows: Sequence[Window], more: Window | None,
    ) -> None:  # fmt: skip
        self.first_s, self.last_s = inf, -inf
        self._engine, self._accounting, self._site = engine, accounting, engine.site
        self._all = [
            Runs(window, self._site, accounting.energy.run_j, names)
            for window in (*windows, *([] if more is None else [more]))
        ]
        self._runs = self._all[: len(windows)]
        self.more = None if more is None else self._all[-1]
        self._edges = [*chain.from_iterable((w.begin_s, w.end_s) for w in windows), inf]
        self._passed = 0
        self._begun: tuple[float, Mapping[str, float]] = (0.0, {})
        self._counted: list[Counted] = []

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events for the engine, and count them."""
        for event in events:
            self.first_s = min(self.first_s, event[0])
            self.last_s = max(self.last_s, event[0])
            while event[0] >= self._edges[self._passed]:
                self._pass_edge(self._edges[self._passed])
            for runs in self._all:
                runs.take(event)
            yield event

    def close(self, last_s: float) -> list[Counted]:
        """End the windows that are still open after the last event, with what they cover."""
        while len(self._counted) < len(self._runs):
            self._pass_edge(min(last_s, self._edges[self._passed]))
        return [
            each._replace(covered_s=_covered_s(each.window, self.first_s, last_s))
            for each in self._counted
        ]

    def _pass_edge(self, time_s: float) -> None:
        self._engine.finish(time_s)
        if self._passed % 2 == 0:
            self._begin()
        else:
            self._end(self._runs[self._passed // 2])
        self._passed += 1

    def _begin(self) -> None:
        self._accounting.restart(self._site.now)
        before_j = sum(spent for spent, _ in open_energy_j(self._accounting, self._site).values())
        self._begun = before_j, self._delivered_s()

    def _end(self, runs: Runs) -> None:
        accounting, site = self._accounting, self._site
        runs.close(site.now)
        before_j, delivered_s = self._begun
        joules: Joules = {
            name: {purpose: column[number] for purpose, column in accounting.energy.joules.items()}
            for number, name in enumerate(site.cluster_names)
        }
        for by_purpose in joules.values():
            by_purpose["open"] = 0.0
        for number, (spent, _) in open_energy_j(accounting, site).items():
            joules[site.cluster_names[number]]["open"] = spent
        got = {vo: s - delivered_s.get(vo, 0.0) for vo, s in self._delivered_s().items()}
        counted = report(site, accounting)
        self._counted.append(Counted(runs.window, 0.0, counted, joules, before_j, got, runs))

    def _delivered_s(self) -> dict[str, float]:
        """Return the CPU-seconds of each VO since the beginning of the journal."""
        fairness, now = self._accounting.fairness, self._site.now
        total = fairness.delivered_cpu_s(now)
        return {vo: share * total for vo, (share, _) in fairness.shares(now).items()}


def _covered_s(window: Window, first_s: float, last_s: float) -> float:
    return max(0.0, min(window.end_s, last_s) - max(window.begin_s, first_s))
