"""Extras of events come back from the journal as they went in, to the last bit."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.journal.records import decode_extra, encode_extra
from outrider.model import events
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["null", "NaN", "Infinity", '"', "\\", "\x00", "a\tb"]
)
NUMBER = st.floats()
CPUS = st.integers(1, 2**40)
RESOURCES = st.none() | st.builds(
    Resources,
    st.none() | NUMBER,
    st.none() | NUMBER,
    st.lists(st.tuples(TEXT, NUMBER), max_size=2).map(tuple),
)
JOB_SPECS = st.builds(
    JobSpec, TEXT, TEXT, TEXT, CPUS, st.none() | NUMBER, st.none() | NUMBER,
    resources=RESOURCES, eligible=TEXT,
)  # fmt: skip
MACHINE_SPECS = st.builds(
    MachineSpec, TEXT, CPUS, st.none() | NUMBER, st.none() | NUMBER, st.none() | NUMBER,
    st.booleans(), st.booleans(),
)  # fmt: skip
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "user": TEXT,
        "vo": TEXT,
        "job_class": TEXT,
        "cpus": CPUS,
        "estimate_s": st.none() | NUMBER,
        "eligible_s": st.none() | NUMBER,
        "seen_submit": st.booleans(),
        "recalled": st.booleans(),
        "resources": RESOURCES,
        "eligible": TEXT,
        "reporter": TEXT,
    },
)
EXTRAS: dict[int, st.SearchStrategy[Any]] = {
    events.SUBMITTED: JOB_SPECS,
    events.JOINED: MACHINE_SPECS,
    events.CHANGED: CHANGES,
    events.STARTED: st.tuples(TEXT, CPUS) | st.tuples(TEXT, CPUS, TEXT.filter(bool)),
    events.ELIGIBLE: st.lists(TEXT, max_size=3).map(tuple),
    events.EVICTED: st.sampled_from(events.EVICTION_REASONS),
    events.REMOVED: st.sampled_from(["removed", "killed"]),
    events.POWER: NUMBER,
}
KINDS = st.sampled_from(range(len(events.KIND_NAMES)))
EVENTS = KINDS.flatmap(lambda kind: st.tuples(st.just(kind), EXTRAS.get(kind, st.none())))


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, where undefined equals undefined and -0.0 is not 0.0."""
    if isinstance(one, msgspec.Struct):
        return type(one) is type(other) and same(
            msgspec.structs.asdict(one), msgspec.structs.asdict(other)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (one == other or (one != one and other != other)) and (
            math.copysign(1, one) == math.copysign(1, other) or one != one
        )
    return type(one) is type(other) and bool(one == other)


@given(EVENTS)
def test_every_extra_comes_back_as_it_was(event: tuple[int, Any]) -> None:
    kind, extra = event
    again = decode_extra(kind, encode_extra(kind, extra))
    assert same(extra, again), f"{events.KIND_NAMES[kind]}: {extra!r} came back as {again!r}"


def test_no_extra_takes_no_room() -> None:
    assert encode_extra(events.COMPLETED, None) is None


def test_a_watt_meter_that_says_infinity_is_kept_as_such() -> None:
    text = encode_extra(events.POWER, math.inf)
    assert text == "Infinity"
    assert decode_extra(events.POWER, text) == math.inf


def test_an_extra_of_the_wrong_shape_is_refused_when_read() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_extra(events.STARTED, '"lab-1"')
