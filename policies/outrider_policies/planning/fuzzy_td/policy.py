"""The scheduler of Vengerov (2005): force in or shrink a job where the machine's value rises."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    COMPLETED_RUN,
    NOWHERE,
    RUNNING,
    Job,
    Move,
    Outcome,
    Queue,
    SiteView,
    events,
)
from outrider_policies.planning.fuzzy_td.machine_state import MachineState
from outrider_policies.planning.fuzzy_td.transitions import Transitions, ValueFunction
from outrider_policies.planning.machine_plan import (
    FORCED,
    SHRUNK,
    Candidates,
    MachinePlan,
    allocate_by_density,
    grow_and_fit,
    place_candidate,
    preemption_candidates,
    shrink_candidates,
)
from outrider_policies.planning.open_machines import OpenMachines
from outrider_policies.planning.planner import PlanningSettings, RoundPlanner, what_it_waits_for
from outrider_policies.planning.queued_jobs import JobRequest, QueuedJobs, RunLengths, final_utility

# -- settings --------------------------------------------------------------------------------------
# Settings of the fuzzy rulebase scheduler.


class FuzzyTdSettings(PlanningSettings, frozen=True):
    """Settings of the inputs of the value function, and of its learning."""

    inputs: Annotated[
        Literal[3, 5],
        Meta(
            description="Inputs of the value function: 3 (8 rules) as in the paper (section 3.3); "
            "5 (32 rules): also the shrinkage of runs, and the utility of the queue."
        ),
    ] = 5
    update: Annotated[
        Literal["free_decisions", "every_round"],
        Meta(
            description="When to learn: around forced or shrunk starts, made or considered "
            "(section 3.4), or in every pass, which the paper warns of and is worse."
        ),
    ] = "free_decisions"
    skip_hopeless: Annotated[
        bool,
        Meta(
            description="Never give CPUs to a job that could earn nothing even if it got all it "
            "requests now; it is never started, as with `replan`. Not in the paper, and "
            "better on an overloaded machine."
        ),
    ] = False
    weigh_replan: Annotated[
        bool,
        Meta(
            description="Consider one more state: all CPUs reallocated as by `replan`. Chosen if "
            "its value is above that after forcing and shrinking. Not in the paper."
        ),
    ] = False
    learn: Annotated[
        bool, Meta(description="Continue learning. False keeps the value function as it is.")
    ] = True
    longest_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Longest job there is, seconds: the unit of the time until the next "
                "completion. Unset: the longest estimate seen so far.",
            ),
        ]
        | None
    ) = None
    reward_scale: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Utility, CPU-seconds, that is a reward of 1. Unset: that of a job of "
                "the longest length on all CPUs of the machine (240 in the paper's base case).",
            ),
        ]
        | None
    ) = None
    first_outputs: Annotated[
        tuple[float, ...],
        Meta(
            description="Initial output of each rule, in the order of `outrider explain`: SSS, "
            "SSL, ... Empty: 0 each, as in the paper.",
            examples=[[0.0] * 32],
        ),
    ] = ()

    def __post_init__(self) -> None:
        rules_n = 2**self.inputs
        if self.first_outputs and len(self.first_outputs) != rules_n:
            raise ValueError(
                f"first_outputs has {len(self.first_outputs)} values; "
                f"{self.inputs} inputs have {rules_n} rules; expected one value a rule, or []"
            )


# -- policy ----------------------------------------------------------------------------------------


@dataclass
class Draft:
    """Draft of a machine's plan during a scheduling pass.

    Attributes:
        plan: the machine's plan.
        queued: the queue as the plan leaves it.
        value: the value function for decisions.
        learner: the value function to train; None: no training.
        transitions: the machine's states and rewards.
        has_acted: True if a free decision was made: jobs were forced in or shrunk.
    """

    plan: MachinePlan
    queued: QueuedJobs
    value: ValueFunction
    learner: ValueFunction | None
    transitions: Transitions
    has_acted: bool = False


class FuzzyTd(RoundPlanner[FuzzyTdSettings]):
    """Policy that learns the value of a machine's states, and preempts or shrinks for better ones.

    D. Vengerov, "A Reinforcement Learning Framework for Utility-Based Scheduling in
    Resource-Constrained Systems", Sun Microsystems Laboratories 2005, section 4.1: after growth of
    shrunk runs and best fit, one queued job is forced in by preemption (steps 4 to 7), then one is
    shrunk to the free CPUs (steps 8 to 11), each only if the machine's value is then higher than
    V0, that of its present state. Each machine decides alone, after a common best fit (section
    4.2). The inputs of the value function are in `machine_state`, learning is in `transitions`.
    """

    name = "fuzzy_td"
    description = "learns when to preempt and to shrink jobs, by the value of a machine's state"
    api_version = 1
    presets: ClassVar = {
        "literal": {"inputs": 3},
        "none": {"preempt": False, "oversubscribe": False},
    }

    def __init__(self, settings: FuzzyTdSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.lengths = RunLengths(settings.assumed_s, settings.longest_s)
        self._values: dict[str, ValueFunction] = {}
        self._transitions: dict[int, Transitions] = {}
        self._considered: list[Considered] = []

    def value_of(self, machine: int, view: SiteView) -> ValueFunction:
        """Return the value function of a machine: that of its cluster."""
        return self._value(view.cluster_names[view.cluster_of(machine)])

    def _value(self, cluster: str) -> ValueFunction:
        value = self._values.get(cluster)
        if value is None:
            value = ValueFunction(self.settings.inputs, self.settings.first_outputs)
            self._values[cluster] = value
        return value

    # -- a scheduling pass --------------------------------------------------------------------

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return the moves of section 4.1 on every machine, after best fit over all."""
        self._considered.clear()
        queued = QueuedJobs(queue, view, self.lengths)
        if self.settings.skip_hopeless:
            queued.close_hopeless()
        untouched = queued.copied() if self.settings.weigh_replan else None
        machines = OpenMachines(view, self.lengths)
        looks_at_all = self.settings.update == "every_round" or (
            self.settings.weigh_replan and queued.has_open
        )
        runs, is_irregular = machines.runs(), machines.is_irregular.tolist()
        drafts = {
            machine: self._begin(machine, queued, view)
            for machine, irregular in zip(machines.machines, is_irregular, strict=True)
            if looks_at_all or irregular or self._has_news(machine, runs[machine])
        }
        for machine in machines.to_fill(queued):
            if machine not in drafts:
                drafts[machine] = self._begin(machine, queued, view)
            grow_and_fit(drafts[machine].plan, queued)
        for machine in machines.to_force(queued, drafts):
            if machine not in drafts:
                drafts[machine] = self._begin(machine, queued, view)
            self._improve(drafts[machine])
        return self._settle([drafts[machine] for machine in sorted(drafts)], untouched, view)

    def _settle(
        self, drafts: list[Draft], untouched: QueuedJobs | None, view: SiteView
    ) -> list[Move]:
        """Return the moves, by machine; `untouched`: the queue before, to weigh a replan of it."""
        for draft in drafts:
            if untouched is not None:
                taken = [run.row for d in drafts if d is not draft for run in d.plan.runs]
                self._weigh_replan(draft, untouched.copied(), taken, view)
            if draft.has_acted:
                draft.transitions.reach(self._state(draft).now(), draft.learner)
            draft.transitions.leave(draft.plan.cpus_by_job())
        return [move for draft in drafts for move in draft.plan.moves()]

    def _has_news(self, machine: int, runs: dict[int, int]) -> bool:
        """Return True if a machine is new, a run ended there, or its runs differ from the plan."""
        transitions = self._transitions.get(machine)
        if transitions is None or transitions.has_changed:
            return True
        return not transitions.went_as_planned(runs)

    def _begin(self, machine: int, queued: QueuedJobs, view: SiteView) -> Draft:
        """Start a machine's draft; learn if the last pass's plan was not executed."""
        plan = MachinePlan(machine, view, self.lengths)
        value = self.value_of(machine, view)
        transitions = self._transitions.setdefault(machine, Transitions())
        learner = value if self.settings.learn else None
        draft = Draft(plan, queued, value, learner, transitions)
        if not transitions.went_as_planned(plan.cpus_by_job()):
            transitions.find(self._state(draft).now(), learner)
        return draft

    def _improve(self, draft: Draft) -> None:
        """Execute steps 2 to 11, and learn if neither step changes the plan."""
        plan, queued, transitions = draft.plan, draft.queued, draft.transitions
        state = self._state(draft)
        settled = transitions.considered and (transitions.has_changed or plan.has_started)
        if settled or self.settings.update == "every_round":
            transitions.reach(state.now(), draft.learner)
        if not queued.has_open:
            return
        if self.settings.preempt:
            self._try(preemption_candidates(plan, queued), state, draft)
        if self.settings.oversubscribe and plan.free:
            state = self._state(draft) if draft.has_acted else state
            self._try(shrink_candidates(plan, queued), state, draft)

    def _try(self, candidates: Candidates, state: MachineState, draft: Draft) -> None:
        """Place the candidate of the highest value, if that is above V0."""
        if not len(candidates.rows):
            return
        rulebase = draft.value.rulebase
        present = rulebase.value(state.now())
        values = rulebase.values(state.after_each(candidates))
        best = int(values.argmax())
        scores = None
        if self.wants_scores:
            how = FORCED if candidates.preempted_n[best] else SHRUNK
            jobs = draft.queued.jobs
            self._considered.append(Considered(how, jobs, candidates, values, present))
            scores = {"leave": present, how: float(values[best])}
        if values[best] <= present:
            draft.transitions.considered = True
            return
        place_candidate(draft.plan, draft.queued, candidates, best, scores)
        draft.has_acted = True

    def _weigh_replan(
        self, draft: Draft, queued: QueuedJobs, taken: list[int | None], view: SiteView
    ) -> None:
        """Reallocate all CPUs by density instead, if the value is higher.

        Args:
            draft: changed in place.
            queued: the queue before the pass.
            taken: its rows that other machines took; None for runs that were there before.
            view: the site.
        """
        if not draft.has_acted and not draft.queued.has_open:
            return
        rows = [row for row in taken if row is not None and row < len(queued.jobs)]
        queued.is_open[rows] = False
        plan = MachinePlan(draft.plan.machine, view, self.lengths)
        allocate_by_density(plan, queued)
        replanned = replace(draft, plan=plan, queued=queued)
        rulebase = draft.value.rulebase
        present = rulebase.value(self._state(draft).now())
        value = rulebase.value(self._state(replanned).now())
        if value > present:
            for run in plan.runs:
                run.scores = {"leave": present, "replan": value} if self.wants_scores else None
            draft.plan, draft.queued, draft.has_acted = plan, queued, True

    def _state(self, draft: Draft) -> MachineState:
        longest_s = self.lengths.longest_s
        return MachineState(draft.plan, draft.queued, longest_s, self.settings.inputs)

    # -- outcomes -----------------------------------------------------------------------------

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn the reward of a completed job: its final utility, scaled."""
        super().observe(outcome, view, on_policy)
        if outcome.machine == NOWHERE:
            return ()
        request = JobRequest(*outcome.key)  # type: ignore[misc]
        scale = self.settings.reward_scale
        if scale is None:
            scale = max(view.cpus_of(outcome.machine), request.cpus) * self.lengths.longest_s
        reward = final_utility(outcome, request, view) / scale
        transitions = self._transitions.get(outcome.machine)
        if transitions is not None:  # None: it left, or no pass has seen it yet
            transitions.ended(outcome.job, reward)
        return (reward,) if outcome.ending == COMPLETED_RUN else ()

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Plan again; forget a machine that left, which starts without history if it returns."""
        super().on_machine_event(kind, machine, view)
        if kind == events.LEFT:
            self._transitions.pop(machine, None)

    # -- explaining ---------------------------------------------------------------------------

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        """Return the output of each rule, by cluster; a decision's scores show its alternatives."""
        return {
            f"{cluster} {rule}": float(output)
            for cluster in view.cluster_names
            for rule, output in self._value(cluster).by_rule()
        }

    def learned(self, view: SiteView) -> dict[str, Any] | None:
        """Return the output of each rule, by cluster, as a table."""
        rules = [rule for rule, _ in ValueFunction(self.settings.inputs).by_rule()]
        rows = [
            {"label": cluster, "values": [output for _, output in value.by_rule()]}
            for cluster, value in sorted(self._values.items())
        ]
        return {"title": "value of a machine's state, by rule", "columns": rules, "rows": rows}

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the alternatives considered for a queued job, or a run's expected utility."""
        if job.state == RUNNING:
            return super().explain(job, view)
        return why_it_waits(job, self._considered, view)

    # -- state --------------------------------------------------------------------------------

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return value functions by cluster, and transitions by machine.

        A machine is identified by its position in its cluster.
        """
        return super().save(view) | {
            "values": {cluster: value.save() for cluster, value in self._values.items()},
            "transitions": [
                [cluster, place, self._transitions[machine].save()]
                for cluster, members in zip(view.cluster_names, view.members, strict=True)
                for place, machine in enumerate(members)
                if machine in self._transitions
            ],
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved with another number of inputs.
        """
        values = {}
        for cluster, one in saved["values"].items():
            values[cluster] = ValueFunction(self.settings.inputs)
            values[cluster].restore(one)
        members = dict(zip(view.cluster_names, view.members, strict=True))
        self._values = values
        super().restore(saved, view)
        self._transitions = {
            members[cluster][place]: Transitions.restored(one)
            for cluster, place, one in saved["transitions"]
            if place < len(members.get(cluster, ()))
        }


