"""A bound for comparison: next log-ins of owners and run times of jobs are known."""

from math import isnan
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, SiteView

_UNKNOWN_W = float("inf")


class ClairvoyantSettings(PolicySettings, frozen=True):
    """How often a deferred job is decided again."""

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
    """Starts a job only on a machine that stays available until the job completes.

    Of these it takes one of least watts, and among them the one that stays available for the
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
        """The machine of least watts, then of least time available, that suffices for the job."""
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
        """The machine whose owner logs in first, but not before the job completes."""
        best, first_s = NOWHERE, float("inf")
        for cluster in clusters:
            for machine in view.members[cluster]:
                if view.is_free(machine):
                    login_s = self._next_login_s(machine, view.now)
                    if end_s <= login_s and (login_s < first_s or best == NOWHERE):
                        best, first_s = machine, login_s
        return best

    def _next_login_s(self, machine: int, now: float) -> float:
        """The next log-in; cached, because the answer is valid until that log-in happens."""
        login_s = self._login_s.get(machine)
        if login_s is None or login_s <= now:
            login_s = self._login_s[machine] = self._oracle().next_login_s(machine, now)
        return login_s

    def _oracle(self) -> Any:
        if self.oracle is None:
            raise ValueError(f"{self.name} needs the truth about the trace; only replay has it")
        return self.oracle

    def explain(self, job: Job, view: SiteView) -> str:
        """Whether the job could complete if started now."""
        if self._place(job, view) != NOWHERE:
            return "a machine that is free now will stay available until it completes"
        return "no machine that is free now will stay available until it completes"
