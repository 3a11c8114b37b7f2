"""What Outrider changed of jobs of a Slurm, taken back: of some, of all, or what is overdue."""

from collections.abc import Collection, Mapping, Sequence

from outrider.api import PeerError
from outrider_adapters.noted_changes import GONE, Plan
from outrider_adapters.slurm.acting.job_acts import JobActs
from outrider_adapters.slurm.acting.job_updates import Edit, JobUpdates
from outrider_adapters.slurm.acting.priority_edits import PriorityEdits, Wanted, given_of
from outrider_adapters.slurm.acting.waiting_jobs import active_jobs


class TakingBack:
    """Lets jobs be as they were.

    Args:
        acts: by which they were changed.
        updates: of the jobs.
    """

    def __init__(self, acts: JobActs, updates: JobUpdates) -> None:
        self._acts = acts
        self._updates = updates

    def withdraw(self, names: Collection[str]) -> dict[str, str]:
        """Let jobs be as they were, but for age that they lost and were given back.

        Returns:
            the jobs for which that was refused, and why.
        """
        now_s = self._acts.controller.now_s()
        return self._take_back(names, self._acts.priorities(takes_back=True), now_s)[1]

    def withdraw_all(self) -> int:
        """Let all jobs be as they were; how many were not.

        Raises:
            PeerError: for some of them that was refused.
        """
        now_s, priorities = self._acts.controller.now_s(), self._acts.priorities(takes_back=True)
        noted = (name for p in priorities for name in p.undo_log.entries)
        names = {*self._acts.start_times.kept(now_s), *noted}
        done, refused = self._take_back(names, priorities, now_s, keeps_age=False)
        _tell(refused, len(names))
        return done

    def withdraw_stale(self) -> int:
        """Take back what lasts and is overdue; of how many jobs. Raises as `withdraw_all`."""
        if not any(p.undo_log.entries for p in self._acts.priorities(takes_back=True)):
            return 0
        done, refused = self.overdue(self._acts.controller.now_s())
        _tell(refused, done + len(refused))
        return done

    def overdue(self, now_s: int) -> tuple[int, dict[str, str]]:
        """The same at a time by Slurm's clock, and the jobs for which it was refused, with why."""
        priorities = self._acts.priorities(takes_back=True)
        names = {name for p in priorities for name in p.overdue(now_s)}
        return self._take_back(names, priorities, now_s, releases=False)

    def _take_back(
        self,
        names: Collection[str],
        priorities: Sequence[PriorityEdits],
        now_s: int,
        *,
        keeps_age: bool = True,
        releases: bool = True,
    ) -> tuple[int, dict[str, str]]:
        """For how many jobs there was something to take back; for which it was refused, and why."""
        if not names:
            return 0, {}
        waiting = self._acts.waiting(names, priorities)
        plan = self._acts.start_times.released(waiting, now_s) if releases else Plan.empty()
        wanted = {
            name: Wanted(starts_s=plan.values.get(name), keeps_age=keeps_age)
            for name in waiting
            if any(name in p.undo_log.entries for p in priorities)
        }
        changed = {*plan.values, *(n for n in names if any(p.stands(n) for p in priorities))}
        refused = self._acts.carry_out([plan], wanted, waiting, priorities, now_s, takes_back=True)
        for p in priorities:  # theirs are somebody else's from now on
            p.undo_log.forget([n for n, job in waiting.items() if p.is_anothers(n, job)])
        refused |= self._give_back(set(names) - waiting.keys(), priorities)
        refused = {name: why for name, why in refused.items() if why != GONE}
        changed = {n for n in changed if not any(p.stands(n) for p in priorities)}
        return len(changed - refused.keys()), refused

    def _give_back(
        self, names: Collection[str], priorities: Sequence[PriorityEdits]
    ) -> dict[str, str]:
        """What jobs that do not wait had before: they may be queued again. Refused: why."""
        if not any(name in p.undo_log.entries for p in priorities for name in names):
            return {}
        commands, id_of = self._acts.controller.commands, self._acts.controller.id_of
        active = active_jobs(commands)
        edits: dict[str, Edit] = {}
        for p in priorities:
            for name in names:
                if p.stands(name) and (job := id_of(name)) in active:
                    was = given_of(p.undo_log.entries[name]).was
                    edits[job] = edits.get(job, Edit())._replace(**{p.attribute: was})
        said = self._updates.make(edits, takes_back=True)
        there = active_jobs(commands) & edits.keys() if said else set()
        refused = {name: said for name in names if id_of(name) in there}
        for p in priorities:
            p.undo_log.forget(set(names) - refused.keys())
        return refused


def _tell(refused: Mapping[str, str], n: int) -> None:
    if refused:
        name, why = next(iter(refused.items()))
        raise PeerError(f"{len(refused)} of {n} jobs are not as they were: {name}: {why}")
