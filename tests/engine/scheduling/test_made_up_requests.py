"""Tables behind the scheduling passes stay small, whatever users ask for."""

import pytest

from outrider.engine.scheduling.pending_queue import MAX_VOS, QueueColumns
from outrider.engine.scheduling.placement import MAX_KINDS, Possible
from outrider.engine.state.machines import ResourceUse
from outrider.engine.state.site import Site
from outrider.model.jobs import Job, JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec, Resources


def test_another_amount_of_memory_with_each_job_is_not_remembered_for_ever() -> None:
    site = Site(ZoneTime("UTC"), [])
    site.join(0, MachineSpec(resources=Resources(memory_mib=1000.0)))
    possible = Possible(site)
    for n in range(2 * MAX_KINDS + 10):
        fits = possible(JobSpec(resources=Resources(memory_mib=float(n))))
        assert fits == (n <= 1000)
    assert len(possible._known) <= MAX_KINDS


def test_resources_that_jobs_make_up_leave_nothing_behind_on_a_machine() -> None:
    use = ResourceUse()
    use.declare(0, Resources(memory_mib=1000.0, named=(("licence", 3.0),)))
    for n in range(1000):
        use.begin(n, 0, Resources(memory_mib=0.1, named=((f"made-up-{n}", 0.3), ("licence", 1.0))))
        use.end(n)
    assert use._used[0].keys() <= {"memory_mib", "licence"}
    assert use.left(0)["licence"] == 3.0


@pytest.mark.parametrize("hardly", [0.0, 1e-7])
def test_a_run_that_asks_for_next_to_nothing_gives_it_back_after_one_that_asked_for_more(
    hardly: float,
) -> None:
    use = ResourceUse()
    use.begin(1, 0, Resources(named=(("licence", hardly),)))
    use.begin(2, 0, Resources(named=(("licence", 1.0),)))
    use.end(2)
    use.end(1)
    assert use._used[0] == {}


def test_what_others_still_use_is_known_once_the_machine_tells_that_it_has_it() -> None:
    use = ResourceUse()
    licence = Resources(named=(("licence", 1.0),))
    for job in (1, 2):
        use.begin(job, 0, licence)
    use.end(1)
    use.declare(0, Resources(named=(("licence", 3.0),)))
    assert use.left(0) == {"licence": 2.0}
    use.end(2)
    assert use.left(0) == {"licence": 3.0}


def test_an_empty_queue_forgets_the_vos_of_its_past() -> None:
    columns = QueueColumns()
    for n in range(MAX_VOS + 2):
        columns.add(Job(n, JobSpec(vo=f"vo{n}"), 0.0), n + 1, 0.0, 0.0)
        columns.remove(n + 1)
    assert len(columns.vo_names) < 10
    columns.add(Job(1, JobSpec(vo="a"), 0.0), MAX_VOS + 9, 0.0, 0.0)
    assert columns.vo_names[columns.vo[0]] == "a"
