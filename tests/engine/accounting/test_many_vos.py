"""Fairness of many VOs: the same figures as of few, without a copy at each submission."""

import random
import tracemalloc
from functools import partial

import pytest

from outrider.engine.accounting.accounting import merge_keys
from outrider.engine.accounting.fairness import FEW_VOS, Fairness
from tests.fixtures.counted import instructions

MANY = 3 * FEW_VOS


def played(vos: int, seed: int) -> tuple[Fairness, Fairness]:
    """One that keeps what changed since the last submission, and one saved and restored at each.

    What is saved has whole copies, so the second one never looks at changes.
    """
    rng, now = random.Random(seed), 1000.0
    changes, copies = (Fairness({}, 3600.0) for _ in range(2))
    running: list[str] = []
    for _ in range(4 * vos):
        now += rng.random() * 100.0
        vo = f"vo{rng.randrange(vos)}"
        ended = running.pop(rng.randrange(len(running))) if len(running) > 5 else ""
        submits = rng.random() < 0.3
        for each in (changes, copies):
            if submits:
                each.submitted(vo, now)
            if each is copies:
                each.restore(each.save())
            each.change(vo, 1, now, now)
            if ended:
                each.change(ended, -1, now, now)
        running.append(vo)
    return changes, copies


@pytest.mark.parametrize("vos", [3, MANY])
@pytest.mark.parametrize("seed", range(3))
def test_the_figure_at_the_last_submission_is_what_copies_of_everything_give(
    vos: int, seed: int
) -> None:
    changes, copies = played(vos, seed)
    assert changes.report(1e6) == copies.report(1e6)
    assert changes.save() == copies.save()


def test_a_submission_copies_nothing_where_there_are_many_vos() -> None:
    fairness = Fairness({})
    for n in range(12_000):
        fairness.submitted(f"vo{n}", 1.0)
    tracemalloc.start()
    for n in range(100):
        fairness.submitted(f"vo{n}", 2.0)
        fairness.change(f"vo{n}", 1, 2.0, 2.0)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 20_000, "a copy of what 12,000 VOs got takes 96,000"


@pytest.mark.parametrize("into", ["other", "zoology"])
def test_vos_merged_into_another_keep_the_sums(into: str) -> None:
    fairness, _ = played(MANY, 5)
    now = 1e5
    fairness.correct({}, now)  # no job runs
    before = fairness.report(now)
    gone = [f"vo{n}" for n in range(10)]
    fairness.merge([*gone, into], into)
    after = fairness.report(now)
    assert not set(gone) & after["share"].keys()
    assert after["share"][into] == pytest.approx(sum(before["share"][vo] for vo in gone))
    assert sum(after["share"].values()) == pytest.approx(1.0)
    kept = {vo: share for vo, share in after["share"].items() if vo != into}
    assert kept == pytest.approx({vo: before["share"][vo] for vo in kept})


def test_a_long_quiet_time_costs_a_report_nothing() -> None:
    quiet, asked = (played(MANY, 7)[0] for _ in range(2))
    now = 1e5
    for _ in range(200):
        now += 4_000.0
        quiet.reach(now)
    long_n, short_n = (instructions(partial(each.report, now)) for each in (asked, quiet))
    assert short_n < long_n / 20
    assert figures(quiet, now) == pytest.approx(figures(asked, now))
    for each in (quiet, asked):
        each.change("vo1", 1, now, now)
    assert figures(quiet, now + 1e4) == pytest.approx(figures(asked, now + 1e4))


def figures(fairness: Fairness, now: float) -> list[float]:
    told = fairness.report(now)
    return [told[name] for name in ("utility", "time_mean", "windowed")]


def test_sums_of_vos_that_are_told_apart_no_more_are_added_class_by_class() -> None:
    sums = {("short", "a"): 5.0, ("short", "b"): 7.0, ("short", "c"): 3.0, ("long", "b"): 2.0}
    merge_keys(sums, {"a", "b"}, "others")
    assert sums == {("short", "others"): 12.0, ("short", "c"): 3.0, ("long", "others"): 2.0}
    merge_keys(sums, {"c"}, "others")
    assert sums == {("short", "others"): 15.0, ("long", "others"): 2.0}
