"""Metrics of the twin's result and of expected starts: figures only while they are valid."""

import math
from pathlib import Path
from typing import Any

import pytest

from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import TwinSettings
from outrider.service.metrics.declarations.evidence import FIDELITY_RATIOS, MEASURES
from outrider.service.metrics.exporter import put_evidence
from outrider.service.metrics.store import MetricStore
from outrider.service.twin import starts_file
from outrider.service.twin.twin_file import write_plain
from outrider.service.twin.watch import FRESH_S, TwinWatch
from outrider.twin import fidelity, measures
from tests.fixtures.evidence import LIMITS, PARTS, POLICIES, starts_told, twin_answered
from tests.service.metrics.sites import CLASSIC, read

ASKED_S = 1.7e9
DAY_S = 86_400.0


class Shown:
    """The metrics of a state directory, at a time, by name and label values in any order."""

    def __init__(
        self,
        folder: Path,
        *,
        age_s: float = 3_600.0,
        seen_s: float = 1_010.0,
        config: Config | None = None,
    ) -> None:
        watch = TwinWatch(folder)
        watch.look()
        config = config or Config(policies=POLICIES)
        store = MetricStore({"policy": list(config.policies)})
        put_evidence(store, watch, config, now_s=ASKED_S + age_s, seen_s=seen_s)
        self._samples = read(store, CLASSIC)

    def value(self, name: str, **labels: str) -> float:
        return self._samples[f"outrider_{name}", tuple(sorted(labels.items()))]

    def ratio(self, answer: str, measure: str, policy: str = "survival") -> list[float]:
        bounds = ("estimate", "low", "high")
        labels = {"answer": answer, "measure": measure, "policy": policy}
        return [self.value("twin_ratio", bound=bound, **labels) for bound in bounds]

    def state(self, name: str) -> str:
        """Return the one state of a state set that is 1."""
        found = [
            key[0][1] for (metric, key), on in self._samples.items()
            if metric == f"outrider_{name}" and on
        ]  # fmt: skip
        [state] = found
        return state

    def candidates(self) -> dict[str, str]:
        """Return the state of each policy."""
        found: dict[str, str] = {}
        for (metric, key), on in self._samples.items():
            if metric == "outrider_twin_candidate_state" and on:
                labels = dict(key)
                assert labels["policy"] not in found
                found[labels["policy"]] = labels["state"]
        return found

    def figures(self) -> list[float]:
        """Return all that `twin_ratio` says."""
        return [v for (metric, _), v in self._samples.items() if metric == "outrider_twin_ratio"]


def test_measures_and_parts_are_those_of_the_twin() -> None:
    assert [f"{measure}_ratio" for measure in MEASURES] == [m.name for m in measures.MEASURES]
    assert [*FIDELITY_RATIOS, "start_delay_s"] == list(fidelity.BOUNDS)
    assert measures.LEVEL == 0.9, "the help of outrider_twin_ratio says so"


def test_an_answer_is_shown_with_its_intervals_window_and_forecast(tmp_path: Path) -> None:
    write_plain(tmp_path, twin_answered(ASKED_S))
    shown = Shown(tmp_path)
    assert (shown.state("twin_state"), shown.state("twin_forecast_state")) == ("answered", "holds")
    assert shown.ratio("past", "energy") == [0.76, 0.72, 0.80]
    assert shown.ratio("next", "energy") == [0.8, 0.6, 1.1]
    assert all(map(math.isnan, shown.ratio("past", "badput"))), "nothing was ever wasted"
    assert shown.value("twin_asked_timestamp_seconds") == ASKED_S
    assert shown.value("twin_window_timestamp_seconds", edge="begin") == ASKED_S - 2e6
    assert shown.value("twin_window_timestamp_seconds", edge="end") == ASKED_S - 1e3
    assert shown.value("twin_forecast_window_seconds") == 56 * DAY_S
    assert [shown.value("twin_load_cpus", when=when) for when in ("past", "now")] == [8.0, 9.0]
    assert [shown.value("twin_waste_ratio", when=when) for when in ("past", "now")] == [0.5, 0.45]


def test_fidelity_is_shown_by_part_beside_its_bounds_also_where_it_is_why_none_is_given(
    tmp_path: Path,
) -> None:
    failed = {"passed": False, "parts": PARTS, "bounds": LIMITS, "failed": ["evictions"]}
    write_plain(
        tmp_path, twin_answered(ASKED_S, refused="evictions are off", past={}, fidelity=failed)
    )
    shown = Shown(tmp_path)
    assert shown.value("twin_fidelity_passed") == 0
    assert shown.value("twin_fidelity_ratio", part="evictions") == 0.05
    assert shown.value("twin_fidelity_bound_ratio", part="evictions") == 0.03
    assert math.isnan(shown.value("twin_fidelity_ratio", part="waste"))
    assert shown.value("twin_fidelity_start_delay_seconds") == 30
    assert shown.value("twin_fidelity_start_delay_bound_seconds") == 600


