"""The gate's answer in the row of each decision that would change something."""

from typing import Any

import pytest

from outrider.api import Batch
from outrider.model.decisions import DecisionRow
from outrider.model.events import JOINED, SUBMITTED, TICK, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.service.journal.restart import replay_inputs
from outrider.service.views.status import status
from tests.fixtures.cores import T, core_of

MORNING: list[NamedEvent] = [
    *((T, JOINED, f"m{n}", MachineSpec("lab")) for n in range(2)),
    *((T + 1, SUBMITTED, job, JobSpec()) for job in ("1", "2", "3")),
]


def rows_of(age_s: float, **settings: Any) -> tuple[list[DecisionRow], dict[str, Any]]:
    """Return the rows of a delayed morning at two machines, and the gate's status."""
    core = core_of("log", policies={"fifo": {}}, **settings)
    batch = Batch(events=MORNING, cursor=None, age_s=age_s)
    feed = core.take("log", batch, T + 10)
    while core.step(feed, 100):
        pass
    entry = core.entry("log", batch)
    assert entry is not None
    return list(entry.decisions), status(core, {})["gate"]


@pytest.mark.parametrize(
    ("age_s", "settings", "answers", "counts"),
    [
        (0.0, {}, ["would", "would"], (2, 0, 0)),
        (0.0, {"max_starts_per_minute": 1}, ["would", "refused: budget"], (1, 0, 1)),
        (99.0, {"stale_after_s": 30}, ["refused: stale_input"] * 2, (0, 2, 0)),
    ],
)
def test_each_start_says_whether_it_could_have_been_made_and_a_deferral_says_nothing(
    age_s: float, settings: dict[str, Any], answers: list[str], counts: tuple[int, int, int]
) -> None:
    rows, shown = rows_of(age_s, **settings)
    assert [(row.action, row.gate) for row in rows] == [
        *(("start", answer) for answer in answers), ("defer", None),
    ]  # fmt: skip
    refused = shown["would_refuse"]
    assert (shown["would_act"], refused["stale_input"], refused["budget"]) == counts


def test_each_policy_has_a_budget_of_its_own() -> None:
    core = core_of("log", policies={"fifo": {}, "sjf": {}}, max_starts_per_minute=2)
    batch = Batch(events=MORNING, cursor=None)
    feed = core.take("log", batch, T + 10)
    while core.step(feed, 100):
        pass
    entry = core.entry("log", batch)
    assert entry is not None
    for policy in ("fifo", "sjf"):
        answers = [row.gate for row in entry.decisions if row.policy == policy and row.gate]
        assert answers == ["would", "would"]
    shown = status(core, {})
    counts = {policy["name"]: policy["gate"]["would_act"] for policy in shown["policies"]}
    assert counts == {"fifo": 2, "sjf": 2}
    assert shown["gate"]["would_act"] == 4
    again = core_of("log", policies={"fifo": {}, "sjf": {}}, max_starts_per_minute=2)
    again.restore(core.save())
    assert status(again, {})["policies"][0]["gate"] == shown["policies"][0]["gate"]


def test_while_a_source_is_down_nothing_that_is_decided_could_be_done() -> None:
    core = core_of("log", policies={"fifo": {}})
    batch = Batch(events=MORNING, cursor=None, problem="EventLog is not there")
    feed = core.take("log", batch, T + 10)
    while core.step(feed, 100):
        pass
    entry = core.entry("log", batch)
    assert entry is not None
    gates = [row.gate for row in entry.decisions if row.gate]
    assert gates == ["refused: stale_input"] * 2
    shown = status(core, {})
    (source,) = shown["adapters"]
    assert (source["up"], source["problem"]) == (False, "EventLog is not there")
    assert source["input_age_s"] == 0.0
    assert shown["gate"]["would_refuse"]["stale_input"] == 2
    assert core.notes() == ["adapter log is down: EventLog is not there"]


def test_the_budget_is_the_same_when_the_journal_is_fed_again() -> None:
    rows, shown = rows_of(0.0, max_starts_per_minute=1)
    again = core_of("log", policies={"fifo": {}}, max_starts_per_minute=1)
    inputs = [(n, "log", event) for n, event in enumerate([*MORNING, (T + 10, TICK, "log", None)])]
    replay_inputs(again, inputs)  # nothing is read yet, so no source is up
    assert status(again, {})["gate"] == shown
    assert len(rows) == 3
