"""What rounds over the whole queue share: who stands in it, as columns that policies read."""

from typing import Any

from outrider.api.capabilities import Orders, SeesQueue
from outrider.engine.scheduling.pending_jobs import Standing
from outrider.engine.scheduling.queue_columns import QueueTable
from outrider.engine.scheduling.scheduling_pass import Round, Tally
from outrider.engine.state.site import Site
from outrider.model.jobs import Job


class QueuedRound(Round):
    """A round whose policy sees all waiting jobs at once.

    Attributes:
        table: they, one row each.
    """

    def __init__(self, seat: Tally) -> None:
        super().__init__(seat)
        self._orders = seat.policy if isinstance(seat.policy, Orders) else None
        self._observer = seat.policy if isinstance(seat.policy, SeesQueue) else None
        self.table = QueueTable()

    def _admit(self) -> list[tuple[Job, Standing]]:
        """Those who are due: who got in line takes a row, who rested has one. Returns them."""
        site, observer = self._site, self._observer
        due = []
        for number, standing in self._line.take_fresh():
            job = site.jobs[number]
            if self.table.at(standing.stamp) is None:
                self.table.add(job, standing.stamp, site.now, self._order(job, site))
                if observer is not None:
                    observer.on_enqueue(job, site)
            self._is_due(number)
            due.append((job, standing))
        return due

    def _order(self, job: Job, site: Site) -> float:
        return 0.0 if self._orders is None else self._orders.order(job, site)

    def _is_due(self, number: int) -> None:
        """A job is to be decided in this round."""

    def withdrew(self, standing: Standing, site: Site) -> None:
        """A job is no longer in line."""
        job = self.table.remove(standing.stamp)
        if job is not None and self._observer is not None:
            self._observer.on_dequeue(job, site)

    def changed(self, job: Job, standing: Standing, site: Site) -> None:
        """A job in line is declared anew: to its policy as if it left and came back."""
        if self.table.at(standing.stamp) is None:
            return
        observer = self._observer
        if observer is not None:
            observer.on_dequeue(job, site)
        self.table.change(job, standing.stamp, self._order(job, site))
        if observer is not None:
            observer.on_enqueue(job, site)

    def leave(self, job: Job, standing: Standing) -> None:
        """A job is carried out of the line: what follows in this round no longer sees it."""
        self.withdrew(standing, self._site)

    @property
    def somebody_waits(self) -> bool:
        """Whether a machine that frees concerns anybody here."""
        return bool(self.table.jobs)

    def clear(self) -> None:
        """Everybody goes."""
        self.table = QueueTable()

    def save(self) -> dict[str, Any]:
        """The queue, as plain data."""
        return self.table.save()

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""
        if saved:  # not in a snapshot of a policy that decided job by job then
            self.table.restore(saved, site.jobs)
