"""A policy runner: one policy, acting or in shadow, with its own queue and random stream.

Every runner decides the same pending jobs on the same view of the site: see `SchedulingPass`.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Any, cast

from outrider.api.capabilities import Decides, Learns, Listens, Orders, Plans, Predicts, Ranks
from outrider.api.policy import Policy
from outrider.engine.accounting.deferrals import Deferrals
from outrider.engine.accounting.predictions import Predictions
from outrider.engine.ports import Actuator
from outrider.engine.scheduling.pending_queue import PendingDecision, PendingQueue
from outrider.engine.scheduling.per_job_pass import OrderedPass, PerJobPass
from outrider.engine.scheduling.placement import Refusal
from outrider.engine.scheduling.plain_data import PLAIN_KEYS, check_key, check_saved
from outrider.engine.scheduling.plan_pass import PlanPass
from outrider.engine.scheduling.queue_pass import QueuePass
from outrider.engine.scheduling.ranking_pass import RankingPass
from outrider.engine.scheduling.scheduling_pass import Record, SchedulingPass
from outrider.engine.state.site import Site
from outrider.model.decisions import DEFER, NOWHERE, START, UNCHOSEN
from outrider.model.disciplines import FIRST_FIT, Discipline
from outrider.model.errors import PolicyError
from outrider.model.jobs import Job
from outrider.model.outcomes import EVICTED_RUN, REMOVED_RUN, Outcome


class PolicyRunner:
    """One policy that decides: it acts, or in shadow only records what it would do.

    Args:
        policy: who decides.
        acting: True for the one whose starts are carried out; False in shadow.
        reconsider_s: decision epoch where the policy has none of its own.
        strict: an error in the policy is raised (replay). Otherwise it is noted in `broken`, and
            the runner stays empty from then on while the others go on (the daemon).
        exact: remember each job that was deferred, for a report that knows the truth (replay).
        discipline: who may start before a job that does not fit: `outrider.model.disciplines`.
        is_narrow: every job asks for one CPU of any machine: whoever is first fits, and all
            disciplines are one.

    Attributes:
        discipline: the same; None where the policy plans and nobody waits for another.
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
        self.strict = strict
        self.broken = ""
        self.policy = policy
        self.name = policy.name
        self.acting = acting
        own = policy.reconsider_s
        self.reconsider_s = reconsider_s if own is None else own
        self.queue = PendingQueue()
        self.running: dict[int, tuple[Hashable, bool]] = {}
        self.decisions = 0
        self.starts = 0
        self.agreed = 0
        self.disagreed = 0
        self.reward_sum = 0.0
        self.reward_n = 0
        learns = isinstance(policy, Learns)
        self._learner = cast(Learns, policy)  # asked only where it `learns`
        listens = isinstance(policy, Listens)
        self._listener = cast(Listens, policy)  # told only where it subscribes
        predicts = isinstance(policy, Predicts)
        self._predictor = cast(Predicts, policy)  # asked only where there are `predictions`
        self.learns = learns
        self.subscribes = self._listener.subscribes if listens else frozenset[int]()
        self.predictions = Predictions() if predicts else None
        self.deferrals = Deferrals(self.reconsider_s, exact)
        self.longest_ended_deferral_s = 0.0
        self.moves: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.discipline = None if policy.decides is Decides.PLAN else discipline
        self._pass = self._pass_for(FIRST_FIT if is_narrow else discipline)
        self.plans = isinstance(self._pass, PlanPass)
        self.looks_at_runs = isinstance(self._pass, QueuePass)

    def _pass_for(self, discipline: Discipline) -> SchedulingPass:
        """As the policy declares that it decides."""
        policy = self.policy
        if isinstance(policy, Plans):
            return PlanPass(self, policy)
        if discipline != FIRST_FIT or isinstance(policy, Ranks):
            return RankingPass(self, discipline)
        return OrderedPass(self, policy) if isinstance(policy, Orders) else PerJobPass(self)

    # -- what happens to jobs -----------------------------------------------------------------

    def enqueue(self, number: int) -> None:
        """A job waits and must be decided: submitted, evicted or released."""
        if not self.broken:
            self.queue.enter(number)

    @property
    def somebody_waits(self) -> bool:
        """Whether a machine that frees concerns anybody here."""
        return self._pass.somebody_waits

    def dequeue(self, number: int, site: Site) -> PendingDecision | None:
        """A job no longer waits. Returns its pending decision."""
        pending = self.queue.waiting.pop(number, None)
        if pending is None:
            return None
        if self.looks_at_runs:
            self._withdrew(pending, site)
        was_deferred = pending.deferred_before_s or pending.deferred_since_s is not None
        if was_deferred or not self.acting:  # in shadow a start is due again an epoch later, too
            self.queue.undefer(pending)
        if was_deferred:
            pending.end_deferral(site.now)
            self.longest_ended_deferral_s = max(
                self.longest_ended_deferral_s, pending.deferred_before_s
            )
            self.deferrals.add(number, pending.deferred_before_s)
        return pending

    def changed(self, job: Job, site: Site) -> None:
        """A job is declared anew; if it waits, it keeps its place in the queue."""
        pending = self.queue.waiting.get(job.number)
        if pending is None or not self.looks_at_runs or self.broken:
            return
        try:
            self._pass.changed(job, pending, site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)

    def _withdrew(self, pending: PendingDecision, site: Site) -> None:
        try:
            self._pass.on_dequeue(pending, site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)

    def started(self, job: Job, site: Site) -> None:
        """A run began, by this policy's choice or, in shadow, by the batch system's."""
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
            except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
                self._fail(error)
            else:
                self.running[job.number] = (key, on_policy)
        if self.predictions is not None and not self.broken:
            try:
                said = self._predictor.predict(job, job.machine, site)
                self.predictions.keep(job.number, said)
            except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
                self._fail(error)

    def judge(self, job: Job, ending: str, reason: str, run_s: float, now: float) -> None:
        """A run ended: judge its prediction, and a deferral before it, by what happened."""
        if self.predictions is not None:
            self.predictions.score(job.number, ending, reason, run_s, now)
        if ending is not EVICTED_RUN:
            self.deferrals.end(job.number, ending)

    def deferred_s(self, now: float) -> dict[int, float]:
        """For how long the jobs that wait were deferred until now, by number."""
        return {number: s.deferred_s(now) for number, s in self.queue.waiting.items()}

    def longest_deferral_s(self, now: float) -> float:
        """For how long any job was deferred, those that wait until now included."""
        return max(self.longest_ended_deferral_s, *self.deferred_s(now).values(), 0.0)

    def calibration(self, now: float) -> dict[str, Any] | None:
        """How true its predictions were until now; None where the policy predicts nothing."""
        return None if self.predictions is None else self.predictions.report(now)

    def ended(
        self, job: Job, ending: str, reason: str, run_s: float, site: Site
    ) -> tuple[float | None, bool]:
        """A run ended: let the policy learn from it.

        Returns the reward, if there is one, and whether it was of the policy's own choice.
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
        """A job left the queue without running."""
        pending = self.dequeue(job.number, site)
        if pending is not None and pending.action == DEFER:
            self._pass.note_end(job.number, reason)
        self.deferrals.end(job.number, REMOVED_RUN)
        if not self.learns:
            return None
        now = site.now
        outcome = Outcome(
            job.number, (), NOWHERE, NOWHERE, now, now, 0.0, REMOVED_RUN, reason
        )  # fmt: skip
        return self._learn(outcome, site, on_policy=True)

    def on_machine_event(self, kind: int, machine: int, site: Site) -> None:
        """Something happened to a machine, of a kind that the policy subscribes to."""
        if self.broken:
            return
        try:
            self._listener.on_machine_event(kind, machine, site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)

    def _learn(self, outcome: Outcome, site: Site, on_policy: bool) -> float | None:
        if self.broken:
            return None
        try:
            rewards = self._learner.observe(outcome, site, on_policy)
            if not rewards:
                return None
            total = sum(rewards)
            self.reward_sum += total
            self.reward_n += len(rewards)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)
            return None
        return total

    def refuse(self, job: Job, machine: Any, refusal: Refusal) -> str:
        """The policy chose what is impossible: the reason with which the job stays queued.

        It is counted in `refused`, by why (`placement.WHYS`), and the policy goes on. Raises
        `PolicyError` where runners are strict.
        """
        if self.strict:
            raise PolicyError(
                f"impossible to start job {job.number} on machine {machine} ({refusal.why}): "
                f"asked for {refusal.asked}, but {refusal.left}"
            )
        self.refused[refusal.why] += 1
        return f"refused_{refusal.why}"

    # -- to be looked at ----------------------------------------------------------------------

    def explain(self, job: Job, site: Site) -> str:
        """What the policy says of a job; that it could not, if it failed. It keeps its runner."""
        try:
            return str(self.policy.explain(job, site))
        except Exception as error:  # noqa: BLE001 - a stranger's code; nothing hangs on a sentence
            return f"{self.name} could not say why: {type(error).__name__}: {error}"

    def learned(self, site: Site) -> dict[str, Any] | None:
        """What the policy shows of what it learned; an empty table with the reason if it failed."""
        if self.broken or not self.learns:
            return None
        try:
            return self._learner.learned(site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; nothing hangs on a table
            why = f"{self.name} could not show it: {type(error).__name__}: {error}"
            return {"title": why, "columns": [], "rows": []}

    def _fail(self, error: Exception) -> None:
        """The policy raised an error. Raises `PolicyError` where runners are strict."""
        what = "" if isinstance(error, PolicyError) else f"{type(error).__name__}: "
        text = f'policy "{self.name}" failed: {what}{error}'
        if self.strict:
            raise PolicyError(text) from error
        self.broken = text
        self.queue.clear()
        self._pass.clear()
        self.running.clear()
        if self.predictions is not None:
            self.predictions.open.clear()

    # -- a pass -------------------------------------------------------------------------------

    def next_look_s(self, number: int) -> float | None:
        """When a waiting job is decided again; None: as soon as a machine frees, or never."""
        pending = self.queue.waiting.get(number)
        if pending is None or pending.decided_s is None or pending.reason in UNCHOSEN:
            return None
        due_s = pending.decided_s + self.reconsider_s
        if pending.deferred_since_s is not None:
            guard_s = pending.deferred_since_s + self.policy.max_defer_s - pending.deferred_before_s
            due_s = min(due_s, guard_s)
        return due_s

    def join(self, site: Site, actuator: Actuator, record: Record) -> None:
        """Bind to an engine; in shadow nothing goes to the actuator."""
        self._pass.join(site, actuator if self.acting else None, record)

    def run_pass(self, now: float) -> float:
        """Decide what is due; returns when a job is due again, `NEVER` if none is deferred."""
        queue = self.queue
        queue.release(now)
        try:
            self._pass.decide_due()
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)
        return queue.next_due_s()

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, site: Site) -> dict[str, Any]:
        """Everything that changes, as plain data, the policy's learning and chance included.

        A policy that fails at it has failed: it loses its runner, and the others are saved.
        """
        state = self.policy.rng.getstate()
        learned: dict[str, Any] = {}
        try:
            learned = self._learned_state(site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)
        return {
            "policy": learned,
            "rng": [state[0], list(state[1]), state[2]],
            "queue": self.queue.save(),
            "columns": self._pass.save(),
            "moves": dict(self.moves),
            "refused": dict(self.refused),
            "running": [[number, key, on] for number, (key, on) in self.running.items()],
            "predictions": None if self.predictions is None else self.predictions.save(),
            "deferrals": self.deferrals.save(),
            "broken": self.broken,
            "counts": [self.decisions, self.starts, self.agreed, self.disagreed, self.reward_n],
            "sums": [self.reward_sum, self.longest_ended_deferral_s],
        }

    def _learned_state(self, site: Site) -> dict[str, Any]:
        """What the policy saves. Raises `TypeError` if it is not plain data."""
        saved = self.policy.save(site)
        check_saved(saved)
        return saved

    def restore(self, saved: dict[str, Any], clusters: list[int], site: Site) -> bool:
        """Go on from what `save` gave; `clusters[i]` is today's number of saved cluster i.

        False, and nothing is changed, if the policy says that what it learned does not fit. Any
        other error is a failure: nobody knows what it changed, so that its runner stays empty.
        """
        try:
            self.policy.restore(saved["policy"], site)
        except ValueError:
            return False
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self._fail(error)
            return False
        version, numbers, gauss = saved["rng"]
        self.policy.rng.setstate((version, tuple(numbers), gauss))
        self.queue.restore(saved["queue"], clusters)
        columns = saved.get("columns") or {}
        self._pass.restore(columns, site)
        if bool(columns) != self.looks_at_runs:  # another kind of pass was saved: its rule changed
            self.queue.decide_anew(START if self.acting else "")
        self.moves = Counter(saved.get("moves", {}))
        self.refused = Counter(saved["refused"])
        if self.learns:  # it may have been saved by a release of the policy that did
            self.running = {number: (_hashable(key), on) for number, key, on in saved["running"]}
        if self.predictions is not None and saved["predictions"] is not None:
            self.predictions.restore(saved["predictions"])
        self.deferrals.restore(saved["deferrals"])
        self.broken = saved["broken"]
        self.decisions, self.starts, self.agreed, self.disagreed, self.reward_n = saved["counts"]
        self.reward_sum, self.longest_ended_deferral_s = saved["sums"]
        return True


def _hashable(key: Any) -> Hashable:
    """A key as it was before plain data made lists of its tuples."""
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key
