"""Judgement of soaks, with made-up reports."""

from collections import Counter

import pytest

from tests.soak.judging import complaints
from tests.soak.probes import Sample
from tests.soak.soak import CALM, SoakReport


def report(*looks: tuple[str, float, float]) -> SoakReport:
    """Return a report of looks: phase, seconds to the answer, megabytes."""
    samples = [Sample(float(n), *look) for n, look in enumerate(looks)]
    attacks = Counter(dict.fromkeys((s.during for s in samples if s.during != CALM), 1))
    return SoakReport(samples, attacks, {}, Counter(), Counter(), [])


GROWN = [(CALM, 0.1, 80.0), ("flood", 0.1, 150.0), (CALM, 0.1, 230.0), ("flood", 0.1, 290.0),
         (CALM, 0.1, 240.0)]  # fmt: skip


def test_what_an_attack_takes_is_counted_from_the_calm_before_it() -> None:
    """A daemon that knows its jobs is larger than an empty one, without any attack."""
    assert complaints(report(*GROWN)) == []
    attacked = [*GROWN[:3], ("flood", 0.1, 351.0), GROWN[4]]
    assert complaints(report(*attacked)) == ["memory rose from 230 to 351 MB"]


def test_what_stays_from_one_calm_to_the_last_is_growth() -> None:
    grown = [*GROWN[:4], (CALM, 0.1, 261.0)]
    assert complaints(report(*grown)) == ["calm memory grew from 230 to 261 MB"]


ROUNDS = 8


def after_rounds(grown_mb: float) -> SoakReport:
    """Two attacks, of which the second leaves more behind; memory fills in the first rounds."""
    looks = [(CALM, 0.1, 60.0)]
    for n in range(ROUNDS):
        base_mb = 100.0 + min(200.0, 100.0 * n) + (grown_mb if n == ROUNDS - 1 else 0.0)
        looks += [("flood", 0.1, base_mb), (CALM, 0.1, base_mb)]
        looks += [("junk", 0.1, base_mb + 50.0), (CALM, 0.1, base_mb + 50.0)]
    return report(*looks)


@pytest.mark.parametrize(("grown_mb", "found"), [(29.0, 0), (31.0, 1)])
def test_a_memory_of_jobs_that_fills_in_the_first_half_is_no_growth(
    grown_mb: float, found: int
) -> None:
    assert len(complaints(after_rounds(grown_mb))) == found


@pytest.mark.parametrize(("answer_s", "found"), [(1.9, 0), (2.1, 1)])
def test_an_answer_under_attack_is_awaited_two_seconds(answer_s: float, found: int) -> None:
    slow = [*GROWN[:3], ("flood", answer_s, 240.0), GROWN[4]]
    assert len(complaints(report(*slow))) == found
