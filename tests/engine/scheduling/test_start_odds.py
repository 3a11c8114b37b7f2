"""Probabilities of where a policy would start a job if it had to, without side effects."""

import random
from typing import Any

import pytest

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView
from outrider.model import events as ev
from outrider.testing.fixtures import HandSite
from outrider_policies.bandits.bandit import Bandit
from outrider_policies.planning.baselines import Replan
from outrider_policies.rules.placements import Fifo, LowestWatts, RandomMatch


def filled(kind: type[Policy], **settings: Any) -> HandSite:
    """Machines of 80 W (0, in use, to 2) and 40 W (3, 4); one job is queued."""
    hand = HandSite(kind, **settings)
    hand.machines(1, 1, 1, cluster="lab", active_w=80.0)
    hand.machines(1, 1, cluster="office", active_w=40.0)
    hand.site.index_runs()
    hand.submit(0)
    hand.tell(ev.STARTED, 0, (0, 1))
    hand.submit(1)
    return hand


def odds(hand: HandSite, seed: int = 0) -> dict[int, float]:
    return hand.runner.would_choose(hand.site.jobs[1], hand.site, random.Random(seed))


def test_a_machine_left_to_chance_stands_for_all_that_could_have_been_drawn() -> None:
    assert odds(filled(RandomMatch)) == pytest.approx(dict.fromkeys((1, 2, 3, 4), 0.25))
    assert odds(filled(LowestWatts)) == pytest.approx({3: 0.5, 4: 0.5})


def test_a_certain_choice_is_one_machine() -> None:
    hand = filled(Fifo)
    assert odds(hand) == {hand.site.tightest(1): 1.0}


def test_a_policy_that_explores_is_right_in_the_mean() -> None:
    """Nothing was learned: exploring or not, it draws one of two clusters, then a machine."""
    hand = filled(Bandit, epsilon=0.5)
    total: dict[int, float] = dict.fromkeys((1, 2, 3, 4), 0.0)
    for seed in range(200):
        said = odds(hand, seed)
        assert sum(said.values()) == pytest.approx(1.0)
        for machine, chance in said.items():
            total[machine] += chance / 200
    assert total == pytest.approx(dict.fromkeys((1, 2, 3, 4), 0.25), abs=0.03)


class Refuses(Policy):
    """Policy that starts no job."""

    name = "refuses"
    description = "for tests: names no machine, although the job must start"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Return no machine at all."""
        return Choice(NOWHERE, "no", 1.0)


def test_where_no_machine_is_named_one_is_drawn_as_in_a_pass() -> None:
    assert odds(filled(Refuses)) == pytest.approx(dict.fromkeys((1, 2, 3, 4), 0.25))


def test_only_places_where_the_job_fits_count() -> None:
    hand = filled(RandomMatch)
    hand.machines(4, cluster="office", active_w=40.0)
    hand.submit(2, cpus=2)
    job = hand.site.jobs[2]
    assert hand.runner.would_choose(job, hand.site, random.Random(1)) == {5: 1.0}
    hand.submit(3, cpus=8)
    job = hand.site.jobs[3]
    assert hand.runner.would_choose(job, hand.site, random.Random(1)) == {}


def test_asking_leaves_the_chance_of_the_policy_and_the_site_alone() -> None:
    hand = filled(RandomMatch)
    before, site = hand.policy.rng.getstate(), hand.site.save()
    odds(hand)
    assert hand.policy.rng.getstate() == before
    assert hand.site.save() == site
    assert (hand.starts, hand.decision_log.rows) == ([], [])


class Fails(RandomMatch):
    """Policy that raises an error."""

    name = "fails"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Raise an error in place of an answer."""
        raise RuntimeError("no idea")


def test_a_policy_that_fails_is_asked_no_more() -> None:
    hand = filled(Fails)
    hand.runner.strict = False
    own = hand.policy.rng
    assert odds(hand) == {}
    assert hand.runner.broken == 'policy "fails" failed: RuntimeError: no idea'
    assert hand.policy.rng is own
    assert odds(hand) == {}


def test_a_policy_that_plans_is_not_asked() -> None:
    with pytest.raises(ValueError, match="replan plans whole passes"):
        odds(filled(Replan))
