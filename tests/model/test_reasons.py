"""Every reason code that can be shown has a text for people."""

import ast
from pathlib import Path
from typing import Final

import pytest

from outrider.engine.scheduling import placement, scheduling_pass
from outrider.engine.scheduling.deferral_limit import HANDED_BACK
from outrider.model.decisions import ACTIONS, IMPOSSIBLE, NO_MACHINE
from outrider.model.events import EVICTION_REASONS
from outrider.model.reasons import (
    ACTION_TEXTS,
    DECISION_TEXTS,
    RUN_TEXTS,
    WAITS_FOR_A_MACHINE,
    action_text,
    gate_text,
    label,
    reason_text,
    run_text,
)

POLICIES: Final = Path(__file__).resolve().parents[2] / "policies" / "outrider_policies"


def codes_in_policies() -> set[str]:
    """Return the reasons that stand as literals in a `Choice` or a `Move` of a policy."""
    found = set()
    for file in POLICIES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            place = {"Choice": 1, "Move": 4, "longest_free": 2}.get(node.func.id)
            if place is not None and len(node.args) > place:
                reason = node.args[place]
                if isinstance(reason, ast.Constant) and isinstance(reason.value, str):
                    found.add(reason.value)
    return found


def test_every_reason_of_the_shipped_policies_has_a_text() -> None:
    codes = codes_in_policies()
    assert {"too_dear", "cheapest", "lowest_watts", "shortest"} <= codes, "the scan finds codes"
    assert codes - DECISION_TEXTS.keys() == set()


def test_every_reason_of_the_scheduling_pass_has_a_text() -> None:
    defined = ast.parse(Path(placement.__file__).read_text()).body
    refusals = {
        node.value.value
        for node in defined
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    assert {"promised", "ineligible"} <= refusals
    codes = {NO_MACHINE, IMPOSSIBLE, HANDED_BACK, scheduling_pass.GUARD, *refusals}
    assert codes - DECISION_TEXTS.keys() == set()


def test_every_action_has_a_text() -> None:
    assert set(ACTIONS) == ACTION_TEXTS.keys()
    assert {NO_MACHINE, IMPOSSIBLE} == WAITS_FOR_A_MACHINE
    assert action_text("defer") == "keep it queued"
    assert action_text("start", done=True) == "started it"


def test_every_end_of_a_run_has_a_text() -> None:
    assert set(EVICTION_REASONS) == RUN_TEXTS.keys()
    assert run_text(None) == "completed"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("act", "may be applied"),
        ("would", "would be allowed, but this mode does not apply it"),
        ("refused: stale_input", "refused: the adapter's data is too old"),
        ("refused: of_a_plugin", "refused: of a plugin"),
    ],
)
def test_the_gates_answer_in_words(answer: str, text: str) -> None:
    assert gate_text(answer) == text


def test_a_code_without_a_text_is_shown_with_blanks() -> None:
    assert reason_text("my_plugins_reason") == "my plugins reason"
    assert run_text("new_reason") == "ended: new reason"
    assert label("stale_input") == "adapter data too old"
    assert not any("_" in text for text in [*DECISION_TEXTS.values(), *RUN_TEXTS.values()])
