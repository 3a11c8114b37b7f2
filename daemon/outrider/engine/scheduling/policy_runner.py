"""Policy runner: one policy, acting or in shadow, that decides, learns and is scored.

Every runner decides the same pending jobs on the same view of the site. `DecidingPolicy` contains
how it decides. This module contains the events of runs, what the policy learns from them, and
whether its choices and predictions came true.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

from outrider.api.capabilities import Learns, Listens, Predicts
from outrider.api.policy import Policy
from outrider.engine.accounting.predictions import Predictions
from outrider.engine.scheduling.deciding_policy import DecidingPolicy
from outrider.engine.scheduling.guarded_policy import PLAIN_KEYS, check_key, check_saved
from outrider.engine.state.packing import pack
from outrider.engine.state.site import Site
from outrider.model.decisions import (
    DEFER,
    EVICTED_RUN,
    NOWHERE,
    REMOVED_RUN,
    START,
    UNCHOSEN,
    Outcome,
)
from outrider.model.jobs import Job
from outrider.model.modes import FIRST_FIT, Discipline


class PolicyRunner(DecidingPolicy):
    """Policy with its own queue: it acts, or in shadow only records what it would do.

    Args:
        policy, acting, reconsider_s, strict, exact, discipline, is_narrow: see `DecidingPolicy`.

    Attributes:
        agreed, disagreed: counts, in shadow, of runs that the batch system began as the policy had
            chosen, and of others.
        learns: True if the policy learns from the ends of runs.
        running: the key of each current run, and whether the policy chose it, by job number.
        reward_sum, reward_n: of the rewards that the policy computed from the ends of runs.
        predictions: its predictions, scored; None where it predicts nothing.
        subscribes: kinds of events about machines that it receives.
    """

    def __init__(
        self,
        policy: Policy,
        acting: bool,
        reconsider_s: float,
        strict: bool = True,
        exact: bool = False,
        discipline: Discipline = FIRST_FIT,
        is_narrow: bool = False,
    ) -> None:
        super().__init__(policy, acting, reconsider_s, strict, exact, discipline, is_narrow)
        self.agreed = 0
        self.disagreed = 0
        self._learner = policy if isinstance(policy, Learns) else None
        self.learns = self._learner is not None
        self.running: dict[int, tuple[Hashable, bool]] = {}
        self.reward_sum = 0.0
        self.reward_n = 0
        self._predictor = policy if isinstance(policy, Predicts) else None
        self.predictions = None if self._predictor is None else Predictions()
        nothing = frozenset[int]()
        self.subscribes = policy.subscribes if isinstance(policy, Listens) else nothing

    def forget(self) -> None:
        """Drop everything stored about jobs."""
        super().forget()
        self.running.clear()
        if self.predictions is not None:
            self.predictions.open.clear()

    def listener(self) -> Callable[[int, int, Site], None] | None:
        """Return the function to call with (kind, machine, site) after a machine event.

        For events of the kinds in `subscribes`; None where there are none. A separate function,
        because there are millions of such events.
        """
        listener = self.policy
        if not isinstance(listener, Listens):
            return None

        def on_machine_event(kind: int, machine: int, site: Site) -> None:
            if self.broken:
                return
            try:
                listener.on_machine_event(kind, machine, site)
            except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
                self.fail(error)

        return on_machine_event

    # -- runs and their ends ------------------------------------------------------------------

    def started(self, job: Job, site: Site) -> None:
        """Handle a run that began, by this policy's choice or, in shadow, by the batch system's."""
        pending = self.dequeue(job.number, site)
        on_policy = self.acting
        if not self.acting and pending is not None and pending.action:
            cluster = site.machine_cluster[job.machine]
            on_policy = pending.action == START and pending.cluster == cluster
            if pending.reason not in UNCHOSEN:
                self.agreed += on_policy
                self.disagreed += not on_policy
                if pending.action == DEFER:
                    self.deferrals.cut_short(job.number)
        if self.learns and not self.broken:
            try:
                key = self.policy.group_key(job, site)
                if type(key) not in PLAIN_KEYS:
                    check_key(key)
            except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
                self.fail(error)
            else:
                self.running[job.number] = (key, on_policy)
        if self._predictor is not None and self.predictions is not None and not self.broken:
            try:
                prediction = self._predictor.predict(job, job.machine, site)
                self.predictions.keep(job.number, prediction)
            except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
                self.fail(error)

    def judge(self, job: Job, ending: str, reason: str, run_s: float, now: float) -> None:
        """Score the prediction for a run that ended, and a deferral before it, by what happened."""
        if self.predictions is not None:
            self.predictions.score(job.number, ending, reason, run_s, now)
        if ending is not EVICTED_RUN:
            self.deferrals.end(job.number, ending)

    def ended(
        self, job: Job, ending: str, reason: str, run_s: float, site: Site
    ) -> tuple[float | None, bool]:
        """Let the policy learn from a run that ended.

        Return the reward, if there is one, and whether the policy chose the run.
        """
        key, on_policy = self.running.pop(job.number, (None, False))
        if key is None:
            return None, on_policy
        machine = job.machine
        outcome = Outcome(
            job.number, key, machine, site.machine_cluster[machine], job.start_s, site.now,
            run_s, ending, reason,
        )  # fmt: skip
        return self._learn(outcome, site, on_policy), on_policy

    def removed(self, job: Job, reason: str, site: Site) -> float | None:
        """Handle a job that left the queue without running; return the reward, if there is one."""
        pending = self.dequeue(job.number, site)
        if pending is not None and pending.action == DEFER:
            self.scheduling_pass.note_end(job.number, reason)
        self.deferrals.end(job.number, REMOVED_RUN)
        if not self.learns:
            return None
        now = site.now
        outcome = Outcome(
            job.number, (), NOWHERE, NOWHERE, now, now, 0.0, REMOVED_RUN, reason
        )  # fmt: skip
        return self._learn(outcome, site, on_policy=True)

    def _learn(self, outcome: Outcome, site: Site, on_policy: bool) -> float | None:
        """Let the policy learn, if it does; return the sum of the rewards, None without any."""
        if self._learner is None or self.broken:
            return None
        try:
            rewards = self._learner.observe(outcome, site, on_policy)
            if not rewards:
                return None
            total = sum(rewards)
            self.reward_sum += total
            self.reward_n += len(rewards)
        except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
            self.fail(error)
            return None
        return total

    # -- reports ------------------------------------------------------------------------------

    def calibration(self, now: float) -> dict[str, Any] | None:
        """Return the scores of its predictions until now; None where it predicts nothing."""
        return None if self.predictions is None else self.predictions.report(now)

    def learned(self, site: Site) -> dict[str, Any] | None:
        """Return what the policy shows of its learning; if that fails, its error as title."""
        if self._learner is None or self.broken:
            return None
        try:
            return self._learner.learned(site)
        except Exception as error:  # noqa: BLE001 - a plugin's code; only a table is lost
            why = f"{self.name} could not show it: {type(error).__name__}: {error}"
            return {"title": why, "columns": [], "rows": []}


# -- runner snapshot -------------------------------------------------------------------------------
# A policy runner in a snapshot: everything that changes, as plain data.


def save_runner(runner: PolicyRunner, site: Site) -> dict[str, Any]:
    """Return a runner as plain data, with the policy's learning and random generator.

    A policy that raises here has failed: it is no longer used, and the others are saved. Raises
    `PolicyError` where the runner is strict.
    """
    state = runner.policy.rng.getstate()
    learned: dict[str, Any] = {}
    try:
        learned = _learned_state(runner, site)
    except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
        runner.fail(error)
    predictions = runner.predictions
    return {
        "policy": learned,
        "rng": [state[0], list(state[1]), state[2]],
        "queue": runner.queue.save(),
        "columns": runner.scheduling_pass.save(),
        "awaited": runner.scheduling_pass.awaited.save(),
        "moves": dict(runner.moves),
        "refused": dict(runner.refused),
        "running": [[number, key, on] for number, (key, on) in runner.running.items()],
        "predictions": None if predictions is None else predictions.save(),
        "deferrals": runner.deferrals.save(),
        "broken": runner.broken,
        "counts": [
            runner.decisions, runner.starts, runner.agreed, runner.disagreed, runner.reward_n,
        ],
        "sums": [runner.reward_sum, runner.longest_ended_deferral_s],
    }  # fmt: skip


def _learned_state(runner: PolicyRunner, site: Site) -> dict[str, Any]:
    """Return what the policy saves. Raises `TypeError` if it is not plain data."""
    saved = runner.policy.save(site)
    check_saved(saved)
    return saved


def restore_runner(
    runner: PolicyRunner, saved: dict[str, Any], clusters: list[int], site: Site
) -> bool:
    """Resume from what `save_runner` returned.

    Args:
        runner: new, with the same policy.
        saved: its state.
        clusters: `clusters[i]` is today's number of saved cluster i.
        site: restored already.

    Returns:
        False, with nothing changed, if the policy reports that what it learned does not fit. Any
        other error is a failure: what it changed is unknown, so it is no longer used.
    """
    try:
        runner.policy.restore(saved["policy"], site)
    except ValueError:
        return False
    except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
        runner.fail(error)
        return False
    version, numbers, gauss = saved["rng"]
    runner.policy.rng.setstate((version, tuple(numbers), gauss))
    runner.queue.restore(saved["queue"], clusters, site.now + runner.reconsider_s)
    columns = saved.get("columns") or {}
    runner.scheduling_pass.restore(columns, site)
    runner.scheduling_pass.awaited.restore(saved.get("awaited", []))
    if bool(columns) != runner.looks_at_runs:  # another kind of pass was saved: its rule changed
        runner.queue.decide_again(START if runner.acting else "")
    runner.moves = Counter(saved.get("moves", {}))
    runner.refused = Counter(saved["refused"])
    if runner.learns:  # it may have been saved by a release of the policy that did
        runner.running = {number: (_hashable(key), on) for number, key, on in saved["running"]}
    if runner.predictions is not None and saved["predictions"] is not None:
        runner.predictions.restore(saved["predictions"])
    runner.deferrals.restore(saved["deferrals"])
    runner.broken = saved["broken"]
    (
        runner.decisions, runner.starts, runner.agreed, runner.disagreed, runner.reward_n,
    ) = saved["counts"]  # fmt: skip
    runner.reward_sum, runner.longest_ended_deferral_s = saved["sums"]
    return True


def resume_runner(runner: PolicyRunner, saved: dict[str, Any], site: Site) -> bool:
    """Resume with what was learned before a time in which nothing was decided.

    Jobs have come and gone since, so the saved queue is not used.

    Args:
        runner: new, with the same policy, and without jobs.
        saved: what `save_runner` returned before that time.
        site: in its present state.

    Returns:
        False, with nothing changed, if the policy reports that what it learned does not fit.
    """
    predictions = saved["predictions"]
    away = {
        **saved,
        "queue": runner.queue.save(),
        "columns": runner.scheduling_pass.save(),
        "awaited": [],
        "running": [],
        "predictions": None if predictions is None else {**predictions, "open": pack(())},
        "deferrals": {**saved["deferrals"], "deferred_s": pack(()), "cut_short": pack(())},
    }
    return restore_runner(runner, away, [], site)


def _hashable(key: Any) -> Hashable:
    """Return a key with the tuples that plain data turned into lists."""
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key
