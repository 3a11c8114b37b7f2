"""Admission control: jobs without a free machine are held, and the policy starts them."""

from pathlib import Path
from typing import Any

import pytest

from outrider.model.decisions import DEFER, NO_MACHINE, START
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from tests.fixtures.cores import T, tell
from tests.service.running.test_gate import MORNING
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]


def morning(folder: Path, mode: str, carried: tuple[str, ...], **acting: Any) -> Core:
    """Return a core with three jobs on two machines, in a mode, with these actions of levers."""
    loaded = loaded_in(mode, folder, acting={"canary_fraction": 1.0} | acting)
    core = Core(loaded, [SourceState("desk", "desk", False, 5.0)], carried={"desk": carried})
    tell(core, "desk", MORNING, T + 60)
    return core


def gates(core: Core) -> list[tuple[str, str, str | None]]:
    """Return the decisions, with their reasons and the gate's answers."""
    return [(row.action, row.reason, row.gate) for row in core.decision_log.take()[0]]


@pytest.mark.parametrize(
    ("mode", "starts", "kept"),
    [("active", "act", "act"), ("shadow", "would", "would"), ("canary", "act", None)],
)
def test_who_finds_no_machine_is_kept_where_the_policy_says_when_everybody_starts(
    tmp_path: Path, mode: str, starts: str, kept: str | None
) -> None:
    """Check that a canary has none: other jobs would take every machine first."""
    core = morning(tmp_path, mode, (START, DEFER), admission_control=True)
    assert [(action, gate) for action, _, gate in gates(core)] == [
        (START, starts), (START, starts), (DEFER, kept),
    ]  # fmt: skip
    [runner] = core.runners
    assert runner.awaits_starts == (mode == "active")


def test_otherwise_who_finds_no_machine_is_left_to_the_batch_system(tmp_path: Path) -> None:
    core = morning(tmp_path, "active", (START, DEFER))
    assert gates(core)[-1] == (DEFER, NO_MACHINE, None)
    assert not core.runners[0].awaits_starts


def test_so_it_is_where_no_lever_can_keep_a_job(tmp_path: Path) -> None:
    core = morning(tmp_path, "active", (START,), admission_control=True)
    assert gates(core)[-1] == (DEFER, NO_MACHINE, None)
