"""Round robin: machines take jobs in turn."""

from typing import Any

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, Policy, SiteView


class RoundRobin(Policy):
    """The oldest job goes to the next machine, by number, after the one of the last job.

    Machines that cannot take the job are skipped. It ignores speed and load: a baseline.
    """

    name = "round_robin"
    description = "oldest job first, on every machine in its turn"
    api_version = 1

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self._last = -1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The next machine with enough CPUs left."""
        n, cpus = view.machines_n, job.spec.cpus
        for step in range(1, n + 1):
            machine = (self._last + step) % n
            if view.cpus_left(machine) >= cpus:
                self._last = machine
                return Choice(machine, "turn", 1.0)
        return Choice(NOWHERE, NO_MACHINE)

    def explain(self, job: Job, view: SiteView) -> str:
        """Where the search goes on."""
        return f"machines take jobs in turns; the search goes on after machine no. {self._last}"

    def save(self, view: SiteView) -> dict[str, Any]:
        """The machine of the last job."""
        return {"last": self._last}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave."""
        self._last = saved["last"]
