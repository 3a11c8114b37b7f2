"""Content of journal entries: everything that a restart needs, and nothing else."""

from typing import Any

from outrider.api import Batch, JobSpec
from outrider.model.events import REMOVED, SUBMITTED
from tests.fixtures.cores import T, core_of, run_of, tell

BATCH = Batch(events=[], cursor={"at": 7})


def settled() -> Any:
    """A core of which everything so far is recorded."""
    core = core_of("log", "meters", policies={"fifo": {}})
    tell(core, "log", run_of("1", T), T + 60)
    tell(core, "meters", [], T + 60)
    for label in core.sources:
        core.entry(label, BATCH)
    return core


def test_where_nothing_is_new_nothing_is_recorded() -> None:
    core = settled()
    assert core.entry("log", BATCH) is None


def test_a_record_that_was_rejected_or_passed_over_is_counted_on_though_nothing_else_came() -> None:
    core = settled()
    core.sources["log"].rejected["garbage"] += 2
    entry = core.entry("log", BATCH)
    assert entry is not None
    assert entry.meta["records:log"] == [{"garbage": 2}, {}]
    assert (entry.inputs, entry.decisions, entry.cursors) == ([], [], {"log": {"at": 7}})
    assert core.entry("log", BATCH) is None
    core.sources["log"].ignored["image size"] += 1
    entry = core.entry("log", BATCH)
    assert entry is not None
    assert entry.meta["records:log"] == [{"garbage": 2}, {"image size": 1}]
    assert core.entry("meters", BATCH) is None, "of the other source nothing is new"


def test_an_event_that_was_set_aside_is_recorded_once() -> None:
    core = settled()
    tell(core, "log", [(T + 70, REMOVED, "1", "removed")], T + 70)
    tell(core, "meters", [], T + 200)
    tell(core, "log", [], T + 200)
    entry = core.entry("log", BATCH)
    assert entry is not None
    assert [(one.subject, one.reason) for one in entry.set_aside] == [("1", "after_end")]
    assert core.entry("log", BATCH) is None


def test_decisions_go_with_the_inputs_that_led_to_them() -> None:
    core = settled()
    tell(core, "log", [(T + 70, SUBMITTED, "2", JobSpec())], T + 200)
    tell(core, "meters", [], T + 200)
    entry = core.entry("log", BATCH)
    assert entry is not None
    assert ("log", (T + 70, SUBMITTED, "2", JobSpec())) in entry.inputs
    assert [row.job for row in entry.decisions] == ["2"]
    assert core.entry("log", BATCH) is None
