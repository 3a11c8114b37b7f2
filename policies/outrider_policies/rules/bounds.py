"""Bounds for comparison: policies with information that no real policy can have."""

from collections import OrderedDict
from math import isnan
from typing import Annotated, Any, Final

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, Listens, Policy, PolicySettings, SiteView, events

# -- clairvoyant -----------------------------------------------------------------------------------
# A bound for comparison: next log-ins of owners and run times of jobs are known.

_UNKNOWN_W = float("inf")


class ClairvoyantSettings(PolicySettings, frozen=True):
    """Settings of the bounds: the time until a deferred job is decided again."""

    reconsider_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Decision epoch: a deferred job is decided again after this. "
                "Unset: the site's own.",
            ),
        ]
        | None
    ) = None


class Clairvoyant(Policy[ClairvoyantSettings]):
    """Policy that starts a job only on a machine that stays available until it completes.

    Of these it takes one of the fewest watts, and among them the one that stays available for the
    shortest time, which leaves the long times for long jobs. A job that never completes is
    deferred until it is removed. There is no starvation guard, because a deferred job could not
    have completed.

    It needs `outrider.api.site_view.Oracle`, so only replay can run it. No policy can waste less;
    the rule is greedy, so with another jobs might wait less.
    """

    name = "clairvoyant"
    description = "bound for judging: knows job lengths and when owners will log in"
    api_version = 1
    features = ("true run time", "next log-ins")
    needs_oracle = True

    def __init__(self, settings: ClairvoyantSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.reconsider_s = settings.reconsider_s
        self._login_s: dict[int, float] = {}

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the machine of fewest watts, then of least time available, that suffices."""
        machine = self._place(job, view)
        if machine != NOWHERE:
            return Choice(machine, "completes", 1.0)
        if may_defer:
            return Choice(NOWHERE, "hopeless", 1.0)
        return Choice(view.draw(self.rng), "forced", None)

    def _place(self, job: Job, view: SiteView) -> int:
        run_s = self._oracle().run_s(job.number)
        end_s = view.now + run_s
        if isnan(run_s) or end_s > view.next_reboot_s():
            return NOWHERE
        by_watts: dict[float, list[int]] = {}
        for cluster, free in enumerate(view.free_n):
            if free:
                watts = view.active_w[cluster]
                by_watts.setdefault(_UNKNOWN_W if watts is None else watts, []).append(cluster)
        for _, clusters in sorted(by_watts.items()):
            machine = self._tightest(clusters, end_s, view)
            if machine != NOWHERE:
                return machine
        return NOWHERE

    def _tightest(self, clusters: list[int], end_s: float, view: SiteView) -> int:
        """Return the machine whose owner logs in first, but not before the job completes."""
        best, first_s = NOWHERE, float("inf")
        for cluster in clusters:
            for machine in view.members[cluster]:
                if view.is_free(machine):
                    login_s = self._next_login_s(machine, view.now)
                    if end_s <= login_s and (login_s < first_s or best == NOWHERE):
                        best, first_s = machine, login_s
        return best

    def _next_login_s(self, machine: int, now: float) -> float:
        """Return the next log-in; cached, because the answer is valid until that log-in happens."""
        login_s = self._login_s.get(machine)
        if login_s is None or login_s <= now:
            login_s = self._login_s[machine] = self._oracle().next_login_s(machine, now)
        return login_s

    def _oracle(self) -> Any:
        if self.oracle is None:
            raise ValueError(f"{self.name} needs the truth about the trace; only replay has it")
        return self.oracle

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe whether the job could complete if started now."""
        if self._place(job, view) != NOWHERE:
            return "a machine that is free now will stay available until it completes"
        return "no machine that is free now will stay available until it completes"


# -- clairvoyant jobs ------------------------------------------------------------------------------
# A bound for comparison: run times of jobs are known, log-ins of owners are not.

_OWNER_KINDS: Final = (events.OWNER_CAME, events.OWNER_WENT)


class ClairvoyantJobs(Listens, Policy[ClairvoyantSettings]):
    """Policy that starts jobs only if they can complete before the reboot.

    Jobs that never complete are deferred. Others get a machine of the fewest watts. Of these it
    takes the one without an owner for the longest time, the best guess from the past that no owner
    returns soon.

    It needs `outrider.api.site_view.Oracle` for run times, so only replay can run it. It is not a
    strict bound: a policy that predicts owners better may do better.
    """

    name = "clairvoyant_jobs"
    description = "bound for judging: knows job lengths, and which jobs never end"
    api_version = 1
    features = ("true run time", "time since an owner sat at the machine")
    needs_oracle = True

    def __init__(self, settings: ClairvoyantSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.reconsider_s = settings.reconsider_s
        self._ownerless: OrderedDict[int, None] = OrderedDict()  # longest without owner first

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Move the machine last used by an owner, or last joined, to the end."""
        if kind in _OWNER_KINDS or machine not in self._ownerless:
            self._ownerless[machine] = None
            self._ownerless.move_to_end(machine)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the machine of fewest watts that has been without an owner the longest."""
        if may_defer and self._hopeless(job, view):
            return Choice(NOWHERE, "hopeless", 1.0)
        min_w, active_w = _min_free_watts(view), view.active_w
        for machine in self._ownerless:
            if view.is_free(machine) and active_w[view.cluster_of(machine)] == min_w:
                return Choice(machine, "availability", 1.0)
        return Choice(view.draw(self.rng), "unknown_watts", None)

    def _hopeless(self, job: Job, view: SiteView) -> bool:
        if self.oracle is None:
            raise ValueError(f"{self.name} needs the truth about the trace; only replay has it")
        run_s = self.oracle.run_s(job.number)
        return isnan(run_s) or view.now + run_s > view.next_reboot_s()

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe whether the job can complete before the next reboot."""
        if self._hopeless(job, view):
            return "it would not end before the next reboot, if ever"
        return "it starts on the free machine of fewest watts that was without owner the longest"


def _min_free_watts(view: SiteView) -> float | None:
    """Return the fewest active watts of a cluster with a free machine; None if unknown."""
    known = [w for w, n in zip(view.active_w, view.free_n, strict=True) if n and w is not None]
    return min(known, default=None)