# -- explanations ----------------------------------------------------------------------------------
# Explanations of the alternatives that were considered for a job.


class Considered(NamedTuple):
    """Candidates for one machine in the last pass, and the value of its state with each.

    Attributes:
        how: `FORCED` or `SHRUNK`.
        jobs: the queued jobs, by row.
        candidates: the candidates.
        values: V1 or V2 of each.
        present: V0, the value without any.
    """

    how: str
    jobs: Sequence[Job]
    candidates: Candidates
    values: NDArray[np.float64]
    present: float

    def of(self, job: Job) -> tuple[float, int, int] | None:
        """Return (value with this job, its CPUs, runs it would preempt); None: not a candidate."""
        for at, row in enumerate(self.candidates.rows.tolist()):
            if self.jobs[row] is job:
                preempted = int(self.candidates.preempted_n[at])
                return float(self.values[at]), int(self.candidates.cpus[at]), preempted
        return None


def why_it_waits(job: Job, considered_in_pass: Iterable[Considered], view: SiteView) -> str:
    """Describe the best alternative for a queued job, compared with no change."""
    found_for = [
        (considered, entry)
        for considered in considered_in_pass
        if (entry := considered.of(job)) is not None
    ]
    waits_for = what_it_waits_for(job, view)
    if not found_for:
        return f"{waits_for}; the last pass considered neither preempting nor shrinking for it"
    considered, (value, cpus, preempted) = max(
        found_for, key=lambda pair: pair[1][0] - pair[0].present
    )
    action = (
        f"preempting {preempted} runs for it"
        if considered.how == FORCED
        else f"shrinking it to {cpus} CPUs"
    )
    change = f"from {considered.present:.3f} to {value:.3f}"
    text = f"{waits_for}; {action} would change the value of the machine's state {change}"
    if value > considered.present:
        return f"{text}, but another job raised it more"
    return f"{text}; that is done only if it raises the value"
