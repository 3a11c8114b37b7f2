"""Agreement of a policy in shadow with the batch system, disagreement, and runs never decided."""

from typing import Any

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView
from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.scheduling.test_pending_queue import EPOCH_S, Shadow


class OnTheFirst(Policy):
    """Policy that chooses the first machine, and defers the jobs of the user `later`."""

    name = "on_the_first"
    description = "for tests"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Return always the same choice."""
        if may_defer and job.spec.user == "later":
            return Choice(NOWHERE, "later", None)
        return Choice(0, "first", None)


def site() -> Shadow:
    """Machine 0 with 100 CPUs is a cluster of its own; 1 and 2 are another one."""
    shadow = Shadow(OnTheFirst)
    for machine in (1, 2):
        shadow.engine.feed([(0.0, ev.JOINED, machine, MachineSpec("other", cpus=100))])
    return shadow


def counts(shadow: Shadow) -> tuple[int, int]:
    return shadow.runner.agreed, shadow.runner.disagreed


def test_who_runs_in_the_cluster_that_was_wanted_agrees_and_who_runs_elsewhere_does_not() -> None:
    shadow = site()
    shadow.tell(0.0, ev.SUBMITTED, [0, 1, 2], JobSpec())
    shadow.tick(0.0)
    shadow.tell(1.0, ev.STARTED, [0], (0, 1))
    assert counts(shadow) == (1, 0)
    shadow.tell(1.0, ev.STARTED, [1, 2], (2, 1))
    assert counts(shadow) == (1, 2)


def test_who_is_started_though_it_was_to_wait_disagrees_and_counts_as_deferred() -> None:
    shadow = site()
    shadow.tell(0.0, ev.SUBMITTED, [0], JobSpec(user="later"))
    shadow.tick(0.0)
    shadow.tell(60.0, ev.STARTED, [0], (0, 1))
    assert counts(shadow) == (0, 1)
    shadow.tell(90.0, ev.COMPLETED, [0], None)
    assert shadow.runner.deferrals.report() == {
        "jobs": {"completed": 1, "removed": 0}, "defer_s": {"completed": 60.0, "removed": 0.0},
    }  # fmt: skip


def test_who_found_no_machine_free_was_not_chosen_for_and_neither_agrees_nor_disagrees() -> None:
    shadow = site()
    shadow.tell(0.0, ev.SUBMITTED, [0], JobSpec(cpus=100))
    shadow.tell(0.0, ev.SUBMITTED, [1], JobSpec(cpus=100))
    shadow.tell(0.0, ev.SUBMITTED, [2], JobSpec(cpus=100))
    for job, machine in enumerate((0, 1, 2)):
        shadow.tell(1.0, ev.STARTED, [job], (machine, 100))
    assert counts(shadow) == (0, 0), "there was no pass before they started"
    shadow.tell(2.0, ev.SUBMITTED, [3], JobSpec())
    shadow.tick(2.0)
    shadow.tell(3.0, ev.COMPLETED, [0], None)
    shadow.tell(3.0, ev.STARTED, [3], (0, 1))
    assert counts(shadow) == (0, 0)
    assert shadow.runner.deferrals.report()["jobs"] == {"completed": 0, "removed": 0}


def test_seconds_of_a_job_that_was_deferred_twice_are_added_up() -> None:
    """Two epochs of deferral, then half an hour after a wasted run."""
    shadow = site()
    shadow.tell(0.0, ev.SUBMITTED, [0], JobSpec(user="later"))
    for n in range(3):
        shadow.tick(n * EPOCH_S)
    began_s = 2 * EPOCH_S
    shadow.tell(began_s, ev.STARTED, [0], (0, 1))
    shadow.tell(began_s + 60.0, ev.EVICTED, [0], "owner")
    shadow.tick(began_s + 60.0)
    shadow.tell(began_s + 1860.0, ev.STARTED, [0], (0, 1))
    shadow.tell(began_s + 1900.0, ev.REMOVED, [0], "killed")
    assert shadow.runner.deferrals.report() == {
        "jobs": {"completed": 0, "removed": 1},
        "defer_s": {"completed": 0.0, "removed": 2 * EPOCH_S + 1800.0},
    }
    assert counts(shadow) == (0, 2)
