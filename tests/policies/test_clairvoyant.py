"""The bounds for judging: what they know, how good they are, and that nothing live can ask."""

import random
from typing import Any

import pytest

from outrider.api import Choice, Job, Policy, SiteView
from outrider.api.capabilities import Listens
from outrider.model.errors import PolicyError
from outrider.model.events import JOINED
from outrider.testing.campuses import tiny_campus
from outrider.testing.conformance import NotConforming
from outrider.testing.decision_tests import DecisionTests
from outrider.testing.fixtures import chance
from outrider.testing.hand_campus import DAY_S, HOUR_S, Rules, Session, Work, make_campus
from outrider_policies.rules.bounds import Clairvoyant, ClairvoyantJobs, ClairvoyantSettings
from tests.fixtures.plays import MAKERS, Play
from tests.policies.views import HandView, waiting_job

BOUNDS: tuple[type[Any], ...] = (Clairvoyant, ClairvoyantJobs)


def made(kind: type[Any]) -> Policy:
    policy: Policy = kind(ClairvoyantSettings(), chance(kind.name))
    return policy


def waste(play: Play) -> float:
    wasted: float = play.report["energy_wh"]["badput"]
    return wasted


@pytest.mark.parametrize("kind", BOUNDS)
def test_it_says_that_it_needs_the_truth_and_refuses_to_go_without(kind: type[Any]) -> None:
    assert kind.needs_oracle
    policy = made(kind)
    with pytest.raises(ValueError, match="only replay has it"):
        policy.choose(waiting_job(), None, HandView([1], [50.0]), True)


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_job_that_never_ends_is_never_started(kind: type[Any]) -> None:
    campus = make_campus([0], [Work(0.0, None, kill_s=5 * HOUR_S), Work(60.0, 600.0)], end_s=DAY_S)
    play = Play(campus, [made(kind)])
    assert play.report["jobs"]["completed"] == 1
    assert (play.report["starts"], waste(play)) == (1, 0.0)


@pytest.mark.parametrize("kind", BOUNDS)
def test_a_job_waits_for_the_reboot_that_it_could_not_survive(kind: type[Any]) -> None:
    rules = Rules(reboot_s=3 * HOUR_S)
    campus = make_campus([0], [Work(2 * HOUR_S, 2 * HOUR_S)], rules=rules, end_s=DAY_S)
    play = Play(campus, [made(kind)])
    starts = [row.time_s for row in play.rows if row.action == "start"]
    assert starts == [3 * HOUR_S]
    assert waste(play) == 0.0


def test_with_owners_known_the_tightest_stretch_that_suffices_is_taken() -> None:
    """Check with machines free for 1, 3 and 5 h, and jobs of 2 and 4 h."""
    sessions = [Session(m, (1 + 2 * m) * HOUR_S, 20 * HOUR_S) for m in range(3)]
    jobs = [Work(10.0, 2 * HOUR_S), Work(20.0, 4 * HOUR_S)]
    play = Play(make_campus([0, 0, 0], jobs, sessions, end_s=DAY_S), [made(Clairvoyant)])
    assert [row.machine for row in play.rows if row.action == "start"] == ["m1", "m2"]
    assert sum(play.report["evictions"].values()) == 0


def test_few_watts_come_before_a_tight_stretch() -> None:
    sessions = [Session(0, 3 * HOUR_S, 20 * HOUR_S)]
    campus = make_campus([0, 1], [Work(10.0, HOUR_S)], sessions, watts=[150.0, 50.0], end_s=DAY_S)
    play = Play(campus, [made(Clairvoyant)])
    assert [row.machine for row in play.rows if row.action == "start"] == ["m1"]


def test_with_owners_unknown_the_seat_left_alone_the_longest_is_taken() -> None:
    sessions = [Session(0, 100.0, 2000.0), Session(1, 100.0, 1000.0), Session(2, 100.0, 3000.0)]
    campus = make_campus([0, 0, 0], [Work(4000.0, 60.0)], sessions, end_s=DAY_S)
    play = Play(campus, [made(ClairvoyantJobs)])
    assert [row.machine for row in play.rows if row.action == "start"] == ["m1"]


