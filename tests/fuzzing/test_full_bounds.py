"""Events that fill every bound on names and jobs: none is passed."""

from outrider.engine.ingest.bounded_names import MAX_RESOURCES, NameLimits, Names
from outrider.engine.ingest.event_merger import EventMerger
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.ingest.set_aside import REASONS
from outrider.model.printable import MAX_NAME_BYTES
from tests.fuzzing.full_bounds import full_events

SMALL = NameLimits(
    user=40, vo=20, job_class=4, cluster=10, machine=60, eligible=10, job=200,
)  # fmt: skip


def test_every_bound_is_reached_and_none_is_passed() -> None:
    merger = EventMerger(["crowd"], inferred_machine, names=Names(SMALL))
    began_s = 1_795_000_000.0
    merger.arrive("crowd", full_events(SMALL, began_s))
    for _ in merger.seen("crowd", began_s + 60.0):
        pass
    assert merger.set_aside == dict.fromkeys(REASONS, 0) | {"after_end": 0}
    names = merger.normaliser.names
    assert names is not None
    full = {kind: (len(each), each.most) for kind, each in names.by_kind.items()}
    assert all(n >= most for kind, (n, most) in full.items() if kind != "vo"), full
    assert full["vo"][0] >= SMALL.vo - 1  # "all" is named in any case
    assert all(each.folded for each in names.by_kind.values())
    assert len(names.job) <= SMALL.job * 5 // 4
    assert len(merger.normaliser.machine_names) <= SMALL.machine + 1
    for job, history in merger.normaliser.jobs.items():
        for text in (job, history.spec.user, history.spec.vo, history.spec.eligible):
            assert len(text.encode()) <= MAX_NAME_BYTES
            assert text.isprintable()
    assert MAX_RESOURCES == 16
