"""The present state of a site with its shadow policies, from which it can be run forward."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

import msgspec

from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.engine import Actuator, Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.engine.scheduling.placement import Possible
from outrider.engine.state.machines import SHUT
from outrider.engine.state.site import Site
from outrider.model.decisions import START
from outrider.model.errors import PolicyError
from outrider.model.jobs import QUEUED, RUNNING, SUSPENDED_STATE, Job
from outrider.model.modes import Discipline
from outrider.replay.run import ReplayDecisionLog, keep_nothing

_ON_A_MACHINE: Final = (RUNNING, SUSPENDED_STATE)


class SiteRules(NamedTuple):
    """What a state does not hold.

    Attributes:
        discipline: who may start before a job that does not fit.
        reconsider_s: decision epoch of policies without one of their own, seconds.
        reboot_day_s: second of the day of the nightly reboot; None: none.
        shares: fair shares by VO.
        make_estimator: the run time estimator, or None.
        longest_deferral_s: for how long a policy may keep a job in the queue from now on, as levers
            bound it; then the batch system starts it.
    """

    discipline: Discipline
    reconsider_s: float
    reboot_day_s: float | None
    shares: Mapping[str, float]
    make_estimator: Callable[[], RunTimeEstimator | None]
    longest_deferral_s: float = inf


class Present:
    """A site now, of which fresh copies can be made.

    Args:
        engine: with the policies in shadow; it is of no more use: what is not deferred is due.
        rules: of the site.
        job_names: by number.
        machine_names: by number.

    Attributes:
        site: the site now.
        running: jobs that run, those that are suspended or preempted included.
        waiting: jobs that are queued, those that may not start yet included.
        machines: numbers of the machines, by name.
        policies: names of those that can be asked.
        shut: numbers of the machines that are closed to jobs.
    """

    def __init__(
        self,
        engine: Engine,
        rules: SiteRules,
        job_names: Mapping[int, str],
        machine_names: Sequence[str],
    ) -> None:
        self.site = site = engine.site
        self.rules = rules
        self._names = job_names
        self.machines = {name: number for number, name in enumerate(machine_names)}
        self.running = [job for job in site.jobs.values() if job.state in _ON_A_MACHINE]
        self.waiting = [job for job in site.jobs.values() if job.state == QUEUED]
        self.shut = {
            machine
            for machine, (spec, state) in enumerate(zip(site.specs, site.state, strict=True))
            if spec is not None and state == SHUT
        }
        for runner in engine.runners:
            _take_over(runner)
        self.policies = [runner.name for runner in engine.runners if not runner.broken]
        state = engine.save()
        self._runners = {name: msgspec.msgpack.encode(saved) for name, saved in state["runners"]}
        state |= {"runners": [], "resting": {}, "silent": False, "pass_due": False, "wake_s": None}
        self._state = msgspec.msgpack.encode(state)

    def name(self, job: Job) -> str:
        """The batch system's name of a job."""
        return self._names[job.number]

    def possible(self) -> list[Job]:
        """Those that may start now if there is room, and fit on some machine of the site."""
        is_possible, now_s = Possible(self.site), self.site.now
        return [
            job
            for job in self.waiting
            if (job.spec.eligible_s or now_s) <= now_s and (job.is_plain or is_possible(job.spec))
        ]

    def engine(
        self, policy: Policy, seed: int, actuator: Actuator, batch_system: Callable[[], Policy]
    ) -> tuple[Engine, PolicyRunner]:
        """A copy of it in which a policy acts, with what it had learned in shadow.

        Args:
            policy: fresh.
            seed: of what it draws from now on.
            actuator: carries its decisions out.
            batch_system: makes the policy that stands for it, where deferrals are bounded.

        Raises:
            PolicyError: it does not take what it had learned.
        """
        now, rules = self.site, self.rules
        site = Site(now.local_time, list(now.cluster_specs), rules.reboot_day_s, now.utilities)
        accounting = Accounting(now.local_time, dict(rules.shares), utilities=now.utilities)
        runner = PolicyRunner(
            policy, True, rules.reconsider_s, strict=False, discipline=rules.discipline
        )
        engine = Engine(
            site, accounting, [runner], actuator, ReplayDecisionLog(keep_nothing),
            estimator=rules.make_estimator(),
        )  # fmt: skip
        # decoded each time: a policy may keep and change what it is given
        state = msgspec.msgpack.decode(self._state)
        learned = msgspec.msgpack.decode(self._runners[policy.name])
        fresh = engine.restore({**state, "runners": [[policy.name, learned]]})
        if fresh or runner.broken:
            raise PolicyError(runner.broken or "it does not take what it had learned")
        policy.rng.seed(seed)
        if rules.longest_deferral_s < inf:
            runner.hand_back = HandBack(rules.longest_deferral_s, batch_system())
            for number, pending in runner.queue.waiting.items():
                if pending.deferred_since_s is not None:
                    runner.hand_back.limit.keep(number, site.now)
        return engine, runner


def _take_over(runner: PolicyRunner) -> None:
    """Every job that its policy does not defer is due, in the order in which jobs joined the queue.

    In shadow a job that was to start waits on, and falls behind others: that is no order.
    """
    queue = runner.queue
    queue.blocked.clear()
    queue.ranked.clear()
    due = set(queue.fresh)
    for number, pending in queue.waiting.items():
        if pending.deferred_since_s is None:
            if pending.action == START:
                pending.action = pending.reason = ""
            queue.undefer(pending)
            due.add((number, pending.stamp))
    queue.fresh = sorted(due, key=lambda entry: entry[1])
    runner.scheduling_pass.awaited.jobs.clear()
