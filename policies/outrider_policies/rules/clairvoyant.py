"""A bound for judging: the owners' next log-ins and the jobs' lengths are known."""

from math import isnan
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, SiteView

_UNKNOWN_W = float("inf")


class ClairvoyantSettings(PolicySettings, frozen=True):
    """How often a job that fits nowhere is looked at again."""

    reconsider_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Decision epoch: a job kept queued is decided again after this. "
                "Unset: the site's own.",
            ),
        ]
        | None
    ) = None


class Clairvoyant(Policy[ClairvoyantSettings]):
    """A job starts on a machine that will be left alone until it is done, or not at all.

    Of these it takes one of least watts, and there the one that is left alone for the shortest
    time, which spares the long stretches for long jobs. A job that never ends by itself is kept
    until somebody kills it. No starvation guard: what it keeps could not have been completed.

    It asks `outrider.api.site_view.Oracle`, so only replay can run it. No policy can waste less;
    the rule is greedy, so another might make jobs wait less.
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
        """The least machine, by watts and then by the time left, that is left alone long enough."""
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
        """The machine whose owner comes first, but not before the job is done."""
        best, first_s = NOWHERE, float("inf")
        for cluster in clusters:
            for machine in view.members[cluster]:
                if view.is_free(machine):
                    login_s = self._next_login_s(machine, view.now)
                    if end_s <= login_s and (login_s < first_s or best == NOWHERE):
                        best, first_s = machine, login_s
        return best

    def _next_login_s(self, machine: int, now: float) -> float:
        """Asked of the oracle once for each log-in: an answer holds until it has happened."""
        login_s = self._login_s.get(machine)
        if login_s is None or login_s <= now:
            login_s = self._login_s[machine] = self._oracle().next_login_s(machine, now)
        return login_s

    def _oracle(self) -> Any:
        if self.oracle is None:
            raise ValueError(f"{self.name} needs the truth about the trace; only replay has it")
        return self.oracle

    def explain(self, job: Job, view: SiteView) -> str:
        """Whether it could be completed now."""
        if self._place(job, view) != NOWHERE:
            return "a machine that is free now will be left alone until it is done"
        return "no machine that is free now will be left alone until it is done"
