"""The scheduler of Vengerov (2005): force or squeeze a job in where the machine's value rises."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from outrider.api import (
    COMPLETED_RUN,
    NOWHERE,
    RUNNING,
    Job,
    Move,
    Outcome,
    Queue,
    SiteView,
)
from outrider_policies.fuzzy_td.machine_state import MachineState
from outrider_policies.fuzzy_td.sentences import Weighed, why_it_waits
from outrider_policies.fuzzy_td.settings import FuzzyTdSettings
from outrider_policies.fuzzy_td.transitions import Transitions, ValueFunction
from outrider_policies.learners.best_fit_stage import fill, open_plans
from outrider_policies.learners.completion_utility import Asked, final_utility
from outrider_policies.learners.forcing import (
    FORCED,
    SQUEEZED,
    Candidates,
    carry_out,
    forcible,
    squeezable,
)
from outrider_policies.learners.machine_plan import MachinePlan, Run
from outrider_policies.learners.round_planner import RoundPlanner
from outrider_policies.learners.run_lengths import RunLengths
from outrider_policies.learners.waiting_jobs import WaitingJobs


class Course(NamedTuple):
    """What decides for a machine, what learns from it (None: nothing does), and where it stands."""

    value: ValueFunction
    learner: ValueFunction | None
    transitions: Transitions


class FuzzyTd(RoundPlanner):
    """Learns what state of a machine is worth most, and brings it there.

    D. Vengerov, "A Reinforcement Learning Framework for Utility-Based Scheduling in
    Resource-Constrained Systems", Sun Microsystems Laboratories 2005, section 4.1: after growth of
    squeezed runs and best fit, forcing in any waiting job by preemption (steps 4 to 7), then
    squeezing any onto the free CPUs (steps 8 to 11), each if the machine's value is higher
    afterwards than V0, its value as it stands. Several machines each do so for themselves, after a
    common best fit (section 4.2). Values: `machine_state`; learning: `transitions`.
    """

    name = "fuzzy_td"
    description = "learns when to preempt and to squeeze jobs, by the value of a machine's state"
    settings_type = FuzzyTdSettings
    presets: ClassVar = {
        "literal": {"inputs": 3},
        "none": {"preempt": False, "oversubscribe": False},
    }

    def __init__(self, settings: FuzzyTdSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.lengths = RunLengths(settings.assumed_s, settings.longest_s)
        self._values: dict[str, ValueFunction] = {}
        self._transitions: dict[int, Transitions] = {}
        self._weighed: list[Weighed] = []

    def value_of(self, machine: int, view: SiteView) -> ValueFunction:
        """The value function of a machine: that of its cluster."""
        return self._value(view.cluster_names[view.cluster_of(machine)])

    def _value(self, cluster: str) -> ValueFunction:
        value = self._values.get(cluster)
        if value is None:
            value = ValueFunction(self.settings.inputs, self.settings.first_outputs)
            self._values[cluster] = value
        return value

    # -- a round ------------------------------------------------------------------------------

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Section 4.1 on every machine, after best fit on all."""
        self._weighed.clear()
        waiting = WaitingJobs(queue, view, self.lengths)
        plans = open_plans(view, self.lengths)
        courses = [self._find(plan, waiting, view) for plan in plans]
        fill(plans, waiting)
        for plan, course in zip(plans, courses, strict=True):
            self._improve(plan, waiting, course)
        return [move for plan in plans for move in plan.moves()]

    def _find(self, plan: MachinePlan, waiting: WaitingJobs, view: SiteView) -> Course:
        """What became of the last round's plan."""
        value = self.value_of(plan.machine, view)
        learner = value if self.settings.learn else None
        transitions = self._transitions.setdefault(plan.machine, Transitions())
        if not transitions.went_as_planned(plan.cpus_by_job()):
            transitions.find(self._state(plan, waiting).now(), learner)
        return Course(value, learner, transitions)

    def _improve(self, plan: MachinePlan, waiting: WaitingJobs, course: Course) -> None:
        """Steps 2 to 11, and what is learned from them."""
        transitions, learner = course.transitions, course.learner
        state = self._state(plan, waiting)
        settled = transitions.considered and (transitions.has_changed or plan.has_started)
        if settled or self.settings.update == "every_round":
            transitions.reach(state.now(), learner)
        forced = squeezed = None
        if self.settings.preempt:
            forced = self._try(forcible(plan, waiting), state, plan, waiting, course)
        if self.settings.oversubscribe and plan.free:
            if forced:
                state = self._state(plan, waiting)
            squeezed = self._try(squeezable(plan, waiting), state, plan, waiting, course)
        if forced or squeezed:
            transitions.reach(self._state(plan, waiting).now(), learner)
        transitions.leave(plan.cpus_by_job())

    def _try(
        self,
        candidates: Candidates,
        state: MachineState,
        plan: MachinePlan,
        waiting: WaitingJobs,
        course: Course,
    ) -> Run | None:
        """Give the candidate of the highest value its place, if that is more than V0."""
        if not len(candidates.rows):
            return None
        rulebase = course.value.rulebase
        present = rulebase.value(state.now())
        values = rulebase.values(state.after(candidates))
        best = int(values.argmax())
        scores = None
        if self.wants_scores:
            how = FORCED if candidates.preempted_n[best] else SQUEEZED
            self._weighed.append(Weighed(how, waiting.jobs, candidates, values, present))
            scores = {"leave": present, how: float(values[best])}
        if values[best] <= present:
            course.transitions.considered = True
            return None
        return carry_out(plan, waiting, candidates, best, scores)

    def _state(self, plan: MachinePlan, waiting: WaitingJobs) -> MachineState:
        return MachineState(plan, waiting, self.lengths.longest_s, self.settings.inputs)

    # -- outcomes -----------------------------------------------------------------------------

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """The reward of a completed job is its final utility, scaled."""
        super().observe(outcome, view, on_policy)
        if outcome.machine == NOWHERE:
            return ()
        asked = Asked(*outcome.key)  # type: ignore[misc]
        scale = self.settings.reward_scale
        if scale is None:
            scale = max(view.cpus_of(outcome.machine), asked.cpus) * self.lengths.longest_s
        reward = final_utility(outcome, asked, view) / scale
        transitions = self._transitions.setdefault(outcome.machine, Transitions())
        transitions.ended(outcome.job, reward)
        return (reward,) if outcome.ending == COMPLETED_RUN else ()

    # -- for people ---------------------------------------------------------------------------

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        """What each rule of each cluster says; a job's own alternatives are in its decision."""
        return {
            f"{cluster} {rule}": float(output)
            for cluster in view.cluster_names
            for rule, output in self._value(cluster).by_rule()
        }

    def learned(self, view: SiteView) -> dict[str, Any] | None:
        """What each rule says, by cluster."""
        rules = [rule for rule, _ in ValueFunction(self.settings.inputs).by_rule()]
        rows = [
            {"label": cluster, "values": [output for _, output in value.by_rule()]}
            for cluster, value in sorted(self._values.items())
        ]
        return {"title": "value of a machine's state, by rule", "columns": rules, "rows": rows}

    def explain(self, job: Job, view: SiteView) -> str:
        """What was weighed for it in the last round, or what its run is expected to bring."""
        if job.state == RUNNING:
            return super().explain(job, view)
        return why_it_waits(job, self._weighed, view)

    # -- memory -------------------------------------------------------------------------------

    def save(self, view: SiteView) -> dict[str, Any]:
        """Value functions by cluster, and where each machine stands, by its place in it."""
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
        """Go on from what `save` gave.

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
