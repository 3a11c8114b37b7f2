"""The daemon's decision log: decisions and outcomes become rows of the journal.

Each policy in shadow has a gate of its own, as if it alone were to act: what one would start takes
nothing from the budget of another.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from math import inf
from typing import Any

from outrider.acting.canary import NOBODY, Canary
from outrider.acting.gate import CANARY, Budget, Gate
from outrider.engine import EventMerger
from outrider.engine.state.site import Site
from outrider.ledger.records import OutcomeRecord
from outrider.model.decisions import (
    DEFER,
    NO_MACHINE,
    NOWHERE,
    UNCHOSEN,
    Decision,
    DecisionRow,
)
from outrider.model.jobs import Job
from outrider.service.config.acting_settings import ActingSettings
from outrider.service.config.declarations import Config, acting_of
from outrider.service.pseudonyms import Pseudonyms


class JournalledDecisions:
    """Keeps what is decided and how runs end, until `take` gives it to the journal.

    Args:
        config: the mode, and the budget of each policy's gate.
        policies: names of those that decide.
        merger: knows the names of jobs and machines.
        site: knows the time.
        input: ``full``, or ``inferred`` where machines are known from their jobs alone.
        input_age_s: how old the newest input is, seconds.
        carried: the actions for which an adapter has a lever.
        sources_up: whether every source can be read; while one is down, input counts as stale.
        canary: the jobs that may be acted on in that mode.

    Attributes:
        gates: by policy.
        replaying: the journal is fed again: what is decided stands in it already.
    """

    def __init__(
        self, config: Config, policies: Iterable[str], merger: EventMerger, site: Site,
        input: str,  # noqa: A002 - the ledger's own word for it
        input_age_s: Callable[[], float],
        carried: Container[str] = (),
        sources_up: Callable[[], bool] = lambda: True,
        canary: Canary = NOBODY,
    ) -> None:  # fmt: skip
        budget = Budget(config.max_starts_per_minute, config.stale_after_s)
        self.gates = {policy: Gate(config.mode, budget, carried) for policy in policies}
        self.replaying = False
        self._mode = config.mode
        self._merger = merger
        self._site = site
        self._input = input
        self._input_age_s = input_age_s
        self._sources_up = sources_up
        self._canary = canary
        self._defers = DEFER in carried
        self._admits = acting_of(config).admission_control
        self._decisions: list[DecisionRow] = []
        self._outcomes: list[OutcomeRecord] = []

    def decided(self, decision: Decision, /) -> None:
        """A decision was made (`outrider.engine.ports.DecisionLog`)."""
        input_age_s = self._input_age_s()
        # made in any case: an event that fails here must fail when it is fed again, too
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
        """Whether something would have to be done.

        A job that only finds no place waits anyway; but where the policy is to say when it starts,
        it must be kept, or the batch system gives it the next machine that is free.
        """
        if decision.action != DEFER:
            return True
        awaits_its_turn = self._admits and decision.reason == NO_MACHINE
        return self._defers and (awaits_its_turn or decision.reason not in UNCHOSEN)

    def _answer(self, decision: Decision, input_age_s: float) -> str:
        # fed again, nothing is read yet, and the budget must be as it was
        fresh = self.replaying or self._sources_up()
        gate = self.gates[decision.policy]
        age_s = input_age_s if fresh else inf
        return gate.answer(decision.action, decision.time_s, age_s, self._is_in_canary(decision))

    def _is_in_canary(self, decision: Decision) -> bool:
        if self._mode != CANARY:
            return True
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
        """A run ended, or a job left the queue (`outrider.engine.ports.DecisionLog`)."""
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
        """Whether `take` has nothing to give."""
        return not (self._decisions or self._outcomes)

    def take(self) -> tuple[list[DecisionRow], list[OutcomeRecord]]:
        """What was decided and what ended since this was last called."""
        taken = self._decisions, self._outcomes
        self._decisions, self._outcomes = [], []
        return taken

    def verdicts(self) -> Counter[str]:
        """What the gates of all policies answered (`Gate.verdicts`)."""
        return sum((gate.verdicts for gate in self.gates.values()), Counter())

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on with the gates as they were saved, by policy."""
        for policy in saved.keys() & self.gates.keys():
            self.gates[policy].restore(saved[policy])


def canary_of(acting: ActingSettings, pseudonyms: Pseudonyms | None) -> Canary:
    """The canary of a configuration, whose users go by their pseudonyms where events do."""
    users = acting.canary_users
    return Canary(
        clusters=frozenset(acting.canary_clusters),
        users=frozenset(users if pseudonyms is None else map(pseudonyms.of, users)),
        vos=frozenset(acting.canary_vos),
        fraction=acting.canary_fraction,
    )
