"""A bound for comparison: run times of jobs are known, log-ins of owners are not."""

from collections import OrderedDict
from math import isnan
from typing import Any, Final

from outrider.api import NOWHERE, Choice, Job, Listens, Policy, SiteView, events
from outrider_policies.rules.clairvoyant import ClairvoyantSettings

_OWNER_KINDS: Final = (events.OWNER_CAME, events.OWNER_WENT)


class ClairvoyantJobs(Listens, Policy[ClairvoyantSettings]):
    """Defers jobs that never complete; starts others if they can complete before the reboot.

    It takes a machine of least watts, and of these the one without an owner for the longest time,
    the best guess from the past where no owner will return soon.

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
        """The machine last used by an owner, or last joined, comes last."""
        if kind in _OWNER_KINDS or machine not in self._ownerless:
            self._ownerless[machine] = None
            self._ownerless.move_to_end(machine)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The machine of least watts that has been without an owner for the longest time."""
        if may_defer and self._hopeless(job, view):
            return Choice(NOWHERE, "hopeless", 1.0)
        least_w, active_w = _least_free_watts(view), view.active_w
        for machine in self._ownerless:
            if view.is_free(machine) and active_w[view.cluster_of(machine)] == least_w:
                return Choice(machine, "availability", 1.0)
        return Choice(view.draw(self.rng), "unknown_watts", None)

    def _hopeless(self, job: Job, view: SiteView) -> bool:
        if self.oracle is None:
            raise ValueError(f"{self.name} needs the truth about the trace; only replay has it")
        run_s = self.oracle.run_s(job.number)
        return isnan(run_s) or view.now + run_s > view.next_reboot_s()

    def explain(self, job: Job, view: SiteView) -> str:
        """Whether the job can complete before the next reboot."""
        if self._hopeless(job, view):
            return "it would not end before the next reboot, if ever"
        return "it starts on the free machine of least watts that was without owner the longest"


def _least_free_watts(view: SiteView) -> float | None:
    """Active watts of the most frugal cluster with a free machine; None if none is known."""
    known = [w for w, n in zip(view.active_w, view.free_n, strict=True) if n and w is not None]
    return min(known, default=None)
