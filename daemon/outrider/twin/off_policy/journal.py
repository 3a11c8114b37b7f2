"""Off-policy checks from the journal of a daemon alone: `off_policy_of_journal`.

Where the incumbent chooses at random, each start is an experiment. Runs that happen to be where a
candidate would have sent them show its results, weighted by how likely they were. It is a check on
the twin, which simulates, and no forecast.
"""

import random
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from msgspec import structs

from outrider.acting.gate import ACT
from outrider.api.capabilities import Plans
from outrider.api.policy import Policy
from outrider.engine import Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.scheduling.placement import OpenPlaces
from outrider.engine.state.site import Site
from outrider.formats.campus.files import NO_REBOOT
from outrider.journal import TIMEZONE_KEY, AlikeDecision, Journal
from outrider.journal.journal_events import JournalEvents
from outrider.journal.site_facts import SiteFacts, facts_on_record
from outrider.model import events as ev
from outrider.model.decisions import START, Names
from outrider.model.errors import ConfigurationError
from outrider.model.events import Event
from outrider.model.jobs import QUEUED, Job
from outrider.model.localtime import DAY_S, ZoneTime, day_second
from outrider.model.machines import SiteHabits
from outrider.model.modes import FIRST_FIT
from outrider.plugins.finding import make_policy, stream
from outrider.replay.log_files import NoDecisionLog
from outrider.twin.off_policy.check import (
    ChoiceCounts,
    OffPolicyCheck,
    PropensityCheck,
    check_of,
    checked,
)
from outrider.twin.off_policy.starts import Batches, Start, StartTable

# -- candidates ------------------------------------------------------------------------------------
# Sources of a candidate's choices: a policy that is run, or recorded decisions of one.


class Candidate(Protocol):
    """Policy that could have chosen in place of the incumbent."""

    @property
    def name(self) -> str:
        """Name of the policy."""
        ...

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """Return the probability of each machine for a job that starts now; empty: no start."""
        ...


class ShadowPolicy:
    """Candidate policy that runs in shadow on the record and is queried at each start.

    Args:
        runner: of the policy, on the site of the record.
        rng: for the policy's random draws in queries.
    """

    def __init__(self, runner: PolicyRunner, rng: random.Random) -> None:
        self.name = runner.name
        self._runner = runner
        self._rng = rng

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """Return its machines for the job if it had to start it; empty once it has failed."""
        return self._runner.would_choose(job, places.site, self._rng)


class RecordedChoice(NamedTuple):
    """Recorded decision of a policy for a job.

    Attributes:
        time_s: time from which it is valid.
        machine: name of the machine on which it would start; None: it would not start it.
    """

    time_s: float
    machine: str | None


class DecisionsOnRecord(NamedTuple):
    """Decisions in a journal.

    Attributes:
        choices: by policy and job name, in order; of the requested policies.
        acted: names of the jobs on which a decision was applied.
    """

    choices: Mapping[str, Mapping[str, list[RecordedChoice]]]
    acted: frozenset[str]

    @classmethod
    def of(cls, path: Path, policies: Collection[str]) -> "DecisionsOnRecord":
        """Read the decisions of a journal. Raises `LedgerError`."""
        choices: dict[str, defaultdict[str, list[RecordedChoice]]] = {
            name: defaultdict(list) for name in policies
        }
        acted: set[str] = set()
        with Journal(path, read_only=True) as journal:
            for _, row in journal.decisions():
                jobs = row.jobs if isinstance(row, AlikeDecision) else (row.job,)
                if row.gate == ACT:
                    acted.update(jobs)
                if row.policy in choices:
                    what = RecordedChoice(row.time_s, row.machine if row.action == START else None)
                    for job in jobs:
                        choices[row.policy][job].append(what)

        return cls(choices, frozenset(acted))


