"""Membership of jobs in the canary."""

import pytest

from outrider.acting.gate import ACT, OUTSIDE, WOULD, Budget, Canary, Gate
from outrider.model.decisions import START

JOBS = [f"host.pool.test#{n}.0" for n in range(10_000)]


def test_with_nothing_named_no_job_is_in_it() -> None:
    assert not any(Canary().holds(job, "alice", "physics", "lab") for job in JOBS)


@pytest.mark.parametrize(
    ("canary", "held"),
    [
        (Canary(clusters=["lab"]), [True, False, False]),
        (Canary(users=["bob"]), [False, True, False]),
        (Canary(vos=["chemistry"]), [False, True, True]),
        (Canary(clusters=["lab"], users=["carol"]), [True, False, True]),
        (Canary(fraction=1.0), [True, True, True]),
    ],
)
def test_any_one_of_group_user_and_vo_is_enough(canary: Canary, held: list[bool]) -> None:
    asked = [("alice", "physics", "lab"), ("bob", "chemistry", None), ("carol", "chemistry", "x")]
    assert [canary.holds("1.0", *words) for words in asked] == held


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.9])
def test_a_fraction_holds_that_part_of_the_jobs_and_always_the_same(fraction: float) -> None:
    held = [job for job in JOBS if Canary(fraction=fraction).holds(job, "", "", None)]
    assert len(held) == pytest.approx(fraction * len(JOBS), rel=0.15)
    more = Canary(fraction=min(1.0, 1.5 * fraction))
    assert all(more.holds(job, "", "", None) for job in held), "a larger one holds them, too"


def test_which_jobs_a_fraction_holds_is_the_same_in_every_release() -> None:
    """Return the first four bytes of the name's SHA-256 as a fraction of 2^32."""
    place = 2_009_411_391 / 2**32
    assert not Canary(fraction=place).holds("12.0", "", "", None), "those below it, not at it"
    assert Canary(fraction=place + 2.0**-32).holds("12.0", "", "", None)


def test_outside_of_it_nothing_is_done_and_nothing_taken_from_the_budget() -> None:
    gate = Gate("canary", Budget(1.0, 30.0))
    answers = [gate.answer(START, 0.0, 0.0, in_canary) for in_canary in (False, False, True)]
    assert answers == [WOULD, WOULD, ACT]
    assert gate.verdicts == {OUTSIDE: 2, ACT: 1}


def test_in_the_mode_active_there_is_no_outside() -> None:
    gate = Gate("active", Budget(9.0, 30.0))
    assert gate.answer(START, 0.0, 0.0, in_canary=False) == ACT
