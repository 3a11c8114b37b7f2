"""Display of levers: in the status, in the metrics, and for a job."""

import pytest

from outrider.acting.lever_thread import OUTCOMES
from outrider.service.views.sentences import lease_in_words
from outrider.service.views.status import lease_of, levers_shown
from tests.acting.levers import Noting, Refusing, at_a_pool, counts_of, row, wait_until

LETS_BEGIN = "Outrider lets it start; the batch system decides when and where."


def test_where_nothing_acts_there_is_nothing_to_tell() -> None:
    assert levers_shown(None) == []
    assert lease_of(None, "1") is None


def test_a_lever_tells_what_stands_what_became_of_the_rest_and_why() -> None:
    runner = at_a_pool(Refusing())
    runner.take([row("1"), row("2"), row("3")])
    assert wait_until(lambda: counts_of(runner, "noting").total() == 3)
    [told] = levers_shown(runner)
    assert (told.adapter, told.name) == ("pool", "noting")
    assert told.standing == {"start": 2}
    assert set(told.changes) == set(OUTCOMES)
    assert {k: n for k, n in told.changes.items() if n} == {"applied": 2, "refused": 1}
    assert told.problem == "2: not yours"
    stands, refused = lease_of(runner, "1"), lease_of(runner, "2")
    assert stands is not None
    assert refused is not None
    assert (stands["action"], stands["machine"], stands["refused_because"]) == ("start", "m1", None)
    assert lease_in_words(stands) == "Outrider has asked for machines like m1 for it."
    assert (refused["action"], refused["refused_because"]) == (None, "not yours")
    assert lease_in_words(refused) == "The batch system refused Outrider's change: not yours."
    assert lease_of(runner, "unheard of") is None
    runner.close(5.0)


@pytest.mark.parametrize(
    ("action", "machine", "said"),
    [
        ("start", "m1", "Outrider has asked for machines like m1 for it."),
        ("start", None, LETS_BEGIN),
        ("preempt", None, "Outrider applied this decision: preempt."),
        ("defer", "m1", "Outrider keeps it in the queue until it decides otherwise."),
    ],
)  # fmt: skip
def test_what_stands_is_said_in_words(action: str, machine: str | None, said: str) -> None:
    assert lease_in_words({"action": action, "machine": machine}) == said


def test_a_lever_that_chooses_no_place_names_no_machine() -> None:
    class Timing(Noting):
        places = False

    runner = at_a_pool(Timing())
    runner.take([row("1", time_s=12.5)])
    assert wait_until(lambda: lease_of(runner, "1") is not None)
    assert lease_of(runner, "1") == {
        "lever": "noting", "action": "start", "machine": None, "decided_s": 12.5,
        "refused_because": None,
    }  # fmt: skip
    runner.close(5.0)


def test_a_job_that_is_kept_is_said_to_be_kept() -> None:
    lease = {"lever": "x", "action": "defer", "machine": None, "decided_s": 0.0}
    assert lease_in_words(lease) == "Outrider keeps it in the queue until it decides otherwise."
