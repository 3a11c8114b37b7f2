"""Names that a batch system gave to more than one job, and what each of these jobs goes by here."""

from typing import Any, Final

_NEAR_MS: Final = 1_000  # two logs of one submission may differ by a second


class ReusedNames:
    """Tells jobs apart that were given the same name, one after the other.

    A schedd whose SPOOL was reset, or a Slurm controller that begins to count anew, gives ids
    out again. The first job of a name keeps it; each later one goes by ``NAME#QDATE``, QDATE
    being the second of its submission (Unix time). Only names that were used again are kept
    here, so an ordinary site pays one look into an empty dictionary an event.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, list[tuple[int, str]]] = {}

    def use_again(self, name: str, before: str, submit_s: float) -> str:
        """A job is submitted whose name another had.

        Args:
            name: what its source calls it.
            before: what the job before it goes by.
            submit_s: Unix time.

        Returns:
            what the new job goes by.
        """
        jobs = self._jobs.setdefault(name, [(0, before)])
        taken = {known for _, known in jobs}
        second = int(submit_s)
        while (own := f"{name}#{second}") in taken:
            second += 1
        jobs.append((round(submit_s * 1000), own))
        return own

    def at(self, name: str, ms: int) -> str:
        """What the job goes by that a record of this time means with a name."""
        jobs = self._jobs.get(name)
        if jobs is None:
            return name
        began = [own for began_ms, own in jobs if began_ms <= ms + _NEAR_MS]
        return began[-1] if began else jobs[0][1]

    def forget(self, own: str) -> None:
        """The job that goes by this name is not remembered any more."""
        for name in (own, own.rpartition("#")[0]):
            jobs = [entry for entry in self._jobs.get(name, ()) if entry[1] != own]
            if jobs:
                self._jobs[name] = jobs
            else:
                self._jobs.pop(name, None)

    def save(self) -> Any:
        """Everything as plain data."""
        return {name: [list(entry) for entry in jobs] for name, jobs in self._jobs.items()}

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._jobs = {
            name: [(began_ms, own) for began_ms, own in jobs] for name, jobs in saved.items()
        }
