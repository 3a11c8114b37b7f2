"""What passes over the whole queue share: its jobs, as columns that policies read."""

from typing import Any

from outrider.api.capabilities import Orders, SeesQueue
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.queue_columns import QueueColumns
from outrider.engine.scheduling.scheduling_pass import SchedulingPass
from outrider.engine.state.site import Site
from outrider.model.jobs import Job


class QueuePass(SchedulingPass):
    """A pass whose policy sees all pending jobs at once.

    Attributes:
        table: those jobs, one row each.
    """

    def __init__(self, runner: GuardedPolicy) -> None:
        super().__init__(runner)
        self._orders = runner.policy if isinstance(runner.policy, Orders) else None
        self._observer = runner.policy if isinstance(runner.policy, SeesQueue) else None
        self.table = QueueColumns()

    def _admit(self) -> list[tuple[Job, PendingDecision]]:
        """Take the jobs that are due; one that is new in the queue gets its row."""
        site, observer = self._site, self._observer
        due = []
        for number, pending in self._queue.take_fresh():
            job = site.jobs[number]
            if self.table.at(pending.stamp) is None:
                self.table.add(job, pending.stamp, site.now, self._order(job, site))
                if observer is not None:
                    observer.on_enqueue(job, site)
            self._is_due(number)
            due.append((job, pending))
        return due

    def _order(self, job: Job, site: Site) -> float:
        return 0.0 if self._orders is None else self._orders.order(job, site)

    def _is_due(self, number: int) -> None:
        """A job is to be decided in this pass."""

    def on_dequeue(self, pending: PendingDecision, site: Site) -> None:
        """A job left the queue."""
        job = self.table.remove(pending.stamp)
        if job is not None and self._observer is not None:
            self._observer.on_dequeue(job, site)

    def changed(self, job: Job, pending: PendingDecision, site: Site) -> None:
        """A job in the queue is declared anew: to its policy as if it left and came back."""
        if self.table.at(pending.stamp) is None:
            return
        observer = self._observer
        if observer is not None:
            observer.on_dequeue(job, site)
        self.table.change(job, pending.stamp, self._order(job, site))
        if observer is not None:
            observer.on_enqueue(job, site)

    def leave(self, job: Job, pending: PendingDecision) -> None:
        """A move took the job out of the queue: what follows in this pass no longer sees it."""
        self.on_dequeue(pending, self._site)

    @property
    def somebody_waits(self) -> bool:
        """Whether a machine that frees concerns anybody here."""
        return bool(self.table.jobs)

    def clear(self) -> None:
        """Forget all jobs."""
        self.table = QueueColumns()

    def save(self) -> dict[str, Any]:
        """The queue, as plain data."""
        return self.table.save()

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""
        if saved:  # not in a snapshot of a policy that decided job by job then
            self.table.restore(saved, site.jobs)