@pytest.mark.parametrize(
    ("file", "settings", "age_s", "state"),
    [
        (None, {}, 0, "none"),
        ({"asking_since_s": ASKED_S}, {}, 0, "none"),
        (twin_answered(ASKED_S, refused="3 days"), {}, 0, "refused"),
        (twin_answered(ASKED_S, refused="it was killed") | {"failures": 2}, {}, 0, "failed"),
        (twin_answered(ASKED_S), {}, 3 * DAY_S + 1, "stale"),
        (twin_answered(ASKED_S, refused="3 days"), {}, 3 * DAY_S + 1, "stale"),
        (twin_answered(ASKED_S), {"stale_after_s": 60.0}, 61, "stale"),
        (twin_answered(ASKED_S), {"every_s": 0}, 3 * DAY_S + 1, "off"),
        (None, {"every_s": 0}, 0, "off"),
    ],
    ids=[
        "never-asked", "first-asking", "refused", "failed", "old", "refused-long-ago",
        "old-by-setting", "asked-no-more", "off",
    ],
)  # fmt: skip
def test_no_figure_is_shown_of_what_is_no_answer_now(
    tmp_path: Path, file: dict[str, Any] | None, settings: dict[str, Any], age_s: float, state: str
) -> None:
    if file is not None:
        write_plain(tmp_path, file)
    config = Config(policies=POLICIES, twin=TwinSettings(**settings))
    shown = Shown(tmp_path, age_s=age_s, config=config)
    assert (shown.state("twin_state"), shown.state("twin_forecast_state")) == (state, "none")
    assert len(shown.figures()) == len(POLICIES) * 2 * len(MEASURES) * 3
    assert all(map(math.isnan, shown.figures()))
    assert shown.candidates() == dict.fromkeys(POLICIES, "none")
    if state != "refused":
        assert math.isnan(shown.value("twin_fidelity_passed"))


def test_an_answer_while_asking_is_off_is_shown_as_long_as_it_is_fresh(tmp_path: Path) -> None:
    write_plain(tmp_path, twin_answered(ASKED_S))
    config = Config(policies=POLICIES, twin=TwinSettings(every_s=0))
    assert Shown(tmp_path, config=config).state("twin_state") == "answered"


@pytest.mark.parametrize(
    ("changed", "present", "state"),
    [
        ({}, {"load_cpus": 12.0}, "expired"),
        ({}, {"waste_share": 0.3}, "expired"),
        ({"next": None, "next_refused": "too short"}, {}, "refused"),
        ({"next": None}, {}, "none"),
    ],
)
def test_a_forecast_that_does_not_hold_shows_no_figure_and_the_past_does(
    tmp_path: Path, changed: dict[str, Any], present: dict[str, float], state: str
) -> None:
    file = twin_answered(ASKED_S, **changed)
    write_plain(tmp_path, file | {"present": file["present"] | present})
    shown = Shown(tmp_path)
    assert shown.state("twin_forecast_state") == state
    assert all(map(math.isnan, shown.ratio("next", "energy")))
    assert shown.ratio("past", "energy") == [0.76, 0.72, 0.80]


def test_of_each_policy_it_is_told_why_there_is_no_figure(tmp_path: Path) -> None:
    write_plain(tmp_path, twin_answered(ASKED_S))
    assert Shown(tmp_path).candidates() == {
        "survival": "answered", "fifo": "answered", "sjf": "refused"
    }  # fmt: skip
    now = {"survival": {"worth_ratio": 3.0}, "fifo": {}, "bandit": {}}
    shown = Shown(tmp_path, config=Config(policies=now))
    assert shown.candidates() == {
        "survival": "changed", "fifo": "answered", "bandit": "not_asked"
    }  # fmt: skip
    assert all(map(math.isnan, shown.ratio("past", "energy"))), "that was of other settings"


def test_expected_starts_are_counted_and_scored(tmp_path: Path) -> None:
    starts_file.write(tmp_path, starts_told(1_000.0))
    shown = Shown(tmp_path)
    assert shown.state("starts_state") == "answered"
    assert shown.value("starts_age_seconds") == 10
    counts = [shown.value("starts_jobs", expected=x) for x in ("now", "known", "not_known")]
    assert counts == [1, 2, 1]
    assert shown.value("starts_scored", asked="submission") == 250
    assert shown.value("starts_coverage_ratio", asked="submission") == 0.78
    assert shown.value("starts_pinball_seconds", asked="submission") == 42.5
    assert shown.value("starts_scored", asked="hourly") == 0
    assert math.isnan(shown.value("starts_coverage_ratio", asked="hourly"))


@pytest.mark.parametrize(
    ("changed", "seen_s", "state"),
    [
        ({}, 1_001.0 + FRESH_S, "stale"),
        ({"problem": "the journal is damaged"}, 1_010.0, "failed"),
        (None, 1_010.0, "none"),
    ],
)
def test_expected_starts_that_are_old_or_failed_show_no_figure(
    tmp_path: Path, changed: dict[str, Any] | None, seen_s: float, state: str
) -> None:
    if changed is not None:
        starts_file.write(tmp_path, starts_told(1_000.0, **changed))
    shown = Shown(tmp_path, seen_s=seen_s)
    assert shown.state("starts_state") == state
    for expected in ("now", "known", "not_known"):
        assert math.isnan(shown.value("starts_jobs", expected=expected))
    for name in ("starts_scored", "starts_coverage_ratio", "starts_pinball_seconds"):
        assert math.isnan(shown.value(name, asked="submission"))
    assert math.isnan(shown.value("starts_age_seconds")) == (state != "stale")