def evicted(play: Play) -> int:
    """Runs that owners or reboots ended."""
    n: int = play.report["evictions"]["owner"] + play.report["evictions"]["reboot"]
    return n


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_who_knows_everything_is_never_evicted_and_who_knows_the_jobs_seldom(seed: int) -> None:
    """Check that users may still kill runs: the oracle does not know that."""
    plain = Play(tiny_campus(seed), [MAKERS["random_match"]()])
    jobs_known = Play(tiny_campus(seed), [made(ClairvoyantJobs)])
    all_known = Play(tiny_campus(seed), [made(Clairvoyant)])
    assert evicted(all_known) == 0
    assert 0 < evicted(jobs_known) < 0.7 * evicted(plain)
    assert waste(all_known) < waste(jobs_known) < waste(plain)


class HandOracle:
    """Oracle of the test: every job runs for an hour, and no owner logs in."""

    def run_s(self, job: int) -> float:
        return HOUR_S

    def next_login_s(self, machine: int, after_s: float) -> float:
        return float("inf")


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("watts", [(None, 80.0), (None, None)])
def test_clusters_of_unknown_watts_come_last(
    kind: type[Any], watts: tuple[float | None, ...]
) -> None:
    policy, view = made(kind), HandView([1, 1], watts)
    policy.oracle = HandOracle()
    if isinstance(policy, Listens):
        for machine in (0, 100):
            policy.on_machine_event(JOINED, machine, view)
    chosen = policy.choose(waiting_job(), None, view, True).machine
    assert chosen == (100 if watts[1] else 0)


class RebootSoon(HandView):
    """All machines reboot before an hour has passed."""

    def next_reboot_s(self) -> float:
        return self.now + HOUR_S - 1.0


def test_who_knows_the_jobs_says_whether_one_would_end_before_the_reboot() -> None:
    policy = made(ClairvoyantJobs)
    policy.oracle = HandOracle()
    told = [policy.explain(waiting_job(), view([1], [50.0])) for view in (HandView, RebootSoon)]
    assert told[0].startswith("it starts on the free machine of fewest watts")
    assert told[1] == "it would not end before the next reboot, if ever"


QUESTIONS = [
    "test_it_says_what_it_is",
    "test_every_setting_tells_its_unit_and_purpose",
    "test_the_same_seed_gives_the_same_ledger",
    "test_another_policy_in_the_same_run_changes_nothing",
    "test_every_choice_is_a_free_machine_or_the_queue",
    "test_it_starts_a_job_that_may_not_be_kept",
    "test_it_explains_each_job_in_one_sentence",
]


def ask(kind: type[Any], question: str) -> None:
    """Put a question of the conformance suite; it raises an error if the answer is wrong."""
    suite = type("Suite", (DecisionTests,), {"policy": kind})
    getattr(suite(), question)()


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_bound_answers_what_the_suite_asks_of_acting_policies(
    kind: type[Any], question: str
) -> None:
    """The suite's other questions are asked in shadow, where there is no oracle, or forbid one."""
    ask(kind, question)


class Speechless(Clairvoyant):
    """Clairvoyant policy that explains nothing."""

    api_version = 1

    def explain(self, job: Job, view: SiteView) -> str:
        return ""


class Reckless(Clairvoyant):
    """Names the first machine, free or not."""

    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(0, "first", 1.0)


class Fickle(Clairvoyant):
    """Tosses a coin of its own."""

    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        machines = [machine for machine in view.free_since if view.is_free(machine)]
        return Choice(machines[int(random.random() * len(machines))], "whim", 1.0)


@pytest.mark.parametrize(
    ("kind", "question", "found"),
    [
        (Speechless, "test_it_explains_each_job_in_one_sentence", r"explain\(\) returned ''"),
        (Reckless, "test_every_choice_is_a_free_machine_or_the_queue", "cannot start there"),
        (Fickle, "test_the_same_seed_gives_the_same_ledger", "a second run with the same seed"),
    ],
)
def test_a_bound_that_errs_is_found_by_those_questions(
    kind: type[Any], question: str, found: str
) -> None:
    assert question in QUESTIONS
    with pytest.raises((NotConforming, PolicyError), match=found):
        ask(kind, question)
