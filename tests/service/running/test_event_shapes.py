"""The shape that an event must have: what an adapter may say, and what is rejected as malformed."""

from math import inf, nan
from typing import Any

import msgspec
import pytest

from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources
from outrider.service.core.guarded_feed import MAX_TEXT, is_well_formed

BIG = 2**63
HALF = "\ud800"
"""Half of a surrogate pair: no text that can be written."""


class Name(str):
    """A subclass of text."""

    __slots__ = ()


class Number(int):
    """A subclass of whole numbers."""


RIGHT: list[Any] = [
    (1.0, ev.COMPLETED, "1.0", None),
    [1.0, ev.COMPLETED, "1.0", None],
    (-1, ev.COMPLETED, "ü" * MAX_TEXT, None),
    (0, ev.RELEASED, " ", None),
    (1.0, ev.SUBMITTED, "1.0", JobSpec()),
    (
        1.0,
        ev.SUBMITTED,
        "1.0",
        JobSpec(user="", vo="x", cpus=BIG - 1, estimate_s=3, eligible_s=0.5),
    ),
    (1.0, ev.SUBMITTED, "1.0", JobSpec(resources=Resources(memory_mib=1.5, named=(("gpu", 1),)))),
    (1.0, ev.STARTED, "1.0", ("m1", 1)),
    (1.0, ev.STARTED, "1.0", ("m1", 1, "slot1")),
    (1.0, ev.STARTED, "1.0", ["m1", -BIG + 1, ""]),
    (1.0, ev.EVICTED, "1.0", "owner"),
    (1.0, ev.REMOVED, "1.0", "removed"),
    (1.0, ev.HELD, "1.0", None),
    (1.0, ev.HELD, "1.0", ""),
    (1.0, ev.CHANGED, "1.0", {}),
    (1.0, ev.CHANGED, "1.0", {"user": "ada", "cpus": 2, "recalled": True, "estimate_s": None}),
    (1.0, ev.JOINED, "m1", MachineSpec()),
    (1.0, ev.JOINED, "m1", MachineSpec("lab", 4, active_w=80, idle_w=None, speed=2)),
    (1.0, ev.POWER, "m1", 0),
    (1.0, ev.POWER, "m1", -3.5),
    (1.0, ev.RESIZED, "1.0", 3),
    (1.0, ev.ELIGIBLE, "fast", ()),
    (1.0, ev.ELIGIBLE, "fast", ("m1", "m2")),
]
WRONG: list[Any] = [
    None, 7, "text", (), (1.0, ev.COMPLETED, "1.0"), (1.0, ev.COMPLETED, "1.0", None, 1),
    {1.0: 0, 2.0: 0, 3.0: 0, 4.0: 0},
    (nan, ev.COMPLETED, "1.0", None), (inf, ev.COMPLETED, "1.0", None),
    ("1", ev.COMPLETED, "1.0", None), (None, ev.COMPLETED, "1.0", None),
    (1.0, -1, "1.0", None), (1.0, 99, "1.0", None), (1.0, 0.0, "1.0", None),
    (1.0, True, "1.0", None), (1.0, Number(ev.COMPLETED), "1.0", None), (1.0, ev.TICK, "log", None),
    (1.0, ev.COMPLETED, "", None), (1.0, ev.COMPLETED, 1, None), (1.0, ev.COMPLETED, HALF, None),
    (1.0, ev.COMPLETED, "x" * (MAX_TEXT + 1), None), (1.0, ev.COMPLETED, Name("1.0"), None),
    (1.0, ev.COMPLETED, "1.0", "a word"), (1.0, ev.COMPLETED, "1.0", 0),
    (1.0, ev.SUBMITTED, "1.0", None), (1.0, ev.SUBMITTED, "1.0", MachineSpec()),
    (1.0, ev.STARTED, "1.0", None), (1.0, ev.STARTED, "1.0", ("m1",)),
    (1.0, ev.STARTED, "1.0", ("", 1)), (1.0, ev.STARTED, "1.0", ("m1", 1.0)),
    (1.0, ev.STARTED, "1.0", ("m1", BIG)), (1.0, ev.STARTED, "1.0", ("m1", -BIG)),
    (1.0, ev.STARTED, "1.0", ("m1", 1, None)), (1.0, ev.STARTED, "1.0", ("m1", 1, "a", "b")),
    (1.0, ev.EVICTED, "1.0", None), (1.0, ev.EVICTED, "1.0", "whim"), (1.0, ev.EVICTED, "1.0", []),
    (1.0, ev.REMOVED, "1.0", None), (1.0, ev.HELD, "1.0", 1),
    (1.0, ev.CHANGED, "1.0", None), (1.0, ev.CHANGED, "1.0", {"colour": "red"}),
    (1.0, ev.CHANGED, "1.0", {"cpus": "2"}), (1.0, ev.CHANGED, "1.0", {"recalled": 1}),
    (1.0, ev.JOINED, "m1", None), (1.0, ev.JOINED, "m1", JobSpec()),
    (1.0, ev.POWER, "m1", None), (1.0, ev.POWER, "m1", nan), (1.0, ev.POWER, "m1", "80"),
    (1.0, ev.POWER, "m1", True), (1.0, ev.RESIZED, "1.0", 1.5), (1.0, ev.RESIZED, "1.0", True),
    (1.0, ev.ELIGIBLE, "fast", ["m1"]), (1.0, ev.ELIGIBLE, "fast", ("",)),
    (1.0, ev.ELIGIBLE, "fast", (1,)), (1.0, ev.ELIGIBLE, "fast", None),
]  # fmt: skip


@pytest.mark.parametrize("event", RIGHT, ids=repr)
def test_what_is_declared_is_taken(event: Any) -> None:
    assert is_well_formed(event)


@pytest.mark.parametrize("event", WRONG, ids=lambda event: repr(event)[:60])
def test_anything_else_is_malformed(event: Any) -> None:
    assert not is_well_formed(event)


WRONG_VALUES: dict[str, list[Any]] = {
    "user": [None, HALF, 1], "vo": [None, b"x"], "job_class": [None],
    "cpus": [None, 1.0, True, BIG],
    "estimate_s": ["3", BIG, True], "eligible_s": ["3", -BIG], "seen_submit": [None, 1],
    "recalled": [0], "reporter": [None, 1], "eligible": [None, 3], "cluster": [None, HALF],
    "active_w": ["80"],
    "idle_w": [[]], "sleep_w": [BIG], "inferred": [None], "usable": [1], "speed": [None, "2"],
    "resources": [
        3, {"gpus": 1}, Resources(named=[("gpu", 1)]),  # type: ignore[arg-type]
        Resources(named=(("", 1.0),)), Resources(named=(("gpu", True),)),
        Resources(memory_mib=BIG),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", [ev.SUBMITTED, ev.JOINED, ev.CHANGED])
def test_every_field_of_a_job_or_machine_is_looked_at(kind: int) -> None:
    spec: Any = MachineSpec() if kind == ev.JOINED else JobSpec()
    looked_at = 0
    for name in spec.__struct_fields__:
        for value in WRONG_VALUES[name]:
            extra: Any = {name: value}
            if kind != ev.CHANGED:
                extra = msgspec.structs.replace(spec, **extra)
            assert not is_well_formed((1.0, kind, "1.0", extra)), (name, value)
            looked_at += 1
    assert looked_at > 15
