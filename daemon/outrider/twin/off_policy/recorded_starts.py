"""The starts of a journal, as the candidates would have chosen just before each.

The journal's inputs go through an event merger and an engine like the daemon's own, in which the
candidates run in shadow: they decide, see what the batch system did, and learn from it, and know at
each start what they would have known then.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path

from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.scheduling.open_places import OpenPlaces
from outrider.engine.state.site import Site
from outrider.ledger import TIMEZONE_KEY, Journal
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import QUEUED
from outrider.model.localtime import DAY_S, ZoneTime
from outrider.replay.ingestion import NoDecisionLog, inferred_machine
from outrider.twin.off_policy.candidates import (
    AskedPolicy,
    Candidate,
    DecisionsOnRecord,
    RecordedPolicy,
)
from outrider.twin.off_policy.propensity_check import ChoiceCounts, PropensityCheck, checked
from outrider.twin.off_policy.starts import Batches, Start, StartTable

_ENDS = frozenset({ev.COMPLETED, ev.EVICTED, ev.REMOVED})


class RecordedStarts:
    """Gathers the starts of a site while its events pass.

    Args:
        site: before the first event.
        candidates: who is asked at each start.
        acted: whether a decision of Outrider was carried out on a job: the incumbent did not
            choose alone then.

    Attributes:
        starts: in order.
        outside_n: starts on machines that, by the record, were not free for the job.
        acted_n: starts of jobs that were acted on.
    """

    def __init__(
        self, site: Site, candidates: Sequence[Candidate], acted: Callable[[int], bool]
    ) -> None:
        self._site = site
        self._candidates = candidates
        self._acted = acted
        self._batches = Batches()
        self._running: dict[int, Start] = {}
        self.starts: list[Start] = []
        self.outside_n = 0
        self.acted_n = 0
        self._machines = ChoiceCounts()
        self._groups = ChoiceCounts()

    def before(self, event: Event) -> None:
        """An event is about to be applied to the site."""
        time_s, kind, number, extra = event
        if kind == ev.STARTED:
            self._start(time_s, number, extra[0])
        elif kind == ev.SUBMITTED:
            self._batches.submit(number, extra.user, time_s)
        elif kind in _ENDS and (start := self._running.pop(number, None)) is not None:
            start.completed = kind == ev.COMPLETED

    def _start(self, time_s: float, number: int, machine: int) -> None:
        site = self._site
        if self._acted(number):
            self.acted_n += 1
            return
        job = site.jobs[number]
        places = OpenPlaces(site, job)
        if job.state != QUEUED or machine not in places.free_since:
            self.outside_n += 1
            return
        group_of = site.machine_cluster
        free_n = Counter(map(group_of.__getitem__, places.free_since))
        self._machines.add_uniform(machine, places.free_since)
        self._groups.add(group_of[machine], {g: n / places.free_total for g, n in free_n.items()})
        chances = {}
        for candidate in self._candidates:
            if odds := candidate.odds(job, places):
                by_group: defaultdict[int, float] = defaultdict(float)
                for where, chance in odds.items():
                    by_group[group_of[where]] += chance
                chances[candidate.name] = odds.get(machine, 0.0), by_group
        week_s = site.local_time.week_second(time_s)
        start = Start(
            round(time_s - week_s % DAY_S), int(week_s) // 3600 % 24, self._batches.of(number),
            group_of[machine], free_n, chances,
        )  # fmt: skip
        self.starts.append(start)
        self._running[number] = start

    def table(self, policy: str) -> StartTable:
        """Those whose runs ended and which a candidate would make, too."""
        return StartTable(self.starts, len(self._site.cluster_names), policy)

    def left_out(self, table: StartTable) -> dict[str, int]:
        """How many starts are not in the table of a candidate, by why: as `OffPolicyCheck` has it.

        Runs that go on are counted once, whatever else may be said of them.
        """
        return {
            "running_n": len(self._running),
            "outside_n": self.outside_n,
            "acted_n": self.acted_n,
            "silent_n": len(self.starts) - len(self._running) - len(table),
        }

    def propensities(self, machine_names: Sequence[str]) -> PropensityCheck:
        """Whether they fell as a uniform draw between the free machines would."""
        return checked(
            self._groups, self._machines,
            dict(enumerate(self._site.cluster_names)), dict(enumerate(machine_names)),
        )  # fmt: skip


def recorded_starts(
    path: Path,
    site: Site,
    runners: Sequence[PolicyRunner],
    decided: DecisionsOnRecord,
    rng: random.Random,
) -> tuple[RecordedStarts, PropensityCheck]:
    """The starts of a journal, and whether they fell as a uniform draw would.

    Args:
        path: the journal.
        site: before its first event.
        runners: candidates that decide in shadow; none of them plans whole passes.
        decided: what is on record of other candidates.
        rng: of what candidates draw when they are asked.

    Raises:
        LedgerError: the journal cannot be read.
    """
    merger = EventMerger((), inferred_machine)
    names = merger.normaliser
    accounting = Accounting(site.local_time, {}, exact=False)
    engine = Engine(site, accounting, runners, merger, NoDecisionLog())
    candidates: list[Candidate] = [AskedPolicy(runner, rng) for runner in runners]
    candidates += [RecordedPolicy(name, said, names) for name, said in decided.said.items()]
    gathered = RecordedStarts(site, candidates, lambda job: names.job_names[job] in decided.acted)

    def apply(events: Iterable[Event]) -> None:
        for event in events:
            gathered.before(event)
            engine.feed((event,))

    last_s = -inf
    with Journal(path, read_only=True) as journal:
        for _, label, event in journal.inputs_after(0):
            last_s = max(last_s, event[0])
            if event[1] == ev.TICK:
                apply(merger.advance(event[0]))
                merger.reach(event[0])
                engine.reach(event[0])
            else:
                merger.arrive(label, (event,))
    apply(merger.advance(last_s))  # what waited for a watermark when the record ended
    return gathered, gathered.propensities(names.machine_names)


def clock_of(path: Path) -> ZoneTime:
    """The clock of a journal's site. Raises `LedgerError`."""
    with Journal(path, read_only=True) as journal:
        return ZoneTime(journal.meta(TIMEZONE_KEY, "UTC"))
