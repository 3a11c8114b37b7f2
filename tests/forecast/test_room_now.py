"""Jobs that fit into a site's CPUs in total may fit on no single machine."""

from outrider.engine.state.machines import Machines
from outrider.forecast.followed_site import find_room
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources


def site(*cpus: int, memory_mib: float = 8_000.0) -> Machines:
    machines = Machines([])
    for number, each in enumerate(cpus):
        machines.join(number, MachineSpec("A", cpus=each, resources=Resources(memory_mib)))
        machines.open_machine(number)
    return machines


def job(cpus: int, memory_mib: float = 1.0, eligible: str = "") -> JobSpec:
    return JobSpec(cpus=cpus, resources=Resources(memory_mib), eligible=eligible)


def test_parts_of_several_machines_are_no_room_for_one_job() -> None:
    machines = site(4, 4, 4)
    for number in range(3):
        machines.take(number, 2)
    assert find_room(machines, [job(4), job(2), job(2), job(2), job(1)]) == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_memory_and_the_machines_that_a_job_may_use_count() -> None:
    machines = site(4, 4)
    machines.set_class("second", [1], True)
    asked = [job(1, 8_000.0, "second"), job(1, 1.0, "second"), job(1, 8_000.0), job(1, 1.0)]
    assert find_room(machines, asked) == [True, False, True, False]
    assert machines.busy == [0, 0], "nothing is reserved by the question"


def test_a_job_on_several_machines_is_left_to_the_count_of_cpus() -> None:
    assert find_room(site(4, 4), [job(8)]) == [True]
