"""The status of a small site, every figure worked out by hand."""

import time
from typing import Any

import pytest

from outrider.acting.gate import ACT, BUDGET, STALE
from outrider.api import Batch
from outrider.service.views.status import _power_source, measured_ratio, status
from tests.fixtures.cores import T
from tests.fixtures.small_figures import small_figures


@pytest.fixture
def shown() -> dict[str, Any]:
    """The status of a site whose figures are known."""
    return status(small_figures(), {"uptime_s": 7.0})


def test_jobs_and_machines_are_counted_by_what_they_do(shown: dict[str, Any]) -> None:
    assert shown["jobs"] == {
        "queued": 2, "running": 1, "suspended": 0, "held": 0,
        "submitted": 5, "completed": 1, "removed": 1,
    }  # fmt: skip
    assert shown["machines"] == {"busy": 1, "free": 2, "owner": 1, "asleep": 0, "closed": 1}
    lab = {"machines": 2, "free": 1, "busy": 1, "owner": 0, "active_w": 100.0}
    office = {"machines": 3, "free": 1, "busy": 0, "owner": 1, "active_w": None}
    assert shown["clusters"] == [{"name": "lab", **lab}, {"name": "office", **office}]
    assert (shown["since_s"], shown["now_s"], shown["uptime_s"]) == (T, T + 100, 7.0)


def test_waits_work_and_energy_are_those_of_the_runs(shown: dict[str, Any]) -> None:
    """a and b waited for 1 s, d for 2 s; c waits, and d again."""
    everybody = shown["wait_s"]["all"]
    assert everybody["mean"] == pytest.approx(4 / 3)
    assert (everybody["n"], everybody["censored_n"]) == (3, 2)
    assert [n for _, n in shown["wait_buckets_s"]][:3] == [2, 1, 0]
    assert (shown["goodput_s"], shown["badput_s"], shown["starts"]) == (1.0, 30.0, 3)
    assert {reason for reason, n in shown["evictions"].items() if n} == {"owner"}
    assert shown["energy_wh"] == pytest.approx(
        {
            "goodput": 50 / 3600, "badput": 30 * 100 / 3600, "open": 79 * 50 / 3600,
            "idle": None, "sleep": 0.0, "owner": None,
        }
    )  # fmt: skip
    assert (shown["power_source"], shown["energy_measured_ratio"]) == ("table", 0.0)


def test_policies_say_what_they_would_have_done(shown: dict[str, Any]) -> None:
    """A machine was free for each of the five jobs, and for d again."""
    for policy in shown["policies"]:
        assert policy["role"] == "shadow"
        assert policy["decisions"] == 6
        assert policy["by_action"] == {"start": 6, "defer": 0}
        assert (policy["agreed"], policy["disagreed"], policy["agreement_ratio"]) == (3, 0, 1.0)
        assert policy["gate"]["would_act"] == 6
    assert shown["gate"]["would_act"] == 12


def test_a_log_that_nobody_writes_is_named_while_a_job_runs_and_only_then() -> None:
    core = small_figures()
    old_s = time.time() - 1e6
    batch = Batch(events=[], cursor=None, written_s={"EventLog": old_s})
    core.sources["log"].note_batch(batch, 60.0)
    log, meters = status(core, {})["adapters"]
    assert (log["label"], log["silent"]) == ("log", {"EventLog": old_s})
    assert (meters["label"], meters["silent"]) == ("meters", {})
    for job in core.site.jobs.values():
        if job.machine >= 0:
            job.state = 0
    core.site.count_jobs()  # they were changed by hand
    assert status(core, {})["jobs"]["running"] == 0
    assert status(core, {})["adapters"][0]["silent"] == {}, "a quiet site has nothing to write"


def test_a_policy_that_could_not_be_made_decided_nothing_and_says_why() -> None:
    core = small_figures()
    core.policies_without_runner["lost"] = "it needs a package that is not here"
    known, _, lost = status(core, {})["policies"]
    assert known.keys() == lost.keys(), "whoever reads one can read the other"
    told = {key: value for key, value in lost.items() if value}
    assert told == {
        "name": "lost", "role": "shadow", "broken": "it needs a package that is not here",
        "by_action": {"start": 0, "defer": 0},
        "gate": {"would_act": 0, "would_refuse": {"stale_input": 0, "budget": 0}},
    }  # fmt: skip
    assert (lost["decisions"], lost["agreed"], lost["disagreed"], lost["reward_n"]) == (0, 0, 0, 0)


def test_a_policy_s_mean_reward_and_how_often_it_agreed_are_of_what_it_was_asked() -> None:
    core = small_figures()
    runner = core.runners[0]
    runner.reward_sum, runner.reward_n = -3.0, 4
    runner.agreed, runner.disagreed = 3, 9
    told, other = status(core, {})["policies"]
    assert (told["reward_mean"], told["reward_n"], told["agreement_ratio"]) == (-0.75, 4, 0.25)
    assert other["reward_mean"] is None


@pytest.mark.parametrize(
    ("known_wh", "measured_wh", "source", "ratio"),
    [
        ((None, 10.0), (0.0, 0.0), "unknown", 0.0),
        ((30.0, 10.0), (0.0, 0.0), "table", 0.0),
        ((30.0, 10.0), (30.0, 0.0), "mixed", 0.75),
        ((30.0, 10.0), (30.0, 10.0), "measured", 1.0),
        ((0.0, 0.0), (0.0, 0.0), "table", None),
    ],
)
def test_it_is_told_whether_energy_was_measured_or_comes_from_the_table(
    known_wh: tuple[float | None, float], measured_wh: tuple[float, float], source: str,
    ratio: float | None,
) -> None:  # fmt: skip
    names = ("goodput", "badput")
    figures: dict[str, Any] = {
        "energy_wh": dict(zip(names, known_wh, strict=True)),
        "energy_measured_wh": dict(zip(names, measured_wh, strict=True)),
    }
    assert (_power_source(figures), measured_ratio(figures)) == (source, ratio)


def test_what_was_refused_and_repaired_is_told_by_its_cause() -> None:
    core = small_figures()
    [gate, other] = core.decision_log.gates.values()
    gate.verdicts.update({ACT: 1, STALE: 2, BUDGET: 3})
    other.verdicts.update({STALE: 4})
    core.merger.normaliser.repairs["slot_used_again"] += 2
    core.runners[0].refused["memory"] += 5
    shown = status(core, {})
    assert shown["gate"] == {"would_act": 13, "would_refuse": {STALE: 6, BUDGET: 3}}
    first = shown["policies"][0]
    assert first["gate"] == {"would_act": 7, "would_refuse": {STALE: 2, BUDGET: 3}}
    assert first["refused"] == {"memory": 5}
    assert shown["repairs"]["slot_used_again"] == 2
