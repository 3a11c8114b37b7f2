"""Objections to raising the mode."""

from typing import Any

import msgspec
import pytest

from outrider.acting.gate import Bounds, Figures
from outrider.service.commands.evidence import against, next_mode
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import TwinSettings
from outrider.service.modes.gathering import compared, twin_figures
from outrider.service.shapes.values import (
    Evidence,
    GuardFigure,
    PolicyFigures,
    SourceFigure,
    TwinFigures,
)
from outrider.service.twin.twin_file import TwinFile
from outrider.twin.answer_file import Ratio, Ratios

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
         'the configuration sets mode = "shadow", and no command goes beyond it'),
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


LESS, MAYBE, MORE = (Ratio(e, e - 0.1, e + 0.1, 0.9) for e in (0.8, 0.95, 1.3))
SPEAKS: Ratios = {"energy_ratio": LESS, "badput_ratio": MAYBE, "overhead_mean_ratio": MAYBE}
TWIN = TwinFigures(needed=True, most_overhead_ratio=1.25, asked_s=1.7e9, past={"survival": SPEAKS})


def twin(**changed: Any) -> Evidence:
    return with_(twin=msgspec.structs.replace(TWIN, **changed))


def ratios(**changed: Ratio | None) -> Evidence:
    return twin(past={"survival": SPEAKS | changed})


@pytest.mark.parametrize(
    "evidence",
    [
        twin(),
        ratios(energy_ratio=None, badput_ratio=LESS),
        ratios(energy_ratio=MORE, badput_ratio=LESS),
        twin(refused={"fifo": "no support"}),
        twin(needed=False, stale=True, past={}),
        twin(needed=False, asked_s=None),
    ],
)
def test_a_twin_that_speaks_for_the_policy_or_is_not_needed_is_no_reason(
    evidence: Evidence,
) -> None:
    assert against(evidence) == []


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (twin(asked_s=None), "the twin has no result yet (`outrider run-twin`)"),
        (twin(stale=True), "the twin's result is stale ([twin] stale_after_s)"),
        (twin(refused={"survival": "too short"}),
         "the twin has no result for survival: too short"),
        (twin(past={"fifo": SPEAKS}), "the twin did not simulate survival"),
        (ratios(energy_ratio=MAYBE),
         ("in the twin survival did not significantly save anything: energy 0.850 to 1.050, "
          "badput 0.850 to 1.050")),
        (ratios(overhead_mean_ratio=MORE),
         ("in the twin the overhead of jobs under survival is 1.200 to 1.400 times the "
          "current scheduler's, allowed: 1.25 (promote_most_overhead_ratio)")),
        (ratios(overhead_mean_ratio=None),
         ("in the twin the overhead of jobs under survival is unknown times the "
          "current scheduler's, allowed: 1.25 (promote_most_overhead_ratio)")),
    ],
)  # fmt: skip
def test_a_twin_that_does_not_speak_for_the_policy_is_a_reason(
    evidence: Evidence, why: str
) -> None:
    assert against(evidence) == [why]


def test_what_the_twin_says_is_about_the_policies_as_they_are_configured_now() -> None:
    answer = {
        "window": {"begin_s": 0.0, "end_s": 1.7e9}, "incumbent": "random_match", "refused": None,
        "past": {"survival": SPEAKS}, "next": None, "candidates_refused": {"sjf": "no support"},
    }  # fmt: skip
    file = {"asked_s": 1.7e9, "answer": answer, "candidates": {"survival": {}}}
    plain = msgspec.to_builtins(file)
    written = msgspec.convert(plain, TwinFile)
    config = Config(policies={"survival": {}})
    found = twin_figures(written, config, 1.7e9)
    assert found is not None
    assert (found.stale, found.refused, found.past) == (
        False, {"sjf": "no support"}, {"survival": SPEAKS},
    )  # fmt: skip
    other = twin_figures(written, Config(policies={"survival": {"worth_ratio": 2.0}}), 1.7e9)
    assert other is not None
    assert other.refused["survival"] == "it simulated other settings"
    bounded = msgspec.convert(plain | {"longest_deferral_s": 60.0}, TwinFile)
    briefly = twin_figures(bounded, config, 1.7e9)
    assert briefly is not None
    assert briefly.refused["survival"] == "it simulated other settings"
    late = twin_figures(written, Config(twin=TwinSettings(stale_after_s=60)), 1.7e9 + 61)
    assert late is not None
    assert late.stale
    whole = msgspec.convert(plain | {"answer": plain["answer"] | {"refused": "short"}}, TwinFile)
    refused = twin_figures(whole, config, 1.7e9)
    assert refused is not None
    assert refused.refused == {"survival": "short"}
    nothing = twin_figures(None, config, 1.7e9)
    assert nothing is not None
    assert (nothing.needed, nothing.asked_s) == (True, None)


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
