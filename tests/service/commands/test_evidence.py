"""What speaks against acting more than now."""

from typing import Any

import msgspec
import pytest

from outrider.acting.guards import Bounds, Figures
from outrider.service.commands.evidence import (
    Evidence,
    GuardFigure,
    PolicyFigures,
    SourceFigure,
    against,
    next_mode,
)
from outrider.service.modes.gathering import compared

POLICY = PolicyFigures("survival", 40, 30, 10, 0.75, 38, {"stale_input": 2}, None)
GOOD = Evidence(
    mode="shadow",
    mode_since_s=1.7e9,
    configured_mode="active",
    next_mode="canary",
    watched_s=90_000.0,
    needed_s=86_400.0,
    policies=[POLICY],
    guards=[GuardFigure("mean_wait_s", 60.0, 600.0, False)],
    sources=[SourceFigure("htcondor", True, "")],
)


TOO_SOON = (
    "the policy has decided in the mode shadow or above for 10.0 h, needed: 24.0 h "
    "(promote_after_s)"
)


def with_(**changed: Any) -> Evidence:
    return msgspec.structs.replace(GOOD, **changed)


def test_nothing_speaks_against_it() -> None:
    assert against(GOOD) == []


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (with_(next_mode=None, configured_mode="shadow"),
         'the configuration says mode = "shadow", and no command goes beyond it'),
        (with_(watched_s=36_000.0),
         TOO_SOON),
        (with_(guards=[GuardFigure("badput_ratio", 0.4, 0.25, True)]),
         "a guard is broken: badput_ratio is 0.4, its bound 0.25"),
        (with_(sources=[SourceFigure("htcondor", False, "no collector answers")]),
         "source htcondor is down: no collector answers"),
        (with_(policies=[msgspec.structs.replace(POLICY, decisions=0)]),
         "the policy survival has decided nothing yet"),
        (with_(policies=[msgspec.structs.replace(POLICY, failed="ZeroDivisionError")]),
         "the policy survival has failed: ZeroDivisionError"),
        (with_(policies=[]), "no policy decides"),
        (with_(trouble=["nothing is recorded: disk full"]), "nothing is recorded: disk full"),
    ],
)  # fmt: skip
def test_each_of_these_does(evidence: Evidence, why: str) -> None:
    assert against(evidence) == [why]


def test_from_observe_to_shadow_nothing_does_for_nothing_is_changed_there() -> None:
    silent = with_(mode="observe", next_mode="shadow", watched_s=0.0, policies=[])
    assert against(silent) == []


@pytest.mark.parametrize(
    ("mode", "configured", "has_canary", "step"),
    [
        ("observe", "active", True, "shadow"),
        ("shadow", "active", True, "canary"),
        ("canary", "active", True, "active"),
        ("shadow", "active", False, "active"),
        ("shadow", "canary", True, "canary"),
        ("active", "active", True, None),
        ("shadow", "shadow", True, None),
        ("observe", "shadow", True, "shadow"),
        ("observe", "observe", False, None),
    ],
)
def test_the_next_step(mode: str, configured: str, has_canary: bool, step: str | None) -> None:
    assert next_mode(mode, configured, has_canary) == step


def test_each_guard_stands_beside_its_own_bound() -> None:
    bounds = Bounds(mean_wait_s=600.0, badput_ratio=0.25, fairness_least=0.8)
    figures = Figures(mean_wait_s=700.0, badput_ratio=0.1, fairness=0.5, error_ratio=1.0)
    assert compared(bounds, figures) == [
        GuardFigure("mean_wait_s", 700.0, 600.0, True),
        GuardFigure("badput_ratio", 0.1, 0.25, False),
        GuardFigure("fairness_least", 0.5, 0.8, True),
        GuardFigure("error_ratio", 1.0, None, False),
    ]
    assert not any(one.broken for one in compared(bounds, Figures()))
