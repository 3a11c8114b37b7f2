"""The CPUs of machines that are only known from their jobs, where the site says how many."""

from collections import Counter

from outrider.engine.ingest.machine_registry import MachineRegistry, as_reported
from outrider.model.events import JOINED
from outrider.model.machines import MachineSpec


def registry(declared: int) -> MachineRegistry:
    def describe(name: str) -> MachineSpec:
        return MachineSpec(inferred=True, cpus=declared if name.startswith("node") else 1)

    return MachineRegistry(describe, as_reported, Counter())


def cpus_after(made: MachineRegistry, name: str, cpus: int) -> int:
    """Return the CPUs of the machine as last reported, after a run with `cpus` CPUs began."""
    _, events = made.begin_run(name, cpus, 100.0)
    told = [extra.cpus for _, kind, _, extra in events if kind == JOINED]
    return int(told[-1]) if told else 0


def test_a_job_over_many_machines_does_not_make_its_first_one_large() -> None:
    made = registry(8)
    assert cpus_after(made, "node1", 999) == 8
    assert not made.has_room("node1", 1)
    assert made.end_run(0, 999, 200.0) == []
    assert made.has_room("node1", 8)


def test_where_nothing_is_declared_it_has_what_was_seen_in_use() -> None:
    assert cpus_after(registry(8), "other1", 16) == 16
    assert cpus_after(registry(1), "node1", 16) == 16


def test_what_is_declared_later_holds_from_the_next_run_on() -> None:
    before = registry(1)
    cpus_after(before, "node1", 999)
    after = registry(8)
    after.restore(before.save())
    assert cpus_after(after, "node1", 1) == 8
