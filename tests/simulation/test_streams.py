"""Streams of events: neither batching nor other policies change the results."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.formats.campus.campus import Campus
from outrider.testing.hand_campus import sessions_of, with_sessions
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play, Shadow, bandit
from tests.suite.examples import examples

thorough = settings(max_examples=examples(40), derandomize=True)
each_policy = pytest.mark.parametrize("policy", MAKERS)


@each_policy
@thorough
@given(campus=campuses(), seed=st.integers(0, 99))
def test_owner_rows_of_equal_time_may_stand_in_any_order(
    policy: str, campus: Campus, seed: int
) -> None:
    stays = sessions_of(campus)
    random.Random(seed).shuffle(stays)
    stays.sort(key=lambda stay: stay.login_s)
    shuffled = with_sessions(campus, stays)
    assert Play(shuffled, [MAKERS[policy]()]).rows == Play(campus, [MAKERS[policy]()]).rows


@thorough
@given(campus=campuses())
def test_lists_of_any_length_give_the_same_decisions(campus: Campus) -> None:
    told = Play(campus, [MAKERS["random_match"]()]).told
    gathered = []
    for length in (1, 10, 1000):
        shadow = Shadow(campus, [bandit(), MAKERS["dither"]()])
        for at in range(0, len(told), length):
            shadow.engine.feed(told[at : at + length])
        gathered.append((shadow.decision_log.rows, shadow.decision_log.ends))
    assert gathered[0] == gathered[1] == gathered[2]


@each_policy
@thorough
@given(campus=campuses())
def test_shadow_candidates_never_change_the_acting_policy(policy: str, campus: Campus) -> None:
    alone = Play(campus, [MAKERS[policy]()])
    others = [MAKERS[name]() for name in MAKERS if name != policy]
    watched = Play(campus, [MAKERS[policy](), *others])
    assert watched.of(policy) == alone.of(policy)
    for key, value in alone.report.items():
        if key not in ("events", "wall_s", "cpu_s", "max_rss_mb"):
            assert watched.report[key] == value, key


@thorough
@given(campus=campuses())
def test_a_candidate_decides_the_same_whoever_sits_beside_it(campus: Campus) -> None:
    alone = Play(campus, [MAKERS["random_match"](), bandit()])
    together = Play(
        campus,
        [MAKERS["random_match"](), MAKERS["dither"](), bandit(), MAKERS["lowest_watts"]()],
    )
    assert together.of("bandit") == alone.of("bandit")


@thorough
@given(campus=campuses())
def test_another_seed_changes_only_its_own_stream(campus: Campus) -> None:
    one = Play(campus, [MAKERS["random_match"](), bandit(seed=1), MAKERS["dither"]()])
    two = Play(campus, [MAKERS["random_match"](), bandit(seed=2), MAKERS["dither"]()])
    assert one.of("random_match") == two.of("random_match")
    assert one.of("dither") == two.of("dither")


@thorough
@given(campus=campuses())
def test_a_recorded_stream_gives_the_decisions_that_were_made_live(campus: Campus) -> None:
    play = Play(campus, [MAKERS["random_match"](), bandit()])
    shadow = Shadow(campus, [bandit()])
    shadow.engine.feed(play.told)
    names = campus.job_names
    again = [(row[0], names[row[1]], row[2], row[5], row[7]) for row in shadow.decision_log.rows]
    live = [
        (row.time_s, row.job, row.action, row.reason, row.propensity) for row in play.of("bandit")
    ]
    assert again == live


@thorough
@given(campus=campuses(), ratio=st.floats(0, 1))
def test_saving_in_the_middle_and_going_on_changes_nothing(campus: Campus, ratio: float) -> None:
    told = Play(campus, [MAKERS["random_match"](), bandit()]).told
    cut = int(len(told) * ratio)
    through = Shadow(campus, [bandit(), MAKERS["dither"]()])
    through.engine.feed(told[:cut])
    rows, ends = len(through.decision_log.rows), len(through.decision_log.ends)
    saved = packed(through)
    through.engine.feed(told[cut:])

    again = Shadow(campus, [bandit(seed=7), MAKERS["dither"]()])
    assert again.engine.restore(saved) == []
    assert packed(again) == saved
    again.engine.feed(told[cut:])
    assert again.decision_log.rows == through.decision_log.rows[rows:]
    assert again.decision_log.ends == through.decision_log.ends[ends:]
    assert packed(again) == packed(through)


def packed(shadow: Shadow) -> Any:
    """A snapshot as it comes back from disk."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(shadow.engine.save()))
