"""What is told of levers: in the status, in the metrics, and of a job."""

from outrider.acting.lever_thread import OUTCOMES
from outrider.service.views.acting import lease_in_words, lease_of, levers_shown
from tests.acting.levers import Refusing, at_a_pool, counts_of, row, wait_until


def test_where_nothing_acts_there_is_nothing_to_tell() -> None:
    assert levers_shown(None) == []
    assert lease_of(None, "1") is None


def test_a_lever_tells_what_stands_what_became_of_the_rest_and_why() -> None:
    runner = at_a_pool(Refusing())
    runner.take([row("1"), row("2"), row("3")])
    assert wait_until(lambda: counts_of(runner, "noting").total() == 3)
    [told] = levers_shown(runner)
    assert (told["adapter"], told["name"]) == ("pool", "noting")
    assert told["standing"] == {"start": 2}
    assert set(told["changes"]) == set(OUTCOMES)
    assert {k: n for k, n in told["changes"].items() if n} == {"applied": 2, "refused": 1}
    assert told["problem"] == "2: not yours"
    stands, refused = lease_of(runner, "1"), lease_of(runner, "2")
    assert stands is not None
    assert refused is not None
    assert (stands["action"], stands["machine"], stands["refused_because"]) == ("start", "m1", None)
    assert lease_in_words(stands) == "Outrider has asked for machines like m1 for it."
    assert (refused["action"], refused["refused_because"]) == (None, "not yours")
    assert lease_in_words(refused) == "What was decided was refused: not yours."
    assert lease_of(runner, "unheard of") is None
    runner.close(5.0)


def test_a_job_that_is_kept_is_said_to_be_kept() -> None:
    lease = {"lever": "x", "action": "defer", "machine": None, "decided_s": 0.0}
    assert lease_in_words(lease) == "Outrider keeps it in the queue until it decides otherwise."
