"""Names that strangers write: what is longer than a name can be does not enter the engine."""

import pytest

from outrider.api import JobSpec, MachineSpec, NamedEvent, events
from outrider.service.core.guarded_feed import MAX_TEXT, is_well_formed


def events_with(name: str) -> list[NamedEvent]:
    return [
        (1.0, events.COMPLETED, name, None),
        (1.0, events.SUBMITTED, "1", JobSpec(user=name)),
        (1.0, events.SUBMITTED, "1", JobSpec(vo=name)),
        (1.0, events.STARTED, "1", (name, 1)),
        (1.0, events.STARTED, "1", ("n", 1, name)),
        (1.0, events.CHANGED, "1", {"vo": name}),
        (1.0, events.JOINED, name, MachineSpec()),
        (1.0, events.JOINED, "n", MachineSpec(cluster=name)),
    ]


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_a_name_without_end_is_refused_wherever_it_stands(letter: str) -> None:
    assert all(map(is_well_formed, events_with(letter * MAX_TEXT)))
    assert not any(map(is_well_formed, events_with(letter * (MAX_TEXT + 1))))
    assert not any(map(is_well_formed, events_with(letter * (1 << 20))))
