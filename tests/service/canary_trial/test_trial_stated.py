"""The twin's statement in a trial's registration: only valid results."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.service.twin.twin_file import TwinFile
from tests.service.canary_trial.trial_site import Site, configured


def answered_with(**changed: Any) -> dict[str, Any]:
    """An answer of the twin about `survival`, but for what is changed."""
    ratio = {"estimate": 0.7, "low": 0.6, "high": 0.8, "level": 0.9}
    return {
        "window": {"begin_s": 0.0, "end_s": 1e6}, "incumbent": "random_match", "refused": None,
        "past": {"survival": {"energy_ratio": ratio | {"high": 0.7}}},
        "next": {"survival": {"energy_ratio": ratio, "badput_ratio": None}},
        "basis": {"load_cpus": 3.0, "most_log_change": 0.2},
    } | changed  # fmt: skip


def answered(**changed: Any) -> TwinFile:
    """Return the content of `twin.json`, with changes."""
    plain = {
        "asked_s": time.time(), "answer": answered_with(), "candidates": {"survival": {}},
        "longest_deferral_s": 14_400.0,
    }  # fmt: skip
    return msgspec.convert(plain | changed, TwinFile)


def test_the_forecast_of_the_twin_is_registered_before_what_would_have_been(tmp_path: Path) -> None:
    site = Site(tmp_path, configured())
    site.view.twin.file = answered()
    site.look()
    assert site.registered.stated_as == "next"
    assert site.registered.stated == {"energy_ratio": {"estimate": 0.7, "low": 0.6, "high": 0.8}}


@pytest.mark.parametrize(
    "changed",
    [
        {"asked_s": time.time() - 1e6},
        {"candidates": {"survival": {"worth_ratio": 2.0}}},
        {"longest_deferral_s": 60.0},
        {"answer": answered_with(refused="3 days")},
        {"answer": answered_with(past={}, next=None)},
    ],
    ids=["stale", "other settings", "another bound", "refused", "about others"],
)
def test_an_answer_that_does_not_hold_states_nothing(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    site = Site(tmp_path, configured())
    site.view.twin.file = answered(**changed)
    site.look()
    assert (site.registered.stated_as, site.registered.stated) == ("", {})


def test_a_forecast_that_has_expired_gives_way_to_what_would_have_been(tmp_path: Path) -> None:
    site = Site(tmp_path, configured())
    site.view.twin.file = answered(present={"until_s": 0.0, "load_cpus": 9.0, "waste_share": None})
    site.look()
    assert site.registered.stated_as == "past"