class RecordedPolicy:
    """Candidate policy whose shadow decisions are in the journal.

    The policy names a group rather than a machine (`outrider.model.decisions.Choice`), and the
    machine may be taken by the time of the start. So a choice means any free machine of its group.

    Args:
        name: of the policy.
        choices: by job name, in order of time.
        names: of jobs and machines of the record.
    """

    def __init__(
        self, name: str, choices: Mapping[str, list[RecordedChoice]], names: Names
    ) -> None:
        self.name = name
        self._choices = choices
        self._names = names
        self._numbers: dict[str, int] = {}

    def odds(self, job: Job, places: OpenPlaces) -> Mapping[int, float]:
        """Return the choice valid at the start; empty if none, or if the group is full."""
        choices = self._choices.get(self._names.job_names[job.number], [])
        at = bisect_right(choices, places.now, key=lambda choice: choice.time_s)
        machine = choices[at - 1].machine if at else None
        if machine is None:
            return {}
        site = places.site
        group = site.machine_cluster[self._number(machine)]
        same_group = [one for one in places.free_since if site.machine_cluster[one] == group]
        return dict.fromkeys(same_group, 1.0 / len(same_group)) if same_group else {}

    def _number(self, machine: str) -> int:
        if machine not in self._numbers:
            names = self._names.machine_names
            self._numbers = {name: number for number, name in enumerate(names)}
        return self._numbers[machine]


# -- journal ---------------------------------------------------------------------------------------

UNIFORM: Final = frozenset({"random_match", "user_priority"})
"""Incumbents that start a job on any machine that can take it, all equally likely."""
LEVEL: Final = 0.9
_RECONSIDER_S: Final = 3600.0
_NO_FACTS: Final = SiteFacts(FIRST_FIT, SiteHabits(), ())


def off_policy_of_journal(
    path: Path,
    policies: Sequence[str | Policy] = (),
    recorded: Sequence[str] = (),
    incumbent: str | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, OffPolicyCheck]:
    """Check candidates by the starts in a journal, one step at a time.

    The journal is only read.

    Args:
        path: the journal of a daemon.
        policies: candidates to run: names, or policies made with their own settings. They begin
            untrained and learn, in shadow, from the journal.
        recorded: names of policies that ran in the daemon's shadow: their decisions then count.
        incumbent: the policy, by name, that started the jobs; None: as the journal has it.
        level: coverage probability of the intervals, between 0 and 1.
        seed: of the candidates' random draws.

    Returns:
        A check of each candidate, by its name.

    Raises:
        ConfigurationError: a candidate is given twice, or `level` is not a probability.
        LedgerError: the journal cannot be read.
        PluginError: there is no such policy, or it cannot be made.
    """
    if not 0.0 < level < 1.0:
        raise ConfigurationError(f"level {level:g}: expected between 0 and 1, as in 0.9")
    made = [make_policy(p, {}, seed, "off-policy") if isinstance(p, str) else p for p in policies]
    names = [*(policy.name for policy in made), *recorded]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"off-policy: a policy is given more than once: {names}")
    facts = facts_on_record(path) or _NO_FACTS
    if incumbent is None and facts.incumbent is not None:
        incumbent = facts.incumbent.policy
    unfit = _unfit(incumbent)
    decided = DecisionsOnRecord.of(path, recorded)
    refused: dict[str, list[str]] = {
        policy.name: [*unfit, *_not_runnable(policy)] for policy in made
    }
    refused |= {name: [*unfit, *_not_recorded(name, decided)] for name in recorded}
    asked = {
        name: OffPolicyCheck(policy=name, incumbent=incumbent, level=level, refused=tuple(why))
        for name, why in refused.items()
    }
    if all(refused.values()):
        return asked
    runners = [
        PolicyRunner(
            policy, acting=False, reconsider_s=facts.habits.reconsider_s or _RECONSIDER_S,
            strict=False, discipline=facts.discipline,
        )
        for policy in made
        if not refused[policy.name]
    ]  # fmt: skip
    site = Site(clock_of(path), list(facts.clusters), _reboot_s(facts.habits))
    rng = stream(seed, "off-policy")
    gathered, counted = recorded_starts(path, site, runners, decided, rng)
    broken = {runner.name: (runner.broken,) for runner in runners if runner.broken}
    for name, before in asked.items():
        if not before.refused:
            check = structs.replace(before, refused=broken.get(name, ()))
            table = gathered.table(name)
            asked[name] = check_of(check, table, counted, gathered.left_out(table))
    return asked


