"""Present state of a site with its shadow policies, to be simulated forward."""

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
    """Rules of a site that a saved state does not contain.

    Attributes:
        discipline: the rule by which jobs may pass one that does not fit.
        reconsider_s: decision epoch of policies without their own, seconds.
        reboot_day_s: second of the day of the nightly reboot; None: none.
        shares: fair shares by VO.
        make_estimator: makes the run time estimator, or None.
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
    """Present state of a site, of which fresh copies can be made.

    Args:
        engine: with the policies in shadow; it cannot be used afterwards: jobs become due.
        rules: of the site.
        job_names: by number.
        machine_names: by number.

    Attributes:
        site: the site now.
        running: running jobs, including suspended and preempted ones.
        waiting: queued jobs, including those that may not start yet.
        machines: numbers of the machines, by name.
        policies: names of the policies that work.
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
        """Return the batch system's name of a job."""
        return self._names[job.number]

    def possible(self) -> list[Job]:
        """Return the jobs that may start now if CPUs are free, and fit a machine of the site."""
        is_possible, now_s = Possible(self.site), self.site.now
        return [
            job
            for job in self.waiting
            if (job.spec.eligible_s or now_s) <= now_s and (job.is_plain or is_possible(job.spec))
        ]

    def engine(
        self, policy: Policy, seed: int, actuator: Actuator, batch_system: Callable[[], Policy]
    ) -> tuple[Engine, PolicyRunner]:
        """Return a copy in which a policy acts, with what it had learned in shadow.

        Args:
            policy: newly made.
            seed: of its random draws from now on.
            actuator: executes its decisions.
            batch_system: makes the policy that represents it, where deferrals are bounded.

        Raises:
            PolicyError: the policy does not accept its learned state.
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
            raise PolicyError(runner.broken or "it does not accept its learned state")
        policy.rng.seed(seed)
        if rules.longest_deferral_s < inf:
            runner.hand_back = HandBack(rules.longest_deferral_s, batch_system())
            for number, pending in runner.queue.waiting.items():
                if pending.deferred_since_s is not None:
                    runner.hand_back.limit.keep(number, site.now)
        return engine, runner


def _take_over(runner: PolicyRunner) -> None:
    """Make every job that its policy does not defer due, in the order of joining the queue.

    In shadow a job that was to start still waits, and falls behind others: that order is not real.
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
