"""Which jobs a list is asked for, by what the client that asks is shown."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import compress
from typing import Protocol

from msgspec import Struct

from outrider.engine.state.site import Site
from outrider.model.jobs import HELD_STATE, JOB_STATE_NAMES, QUEUED, Job
from outrider.service.core.core import Core
from outrider.service.views.job_waits import waits_s


class Names(Protocol):
    """How a client is shown users; `UserNames` is such a one."""

    shown: bool

    def user(self, name: str) -> str:
        """A user."""
        ...

    def vo(self, vo: str) -> str:
        """A VO, which may have a user's name in it."""
        ...


class JobFilters(Struct, frozen=True, kw_only=True):
    """What narrows a list of jobs; None of each: nothing.

    Attributes:
        state: they are in it.
        user, vo: theirs, as the client is shown it: a name that is hidden finds none.
        group: they are on a machine of it, or may use one by what was declared of the job.
        reason: stands in what `reasons_of` says, be its letters large or small.
        waiting_over_s: they wait, and for longer.
    """

    state: str | None = None
    user: str | None = None
    vo: str | None = None
    group: str | None = None
    reason: str | None = None
    waiting_over_s: float | None = None

    def chosen(self, core: Core, jobs: list[Job], names: Names) -> list[Job]:
        """Those of the jobs that are asked for, in their order."""
        if self.state is not None:
            state = JOB_STATE_NAMES.index(self.state)
            jobs = [job for job in jobs if job.state == state]
        if self.waiting_over_s is not None:
            jobs = _waiting_over(self.waiting_over_s, jobs, core.site.now)
        if self.user is not None:
            user = cache(names.user)  # a pseudonym takes a hash
            jobs = [job for job in jobs if user(job.spec.user) == self.user]
        if self.vo is not None:
            vo = cache(names.vo)
            jobs = [job for job in jobs if vo(job.spec.vo) == self.vo]
        if self.group is not None:
            jobs = _in_group(self.group, jobs, core.site)
        if self.reason is not None:
            jobs = _because(self.reason, core, jobs, names.shown)
        return jobs


def reasons_of(core: Core, jobs: Iterable[Job], names_shown: bool) -> list[str | None]:
    """Why each job does not run; None: it does, or nothing was said.

    Of one that is held, the batch system's words, for clients that are shown names: there may be
    some in it. Of one that waits, the first policy's that has decided about it.
    """
    queues = [runner.queue.waiting.get for runner in core.runners]
    reasons: list[str | None] = []
    for job in jobs:
        state, said = job.state, ""
        if state == QUEUED:
            number = job.number
            for pending_of in queues:
                pending = pending_of(number)
                if pending is not None and pending.reason:
                    said = pending.reason
                    break
        elif state == HELD_STATE and names_shown:
            said = job.held_because
        reasons.append(said or None)
    return reasons


def _waiting_over(seconds: float, jobs: Sequence[Job], now_s: float) -> list[Job]:
    return list(compress(jobs, (waits_s(jobs, now_s) > seconds).tolist()))  # NaN is not over


def _in_group(name: str, jobs: Iterable[Job], site: Site) -> list[Job]:
    if name not in site.cluster_names:
        return []
    group = site.cluster_names.index(name)
    members = frozenset(site.members[group])

    @cache
    def may_use(eligible: str) -> bool:
        """One look at the machines of each class that the jobs here are of."""
        return not eligible or not members.isdisjoint(site.classes.get(eligible, ()))

    return [
        job
        for job in jobs
        if (
            site.machine_cluster[job.machine] == group
            if job.machine >= 0
            else may_use(job.spec.eligible)
        )
    ]


def _because(text: str, core: Core, jobs: list[Job], names_shown: bool) -> list[Job]:
    reasons, wanted = reasons_of(core, jobs, names_shown), text.casefold()
    fitting = {said for said in set(reasons) if said is not None and wanted in said.casefold()}
    return [job for job, said in zip(jobs, reasons, strict=True) if said in fitting]