def _reboot_s(habits: SiteHabits) -> float | None:
    return None if habits.reboot in (None, NO_REBOOT) else day_second(str(habits.reboot))


def _unfit(incumbent: str | None) -> list[str]:
    """Return why no candidate can be checked; empty if they can."""
    if incumbent is None:
        return ["it is not known which policy started the jobs: no adapter of the journal names it"]
    if incumbent not in UNIFORM:
        uniform = ", ".join(sorted(UNIFORM))
        why = "does not choose machines at random, so its choices cannot be weighted"
        return [f"the incumbent {incumbent} {why}; expected {uniform}"]
    return []


def _not_runnable(policy: Policy) -> list[str]:
    """Return why a candidate policy cannot be run; empty if it can."""
    reasons = []
    if isinstance(policy, Plans):
        reasons.append(f"{policy.name} plans whole passes: it chooses no machine for one start")
    if policy.needs_oracle:
        reasons.append(f"{policy.name} needs true run times, not known before a run ends")
    return reasons


def _not_recorded(name: str, decided: DecisionsOnRecord) -> list[str]:
    """Return why the record of a candidate cannot be used; empty if it can."""
    return [] if decided.choices[name] else [f"the journal holds no decision of {name}"]


# -- recorded starts -------------------------------------------------------------------------------
# The starts of a journal, with the candidates' choices just before each.
#
# The journal's inputs go through an event merger and an engine like the daemon's own, in which the
# candidates run in shadow: they decide, see what the batch system did, and learn from it. At each
# start they know what they would have known then.

_ENDS = frozenset({ev.COMPLETED, ev.EVICTED, ev.REMOVED})


class RecordedStarts:
    """Collects the starts of a site while its events pass.

    Args:
        site: before the first event.
        candidates: queried at each start.
        acted: returns whether a decision of Outrider was applied to a job, so that the incumbent
            did not choose alone.

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
        """Record an event that the site has not applied yet."""
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
        """Return the starts whose runs ended and which a candidate would make, too."""
        return StartTable(self.starts, len(self._site.cluster_names), policy)

    def left_out(self, table: StartTable) -> dict[str, int]:
        """Return how many starts are not in a candidate's table, by the fields of `OffPolicyCheck`.

        Runs that continue are counted once, whatever else applies to them.
        """
        return {
            "running_n": len(self._running),
            "outside_n": self.outside_n,
            "acted_n": self.acted_n,
            "silent_n": len(self.starts) - len(self._running) - len(table),
        }

    def propensities(self, machine_names: Sequence[str]) -> PropensityCheck:
        """Return whether the starts agree with uniform draws between the free machines."""
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
    """Return the starts of a journal, and whether they agree with uniform draws.

    Args:
        path: the journal.
        site: before its first event.
        runners: candidates that decide in shadow; none of them plans whole passes.
        decided: recorded decisions of other candidates.
        rng: for the candidates' random draws in queries.

    Raises:
        LedgerError: the journal cannot be read.
    """
    recorded = JournalEvents()
    merger, names = recorded.merger, recorded.merger.normaliser
    accounting = Accounting(site.local_time, {}, exact=False)
    engine = Engine(site, accounting, runners, merger, NoDecisionLog())
    candidates: list[Candidate] = [ShadowPolicy(runner, rng) for runner in runners]
    candidates += [
        RecordedPolicy(name, choices, names) for name, choices in decided.choices.items()
    ]
    gathered = RecordedStarts(site, candidates, lambda job: names.job_names[job] in decided.acted)

    def apply(events: Iterable[Event]) -> None:
        for event in events:
            gathered.before(event)
            engine.feed((event,))

    with Journal(path, read_only=True) as journal:
        for seen_s, events in recorded.read(journal):
            apply(events)
            merger.reach(seen_s)
            engine.reach(seen_s)
    apply(recorded.rest())
    return gathered, gathered.propensities(names.machine_names)


def clock_of(path: Path) -> ZoneTime:
    """Return the clock of a journal's site. Raises `LedgerError`."""
    with Journal(path, read_only=True) as journal:
        return ZoneTime(journal.meta(TIMEZONE_KEY, "UTC"))
