"""Results of the twin for the past agree with a replay, and its random draws are repeatable."""

import datetime as dt
import json
from math import log
from pathlib import Path
from typing import Any

import pytest

from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.formats.campus.campus import Campus
from outrider.replay.run import CampusRun, keep_nothing
from outrider.simulation.generators.campus import generate_campus
from outrider.twin.answer import Answer
from outrider.twin.asking import ask_twin
from tests.cli.running import outrider
from tests.twin.sites import WEEK_S, journal_of, make

UNTIL_S = 8 * WEEK_S
CANDIDATES = ("survival", "lowest_watts")


@pytest.fixture(scope="module")
def campus() -> Campus:
    """Return two months of a campus in term."""
    return generate_campus(7, weeks=8.5, machines=60, clusters=4, start=dt.date(2010, 2, 1))


@pytest.fixture(scope="module")
def journal(campus: Campus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the journal of the campus."""
    return journal_of(campus, tmp_path_factory.mktemp("twin"), until_s=UNTIL_S)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a journal of a third of the machines, where the size of the site does not matter."""
    campus = generate_campus(8, weeks=8.5, machines=26, clusters=3, start=dt.date(2010, 2, 1))
    return journal_of(campus, tmp_path_factory.mktemp("small"), until_s=UNTIL_S)


@pytest.fixture(scope="module")
def answer(journal: Path) -> Answer:
    """Return the twin's result for the journal."""
    return ask_twin(journal, CANDIDATES, make, replicates=4, next_weeks=8, seed=3)


def replayed(
    campus: Campus, policy: str, seed: int, longest_deferral_s: float | None = None
) -> dict[str, float]:
    """Return the figures of a replay of the true campus up to the end of the journal."""
    run = CampusRun(campus, [make(policy, seed)], keep_nothing, UNTIL_S)
    if longest_deferral_s is not None:
        run.runners[0].hand_back = HandBack(longest_deferral_s, make("random_match", seed))
    result: dict[str, Any] = run.run()
    return {
        "energy_ratio": result["energy_wh"]["goodput"] + result["energy_wh"]["badput"],
        "badput_ratio": result["badput_s"],
        "evictions_ratio": sum(result["evictions"].values()),
        "overhead_mean_ratio": result["overhead_s"]["all"]["mean"],
    }


def test_the_incumbent_simulated_anew_does_what_happened(answer: Answer) -> None:
    assert answer.refused is None
    assert answer.fidelity is not None
    parts = answer.fidelity.to_json()["parts"]
    assert isinstance(parts, dict)
    assert all(value is not None for value in parts.values())
    assert parts["energy"] <= 0.02
    assert parts["start_delay_s"] < 1.0  # random matching waits for nothing that is free


def test_what_would_have_been_is_what_the_true_campus_gives(
    campus: Campus, answer: Answer
) -> None:  # fmt: skip
    truth = {name: replayed(campus, name, 11) for name in ("random_match", *CANDIDATES)}
    for policy in CANDIDATES:
        for name, ratio in answer.past[policy].items():
            if name not in truth[policy]:
                continue
            assert ratio is not None
            true = truth[policy][name] / truth["random_match"][name]
            widest = 0.10 if name == "overhead_mean_ratio" else 0.04
            assert abs(log(ratio.estimate / true)) < widest, (policy, name, ratio, true)
            assert ratio.low < ratio.estimate < ratio.high


def test_a_bound_on_deferrals_holds_for_candidates_alone_and_leaves_less_of_a_saving(
    campus: Campus, journal: Path, answer: Answer
) -> None:
    longest_s = 4 * 3_600.0
    bounded = ask_twin(journal, ["survival"], make, replicates=3, longest_deferral_s=longest_s)
    assert bounded.to_json()["longest_deferral_s"] == longest_s
    assert answer.to_json()["longest_deferral_s"] is None
    true = replayed(campus, "survival", 11, longest_s)["energy_ratio"]
    true /= replayed(campus, "random_match", 11)["energy_ratio"]
    ratio, unbounded = (one.past["survival"]["energy_ratio"] for one in (bounded, answer))
    assert ratio is not None
    assert unbounded is not None
    assert abs(log(ratio.estimate / true)) < 0.04
    assert ratio.estimate > unbounded.high


def test_a_forecast_is_never_surer_than_the_past(answer: Answer) -> None:
    assert answer.next is not None
    for policy in CANDIDATES:
        past, coming = answer.past[policy]["energy_ratio"], answer.next[policy]["energy_ratio"]
        assert past is not None
        assert coming is not None
        assert coming.estimate == past.estimate
        assert coming.low < past.low
        assert coming.high > past.high


def test_the_same_seed_gives_the_same_answer_and_another_another(small: Path) -> None:
    def asked(seed: int) -> dict[str, Any]:
        return ask_twin(small, ["survival"], make, replicates=2, seed=seed).to_json()

    first = asked(1)
    assert asked(1) == first
    assert asked(2)["past"] != first["past"]


def test_the_incumbent_beside_itself_takes_exactly_as_much(small: Path) -> None:
    found = ask_twin(small, ["random_match"], make, replicates=2)
    ratio = found.past["random_match"]["energy_ratio"]
    assert ratio is not None
    assert ratio.estimate == 1.0
    assert 0.98 < ratio.low < 1.0 < ratio.high < 1.02


def test_a_candidate_that_fails_or_knows_the_truth_is_refused_alone(small: Path) -> None:
    found = ask_twin(small, ["clairvoyant", "replan", "lowest_watts"], make, replicates=2)
    assert found.refused is None
    assert found.past.keys() == {"lowest_watts"}
    assert "true run times" in found.candidates_refused["clairvoyant"]
    assert "replan" in found.candidates_refused["replan"]  # plans, and this site only starts
    alone = ask_twin(small, ["clairvoyant"], make, replicates=2)
    assert alone.past == {}
    assert alone.refused is not None
    assert "true run times" in alone.refused


def test_the_command_prints_the_answer_with_its_provenance(small: Path) -> None:
    words = ("twin", small, "--policy", "survival", "--replicates", 2, "--next", 8, "--seed", 4)
    result = outrider(*words, "--json").json()
    expected = ask_twin(small, ["survival"], make, replicates=2, next_weeks=8, seed=4).to_json()
    assert {name: result[name] for name in expected} == json.loads(json.dumps(expected))
    assert [trace["path"] for trace in result["traces"]] == [str(small)]
    assert set(result["past"]["survival"]["energy_ratio"]) == {"estimate", "low", "high", "level"}
    assert result["off_policy"]["survival"]["incumbent"] == "random_match"
    shown = outrider(*words).out
    assert "Past period: candidate / current scheduler" in shown
    assert "Forecast: candidate / current scheduler" in shown
    assert "from recorded starts, survival" in shown


def test_a_policy_that_is_not_there_is_refused_before_anything_is_simulated(small: Path) -> None:
    result = outrider("twin", small, "--policy", "survivel")
    assert result.code == 2
    assert "survival" in result.err
