"""The daemon's decision log: decisions and outcomes become rows of the journal.

Each policy in shadow has its own gate, as if it alone acted: starts of one policy take nothing
from the budget of another.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final

from outrider.acting.gate import CANARY, Budget, Canary, Gate
from outrider.engine import EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.journal.records import OutcomeRecord, RunRecord
from outrider.model.decisions import DEFER, NO_MACHINE, NOWHERE, UNCHOSEN, Decision, DecisionRow
from outrider.model.events import JOB_KINDS, NamedEvent
from outrider.model.jobs import Job
from outrider.service.canary_trial.trial import Trial, TrialTally
from outrider.service.config.declarations import Config, acting_of
from outrider.service.config.optional_tables import ActingSettings
from outrider.service.core.failed_starts import FailedStarts
from outrider.service.core.user_privacy import Pseudonyms

NO_LEVERS: Final[Mapping[str, Collection[str]]] = MappingProxyType({})


class JournalledDecisions:
    """Buffer of decisions and outcomes, until `take` passes them to the journal.

    Args:
        config: the mode, and the budget of each policy's gate.
        policies: names of the deciding policies.
        merger: knows the names of jobs and machines.
        site: knows the time.
        input: ``full``, or ``inferred`` where machines are known only from their jobs.
        input_age_s: age of the newest input, in seconds.
        carried: by adapter with levers, the actions for which it has one.
        sources_up: True if every source can be read; while one is down, input counts as stale.
        canary: the jobs that may be acted on in that mode.

    Attributes:
        gates: the gate of each policy.
        job_sources: the adapter with levers of each job.
        trial: defines the days on which a canary acts on all jobs; None: `canary` selects jobs.
        replaying: True while the journal is replayed, which already contains the decisions.
    """

    def __init__(
        self, config: Config, policies: Iterable[str], merger: EventMerger, site: Site,
        input: str,  # noqa: A002 - the journal's own word for it
        input_age_s: Callable[[], float],
        carried: Mapping[str, Collection[str]],
        sources_up: Callable[[], bool],
        canary: Canary,
    ) -> None:  # fmt: skip
        budget = Budget(config.max_starts_per_minute, config.stale_after_s)
        self.gates = {policy: Gate(config.mode, budget) for policy in policies}
        self.job_sources = JobSources(carried, lambda: merger.normaliser.jobs)
        self.trial: Trial | None = None
        self.replaying = False
        self._mode = config.mode
        self._merger = merger
        self._site = site
        self._input = input
        self._input_age_s = input_age_s
        self._sources_up = sources_up
        self._canary = canary
        self._by_days = acting_of(config).canary_by == "days"
        self._carried = carried
        # not in a canary: jobs outside of it take every machine, and those inside would only wait
        self._admits = config.mode != CANARY and acting_of(config).admission_control
        self._decisions: list[DecisionRow] = []
        self._outcomes: list[OutcomeRecord] = []

    def decided(self, decision: Decision, /) -> None:
        """Note a decision (`outrider.engine.ports.DecisionLog`)."""
        input_age_s = self._input_age_s()
        # made in any case: an event that fails here must also fail when it is replayed
        row = DecisionRow.of(
            decision,
            self._merger.normaliser,
            self._mode,
            input_age_s=input_age_s,
            input=self._input,
            gate=self._answer(decision, input_age_s) if self._changes(decision) else None,
        )
        if not self.replaying:
            self._decisions.append(row)

    def _changes(self, decision: Decision) -> bool:
        """Return whether the decision requires a change in the batch system.

        A job without a free place waits anyway. But where the policy determines the start, the job
        must be held, or the batch system gives it the next free machine.
        """
        if decision.action != DEFER:
            return True
        awaits_its_turn = self._admits and decision.reason == NO_MACHINE
        is_chosen = awaits_its_turn or decision.reason not in UNCHOSEN
        return is_chosen and DEFER in self._actions_for(decision)

    def _actions_for(self, decision: Decision) -> Collection[str]:
        """Return the actions for which the adapter of its job has a lever."""
        name = self._merger.normaliser.job_names[decision.job]
        return self._carried.get(self.job_sources.label_of(name) or "", ())

    def _answer(self, decision: Decision, input_age_s: float) -> str:
        # during a replay no source is read yet, and the budget must be as it was
        fresh = self.replaying or self._sources_up()
        gate = self.gates[decision.policy]
        age_s = input_age_s if fresh else inf
        return gate.answer(
            decision.action, decision.time_s, age_s, self._is_in_canary(decision),
            decision.action in self._actions_for(decision),
        )  # fmt: skip

    def _is_in_canary(self, decision: Decision) -> bool:
        if self._mode != CANARY:
            return True
        if self._by_days:
            return self.trial is not None and self.trial.acts_at(decision.time_s)
        job = self._site.jobs[decision.job]
        cluster = None
        if decision.machine != NOWHERE:
            cluster = self._site.cluster_names[self._site.cluster_of(decision.machine)]
        name = self._merger.normaliser.job_names[decision.job]
        return self._canary.holds(name, job.spec.user, job.spec.vo, cluster)

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Note that a run ended or a job left the queue (`outrider.engine.ports.DecisionLog`)."""
        normaliser = self._merger.normaliser
        outcome = OutcomeRecord(
            time_s=self._site.now,
            job=normaliser.job_names[job.number],
            machine=None if job.machine == NOWHERE else normaliser.machine_names[job.machine],
            ending=ending,
            reason=reason,
            run_s=run_s,
            policy=policy,
            reward=reward,
            on_policy=on_policy,
        )
        if not self.replaying:
            self._outcomes.append(outcome)

    @property
    def is_empty(self) -> bool:
        """True if `take` would return nothing."""
        return not (self._decisions or self._outcomes)

    def take(self) -> tuple[list[DecisionRow], list[OutcomeRecord]]:
        """Return decisions and outcomes since the last call."""
        taken = self._decisions, self._outcomes
        self._decisions, self._outcomes = [], []
        return taken

    def verdicts(self) -> Counter[str]:
        """Return the counts of all gates' answers (`Gate.verdicts`)."""
        return sum((gate.verdicts for gate in self.gates.values()), Counter())

    def save(self) -> dict[str, Any]:
        """Return the gates and the adapters of jobs, as plain data."""
        gates = {policy: gate.save() for policy, gate in self.gates.items()}
        return {"gates": gates, "job_sources": self.job_sources.save()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore what `save` returned; parts that an older release did not save start afresh."""
        gates = saved.get("gates", {})
        for policy in gates.keys() & self.gates.keys():
            self.gates[policy].restore(gates[policy])
        self.job_sources.restore(saved.get("job_sources", {}))


def canary_of(acting: ActingSettings, pseudonyms: Pseudonyms | None) -> Canary:
    """Return the canary of a configuration, with users' pseudonyms where events have them."""
    users = acting.canary_users
    return Canary(
        clusters=frozenset(acting.canary_clusters),
        users=frozenset(users if pseudonyms is None else map(pseudonyms.of, users)),
        vos=frozenset(acting.canary_vos),
        fraction=acting.canary_fraction,
    )


# -- job sources -----------------------------------------------------------------------------------
# The adapter of each job: only its levers can change the job.

_SPARE: Final = 2_000
"""Number of remembered jobs that are not at the site: they have left or not entered yet."""


class JobSources:
    """Map from each job to the adapter with levers that reported it.

    Reports of the same job from an adapter without levers, such as one that follows a log, are
    ignored.

    Args:
        labels: labels of the adapters that have levers.
        jobs: names of the jobs at the site, as in their sources.
    """

    def __init__(self, labels: Iterable[str], jobs: Callable[[], Collection[str]]) -> None:
        self._labels = frozenset(labels)
        self._jobs = jobs
        self._label_of: dict[str, str] = {}

    def note(self, label: str, events: Iterable[NamedEvent]) -> None:
        """Note the jobs in events of an adapter."""
        if label not in self._labels:
            return
        known = self._label_of
        known |= {subject: label for _, kind, subject, _ in events if kind in JOB_KINDS}
        jobs = self._jobs()
        if len(known) > 2 * (len(jobs) + _SPARE):
            newest = list(known)[-_SPARE:]
            self._label_of = {name: known[name] for name in [*jobs, *newest] if name in known}

    def label_of(self, own: str) -> str | None:
        """Return the adapter of a job, by the job's name here; None: one without levers."""
        found = self._label_of.get(own)
        # a number that was used again has the suffix #SECOND, which its source does not use
        return found or self._label_of.get(own.rpartition("#")[0])

    def save(self) -> dict[str, list[str]]:
        """Return the jobs of each adapter, as plain data."""
        saved: dict[str, list[str]] = {label: [] for label in sorted(self._labels)}
        for name, label in self._label_of.items():
            saved[label].append(name)
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore what `save` returned, without adapters that no longer exist."""
        self._label_of = {name: label for label in self._labels for name in saved.get(label, ())}


# -- run log ---------------------------------------------------------------------------------------
# The daemon's accounting, which also makes a journal row of each run that ends.


class JournalledAccounting(Accounting):
    """Accounting that also collects ended runs for the journal (`take_runs`).

    Args:
        merger: knows the names of jobs and machines.
        keeps: returns whether a run that ends now is recorded; runs of the history are not.
        given, named: as for `Accounting`.

    Attributes:
        tally: counts of the days of a canary trial; None: there is none.
        failed_starts: failed starts of the last day, by machine.
    """

    def __init__(
        self, merger: EventMerger, keeps: Callable[[], bool], *given: Any, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._merger = merger
        self._keeps = keeps
        self.tally: TrialTally | None = None
        self.failed_starts = FailedStarts()
        self._runs: list[RunRecord] = []

    def run_completed(
        self, job: Job, run_s: float, cluster: int, time_s: float, more_cpu_s: float = 0.0
    ) -> None:
        """Count and record a completed run, see `Accounting.run_completed`."""
        super().run_completed(job, run_s, cluster, time_s, more_cpu_s)
        self._keep(job, run_s, "")
        self.failed_starts.note(job, time_s, "")
        if self.tally is not None:
            joules = self.energy.run_j(job, run_s, self._merger.now)
            cpu_s = job.run_cpu_s(run_s) + more_cpu_s
            self.tally.run_ended(job, cpu_s, joules, time_s, completes=True)
            if job.submit_s is not None:
                self.tally.job_completed(job.submit_s, time_s - job.submit_s - run_s)

    def run_wasted(self, job: Job, run_s: float, cluster: int, reason: str) -> None:
        """Count and record a wasted run, see `Accounting.run_wasted`."""
        super().run_wasted(job, run_s, cluster, reason)
        self._keep(job, run_s, reason)
        self.failed_starts.note(job, self._merger.now, reason)
        if self.tally is not None:
            now = self._merger.now
            joules = self.energy.run_j(job, run_s, now)
            self.tally.run_ended(job, job.run_cpu_s(run_s), joules, now, completes=False)

    def job_removed(self, job: Job) -> None:
        """Count a removed job, see `Accounting.job_removed`."""
        super().job_removed(job)
        if self.tally is not None:
            self.tally.job_removed(job)

    def take_runs(self) -> list[RunRecord]:
        """Return the runs that ended since the last call."""
        taken, self._runs = self._runs, []
        return taken

    def _keep(self, job: Job, run_s: float, reason: str) -> None:
        if not self._keeps():
            return
        names = self._merger.normaliser
        self._runs.append(
            RunRecord(
                job=names.job_names[job.number],
                vo=job.spec.vo,
                job_class=job.spec.job_class,
                machine=names.machine_names[job.machine],
                cpus=job.cpus,
                submit_s=job.submit_s,
                start_s=job.start_s,
                end_s=self._merger.now,
                run_s=run_s,
                reason=reason,
            )
        )
