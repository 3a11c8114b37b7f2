"""A witness beside a policy: checks each of its answers the moment it is given."""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import isfinite
from typing import Any

from outrider.api.capabilities import Learns, Plans
from outrider.api.policy import Policy
from outrider.api.prediction import Prediction
from outrider.api.queue import Queue
from outrider.engine.plain_data import check_key
from outrider.engine.scheduling.open_places import OpenPlaces
from outrider.engine.scheduling.placement import find_refusal
from outrider.engine.scheduling.scheduling_pass import GUARD
from outrider.engine.state.site import Site
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice, Move
from outrider.model.jobs import Job
from outrider.model.outcomes import Outcome
from outrider.testing.plans import check_plan, picture_of_queue
from outrider.testing.verdict import NotConforming, expect

_ENGINES_OWN = (NO_MACHINE, GUARD)
_MOST_SENTENCE = 500


class Witness:
    """Steps between engine and policy; every question passes through it.

    Args:
        policy: whose `choose`, and `plan` and `observe` if it has them, are watched from now on.
        insist: tell the policy each time that the job must start (``may_defer=False``).
        look: called with (job, view) after every choice, and for every job that waits or runs
            after every plan, for further questions.

    Attributes:
        asked: how often the policy chose or planned.
        kept: how often it chose to keep a job queued.
        told: how many outcomes it saw.
        keys: every key it gave, with the hour at which it last did.
        choosing_s: seconds it spent choosing or planning.
        moves_n: how many moves it planned.
        queue: what it planned from last; None where it does not plan.
    """

    def __init__(
        self,
        policy: Policy,
        insist: bool = False,
        look: Callable[[Job, Site], None] | None = None,
    ) -> None:
        self.policy = policy
        self.asked = self.kept = self.told = self.moves_n = 0
        self.queue: Queue | None = None
        self.keys: dict[Hashable, None] = {}
        self.choosing_s = 0.0
        self._insist = insist
        self._look = look
        watched: dict[str, Callable[..., Any]] = {"choose": self._watch_choose}
        self._choose = policy.choose
        if isinstance(policy, Plans):
            self._plan = policy.plan
            watched["plan"] = self._watch_plan
        if isinstance(policy, Learns):
            self._observe = policy.observe
            watched["observe"] = self._watch_observe
        for name, method in watched.items():
            setattr(policy, name, method)

    def _watch_choose(self, job: Job, evaluation: Any, view: Any, may_defer: bool) -> Choice:
        site: Site = view.site if isinstance(view, OpenPlaces) else view
        may_defer = may_defer and not self._insist
        self._note_key(job, site)
        before = _picture(site)
        began = time.perf_counter()
        choice = self._choose(job, evaluation, view, may_defer)
        self.choosing_s += time.perf_counter() - began
        self.asked += 1
        where = f"choice {self.asked}, at {site.now:g} s"
        expect(_picture(site) == before, f"{where}: choose() changed the site; it may only look")
        check_choice(choice, job, site, may_defer, where)
        self.kept += choice.machine == NOWHERE and choice.reason != NO_MACHINE
        if self._look is not None:
            self._look(job, site)
        return choice

    def _note_key(self, job: Job, site: Site) -> None:
        key = self.policy.group_key(job, site)
        try:
            check_key(key)
        except TypeError as error:
            raise NotConforming(str(error)) from error
        self.keys[key] = None

    def _watch_plan(self, queue: Queue, view: Any) -> Iterable[Move]:
        site: Site = view
        self.queue = queue
        for job in queue.jobs:
            self._note_key(job, site)
        before = _picture(site), picture_of_queue(queue)
        began = time.perf_counter()
        moves = list(self._plan(queue, site))
        self.choosing_s += time.perf_counter() - began
        self.asked += 1
        self.moves_n += len(moves)
        where = f"plan {self.asked}, at {site.now:g} s"
        after = _picture(site), picture_of_queue(queue)
        expect(after == before, f"{where}: plan() changed the site; it may only look")
        check_plan(moves, site, where)
        for number, move in enumerate(moves, 1):
            _check_grounds(move, f"{where}, move {number}")
        if self._look is not None:
            for job in (*queue.jobs, *site.running):
                self._look(job, site)
        return moves

    def _watch_observe(self, outcome: Outcome, view: Any, on_policy: bool) -> Sequence[float]:
        self.told += 1
        rewards = self._observe(outcome, view, on_policy)
        check_rewards(rewards, f"outcome {self.told} ({outcome.ending}), at {view.now:g} s")
        return rewards


def check_choice(choice: Any, job: Job, site: Site, may_defer: bool, where: str) -> None:
    """A `Choice` of a machine on which the job may start, or of none where that is allowed."""
    expect(isinstance(choice, Choice), f"{where}: choose() must return a Choice: {choice!r}")
    machine = choice.machine
    if machine == NOWHERE and choice.reason == NO_MACHINE:
        return  # it fits nowhere: nobody chose that
    if machine == NOWHERE:
        expect(may_defer, f"{where}: kept the job queued although may_defer is False")
    else:
        refusal = find_refusal(site, job.spec, machine, job.spec.cpus)
        expect(
            refusal is None,
            f"{where}: chose machine {machine!r} for job {job.number}, which cannot start there: "
            + ("" if refusal is None else f"asked for {refusal.asked}, but {refusal.left}"),
        )
    _check_grounds(choice, where)


def _check_grounds(choice: Choice | Move, where: str) -> None:
    """A reason in a word or two, a propensity and scores that are sound."""
    propensity = choice.propensity
    expect(
        isinstance(choice.reason, str) and choice.reason != "" and "\n" not in choice.reason,
        f"{where}: the reason must be a word or two: {choice.reason!r}",
    )
    expect(
        choice.reason not in _ENGINES_OWN,
        f"{where}: the reason {choice.reason!r} is the engine's own; take another word",
    )
    expect(
        propensity is None or 0.0 < propensity <= 1.0 + 1e-9,
        f"{where}: propensity {propensity!r}; right would be in (0, 1], or None if not known",
    )
    if choice.scores is not None:
        check_scores(choice.scores, where)


def check_scores(scores: Any, where: str) -> None:
    """Names to finite numbers."""
    expect(isinstance(scores, dict), f"{where}: scores must be a dict: {scores!r}")
    for name, score in scores.items():
        expect(isinstance(name, str), f"{where}: scores are told by name, not by {name!r}")
        number = isinstance(score, (int, float)) and isfinite(score)
        expect(number, f"{where}: the score of {name!r} must be a finite number: {score!r}")


def check_rewards(rewards: Any, where: str) -> None:
    """A sequence of finite numbers, perhaps empty."""
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
    """A probability and a length, or no opinion."""
    if prediction is None:
        return
    expect(isinstance(prediction, Prediction), f"{where}: predict() gave {prediction!r}")
    chance, run_s = prediction
    expect(
        chance is None or 0.0 <= chance <= 1.0,
        f"{where}: eviction_probability {chance!r}; right would be 0 to 1, or None",
    )
    expect(
        run_s is None or (isfinite(run_s) and run_s >= 0.0),
        f"{where}: run_s {run_s!r}; right would be seconds from 0, or None",
    )


def check_sentence(said: Any, where: str) -> None:
    """One line that a user on call can read."""
    expect(isinstance(said, str) and said.strip() != "", f"{where}: explain() said {said!r}")
    expect(
        "\n" not in said and len(said) <= _MOST_SENTENCE,
        f"{where}: explain() must give one sentence of at most {_MOST_SENTENCE} letters: {said!r}",
    )


def _picture(site: Site) -> tuple[Any, ...]:
    """What a policy could spoil."""
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
