"""Jobs that are said to take no time, and jobs that leave the queue of a node."""

import pytest

from outrider.api import Policy
from outrider.formats.workload import GridRules
from outrider.model.utility import Linear
from outrider.testing.fixtures import Asked, made, on_one_machine
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd
from tests.fixtures.scripted import told


@pytest.mark.parametrize("kind", [FuzzyTd, Aggressive, Replan])
def test_planning_goes_on_where_jobs_are_said_to_take_no_time(kind: type[Policy]) -> None:
    jobs = [
        Asked(float(at_s), 5.0, cpus, estimate_s=0.0, job_class="interactive")
        for at_s, cpus in enumerate((4, 2, 3, 4))
    ]
    done = on_one_machine(made(kind), 4, *jobs)
    assert done.report["jobs"]["completed"] == len(jobs)


def test_a_hopeless_job_is_withdrawn_from_the_queue_of_a_node_and_those_behind_it_work() -> None:
    jobs = [Asked(0.0, 10.0), Asked(0.0, 1.0), Asked(9.5, 3.0)]  # nothing is worth twice its time
    script = {0.0: [("start", 0, 1), ("start", 1, 1)], 9.5: [("start", 2, 1)]}
    rules = GridRules(drop_hopeless=True, node_queues=True)
    run = told(jobs, script, rules=rules, utilities={"batch": Linear()})
    assert run.told[1][-1] == (1.0, "removed", "removed")
    assert run.told[2] == [(9.5, "started", (0, 1)), (13.0, "completed", None)]
