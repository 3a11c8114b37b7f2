"""Instrumentation of a policy: checks and counts each of its decisions as it is made."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import isfinite
from typing import Any, Final

from outrider.api.capabilities import Learns, Plans, Prediction
from outrider.api.policy import Policy
from outrider.api.queue import Queue
from outrider.engine.scheduling.guarded_policy import check_key
from outrider.engine.scheduling.placement import OpenPlaces, find_refusal
from outrider.engine.scheduling.scheduling_pass import GUARD
from outrider.engine.state.site import Site
from outrider.model.decisions import (
    NO_MACHINE,
    NOWHERE,
    PREEMPT,
    RESUME,
    SHRINK,
    START,
    Choice,
    Move,
    Outcome,
)
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, RUNNING, SUSPENDED_STATE, Job
from outrider.testing.conformance import NotConforming, expect

_RESERVED_REASONS = (NO_MACHINE, GUARD)
_MAX_LETTERS = 500


class InstrumentedPolicy:
    """Wrapper of a policy that checks `choose`, and `plan` and `observe` if it has them.

    Args:
        policy: the policy; its methods are replaced.
        insist: always pass ``may_defer=False`` to the policy.
        look: called with (job, view) after every choice, and for every queued or running job
            after every plan, for further checks.

    Attributes:
        calls_n: calls of `choose` and `plan`.
        deferred_n: choices that deferred a job.
        outcomes_n: outcomes observed.
        keys: every group key that the policy returned.
        deciding_s: seconds spent in `choose` and `plan`.
        moves_n: moves planned.
        queue: the queue of the last plan; None if it does not plan.
    """

    def __init__(
        self,
        policy: Policy,
        insist: bool = False,
        look: Callable[[Job, Site], None] | None = None,
    ) -> None:
        self.policy = policy
        self.calls_n = self.deferred_n = self.outcomes_n = self.moves_n = 0
        self.queue: Queue | None = None
        self.keys: dict[Hashable, None] = {}
        self.deciding_s = 0.0
        self._insist = insist
        self._look = look
        wrapped: dict[str, Callable[..., Any]] = {"choose": self._wrapped_choose}
        self._choose = policy.choose
        if isinstance(policy, Plans):
            self._plan = policy.plan
            wrapped["plan"] = self._wrapped_plan
        if isinstance(policy, Learns):
            self._observe = policy.observe
            wrapped["observe"] = self._wrapped_observe
        for name, method in wrapped.items():
            setattr(policy, name, method)

    def _wrapped_choose(self, job: Job, evaluation: Any, view: Any, may_defer: bool) -> Choice:
        site: Site = view.site if isinstance(view, OpenPlaces) else view
        may_defer = may_defer and not self._insist
        self._record_key(job, site)
        before = _copy_of_site(site)
        began = time.perf_counter()
        choice = self._choose(job, evaluation, view, may_defer)
        self.deciding_s += time.perf_counter() - began
        self.calls_n += 1
        where = f"choice {self.calls_n}, at {site.now:g} s"
        is_same = _copy_of_site(site) == before
        expect(is_same, f"{where}: choose() changed the site; it may only look")
        check_choice(choice, job, site, may_defer, where)
        self.deferred_n += choice.machine == NOWHERE and choice.reason != NO_MACHINE
        if self._look is not None:
            self._look(job, site)
        return choice

    def _record_key(self, job: Job, site: Site) -> None:
        key = self.policy.group_key(job, site)
        try:
            check_key(key)
        except TypeError as error:
            raise NotConforming(str(error)) from error
        self.keys[key] = None

    def _wrapped_plan(self, queue: Queue, view: Any) -> Iterable[Move]:
        site: Site = view
        self.queue = queue
        for job in queue.jobs:
            self._record_key(job, site)
        before = _copy_of_site(site), copy_of_queue(queue)
        began = time.perf_counter()
        moves = list(self._plan(queue, site))
        self.deciding_s += time.perf_counter() - began
        self.calls_n += 1
        self.moves_n += len(moves)
        where = f"plan {self.calls_n}, at {site.now:g} s"
        after = _copy_of_site(site), copy_of_queue(queue)
        expect(after == before, f"{where}: plan() changed the site; it may only look")
        check_plan(moves, site, where)
        for number, move in enumerate(moves, 1):
            _check_reason_and_scores(move, f"{where}, move {number}")
        if self._look is not None:
            for job in (*queue.jobs, *site.running):
                self._look(job, site)
        return moves

    def _wrapped_observe(self, outcome: Outcome, view: Any, on_policy: bool) -> Sequence[float]:
        self.outcomes_n += 1
        rewards = self._observe(outcome, view, on_policy)
        check_rewards(rewards, f"outcome {self.outcomes_n} ({outcome.ending}), at {view.now:g} s")
        return rewards


def check_choice(choice: Any, job: Job, site: Site, may_defer: bool, where: str) -> None:
    """Check a `Choice`: a machine on which the job may start, or none if deferring is allowed."""
    expect(isinstance(choice, Choice), f"{where}: choose() must return a Choice: {choice!r}")
    machine = choice.machine
    if machine == NOWHERE and choice.reason == NO_MACHINE:
        return  # the job fits on no machine: that is not the policy's choice
    if machine == NOWHERE:
        expect(may_defer, f"{where}: deferred the job although may_defer is False")
    else:
        refusal = find_refusal(site, job.spec, machine, job.spec.cpus)
        expect(
            refusal is None,
            f"{where}: chose machine {machine!r} for job {job.number}, which cannot start there: "
            + ("" if refusal is None else f"asked for {refusal.asked}, but {refusal.left}"),
        )
    _check_reason_and_scores(choice, where)


def _check_reason_and_scores(choice: Choice | Move, where: str) -> None:
    """Check the reason (a word or two), the propensity and the scores."""
    propensity = choice.propensity
    expect(
        isinstance(choice.reason, str) and choice.reason != "" and "\n" not in choice.reason,
        f"{where}: the reason must be a word or two: {choice.reason!r}",
    )
    expect(
        choice.reason not in _RESERVED_REASONS,
        f"{where}: the reason {choice.reason!r} is the engine's own; use another word",
    )
    expect(
        propensity is None or 0.0 < propensity <= 1.0 + 1e-9,
        f"{where}: propensity {propensity!r}; expected in (0, 1], or None if not known",
    )
    if choice.scores is not None:
        check_scores(choice.scores, where)


def check_scores(scores: Any, where: str) -> None:
    """Check that scores map names to finite numbers."""
    expect(isinstance(scores, dict), f"{where}: scores must be a dict: {scores!r}")
    for name, score in scores.items():
        expect(isinstance(name, str), f"{where}: scores are given by name, not by {name!r}")
        number = isinstance(score, (int, float)) and isfinite(score)
        expect(number, f"{where}: the score of {name!r} must be a finite number: {score!r}")


def check_rewards(rewards: Any, where: str) -> None:
    """Check that rewards are a sequence of finite numbers, perhaps empty."""
    expect(
        isinstance(rewards, Sequence) and not isinstance(rewards, (str, bytes)),
        f"{where}: observe() must return a sequence of rewards: {rewards!r}",
    )
    for reward in rewards:
        expect(
            isinstance(reward, (int, float)) and isfinite(reward),
            f"{where}: a reward must be a finite number: {reward!r}",
        )


def check_prediction(prediction: Any, where: str) -> None:
    """Check that a prediction is a probability and a run time, each or all None if unknown."""
    if prediction is None:
        return
    expect(isinstance(prediction, Prediction), f"{where}: predict() returned {prediction!r}")
    chance, run_s = prediction
    expect(
        chance is None or 0.0 <= chance <= 1.0,
        f"{where}: eviction_probability {chance!r}; expected 0 to 1, or None",
    )
    expect(
        run_s is None or (isfinite(run_s) and run_s >= 0.0),
        f"{where}: run_s {run_s!r}; expected seconds from 0, or None",
    )


def check_explanation(text: Any, where: str) -> None:
    """Check that an explanation is one short line of text."""
    expect(isinstance(text, str) and text.strip() != "", f"{where}: explain() returned {text!r}")
    expect(
        "\n" not in text and len(text) <= _MAX_LETTERS,
        f"{where}: explain() must return one sentence of at most {_MAX_LETTERS} letters: {text!r}",
    )


def _copy_of_site(site: Site) -> tuple[Any, ...]:
    """Return a copy of everything of the site that a policy could change."""
    return (
        site.now,
        bytes(site.state),
        list(site.free_n),
        site.free_total,
        list(site.busy),
        list(site.active_w),
        list(site.cluster_names),
        {
            number: (job.state, job.machine, job.cpus, job.consumed_s)
            for number, job in site.jobs.items()
        },
    )


# -- plan checks -----------------------------------------------------------------------------------
# Checks of plans: moves of known jobs, possible together in their order.

_MAY_BE: Final = {
    START: (QUEUED,),
    SHRINK: (QUEUED, RUNNING),
    PREEMPT: (RUNNING,),
    RESUME: (SUSPENDED_STATE,),
}


def check_plan(moves: Sequence[Any], site: Site, where: str) -> None:
    """Check that every move is possible after those before it."""
    left = [site.cpus_of(m) - site.busy[m] for m in range(site.machines_n)]
    moved: set[int] = set()
    for number, move in enumerate(moves, 1):
        at = f"{where}, move {number}"
        expect(isinstance(move, Move), f"{at}: plan() must return Moves: {move!r}")
        job = _job_of(move, site, at)
        expect(job.number not in moved, f"{at}: job {job.number} was moved already: {move}")
        moved.add(job.number)
        _check_place(move, job, site, at)
        has = job.cpus if job.state == RUNNING else 0
        left[move.machine] -= move.cpus - has
        expect(
            move.cpus <= has or left[move.machine] >= 0,
            f"{at}: machine {move.machine} has {-left[move.machine]} CPUs too few for {move}",
        )


def _job_of(move: Move, site: Site, at: str) -> Job:
    """Return the job of a move, checked to be in a state that allows it."""
    expect(
        move.action in _MAY_BE,
        f"{at}: action {move.action!r}; expected one of {', '.join(_MAY_BE)}",
    )
    expect(move.job in site.jobs, f"{at}: unknown job {move.job!r}: {move}")
    job = site.jobs[move.job]
    expect(job.state in _MAY_BE[move.action], f"{at}: it is {JOB_STATE_NAMES[job.state]}: {move}")
    return job


def _check_place(move: Move, job: Job, site: Site, at: str) -> None:
    """Check the machine (that of the run, if there is one) and the CPUs."""
    machine, cpus, asked = move.machine, move.cpus, job.spec.cpus
    known = isinstance(machine, int) and 0 <= machine < site.machines_n
    expect(known, f"{at}: there is no machine {machine!r}: {move}")
    expect(
        job.state == QUEUED or machine == job.machine,
        f"{at}: its run is on machine {job.machine}; runs do not move: {move}",
    )
    if move.action == PREEMPT:
        expect(cpus == 0, f"{at}: a preempted run has 0 CPUs, not {cpus!r}: {move}")
    elif move.action == START:
        expect(cpus == asked, f"{at}: a start gives all {asked} CPUs it requests: {move}")
    else:
        expect(1 <= cpus <= asked, f"{at}: expected 1 to {asked} CPUs: {move}")


def copy_of_queue(queue: Queue) -> tuple[Any, ...]:
    """Return a copy of everything of the queue that a policy could change."""
    columns = (queue.submit_s, queue.estimate_s, queue.order, queue.cpus, queue.vo)
    return ([job.number for job in queue.jobs], *(column.tobytes() for column in columns))
