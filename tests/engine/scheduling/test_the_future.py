"""The truth wall: what has not happened yet changes no decision, and no policy can reach it."""

import dataclasses
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.formats.campus.campus import Campus
from outrider.replay.run import CampusRun
from outrider.simulation.campus_site import SimulatedSite
from outrider.testing.hand_campus import Session, Work, make_campus, sessions_of, with_sessions
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play
from tests.fixtures.truth import runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(40), derandomize=True)
each_policy = pytest.mark.parametrize("policy", MAKERS)


@each_policy
@thorough
@given(campus=campuses(), ratio=st.floats(0, 1), on_grid=st.booleans())
def test_stopping_earlier_gives_exactly_the_first_rows(
    policy: str, campus: Campus, ratio: float, on_grid: bool
) -> None:
    until_s = campus.span_s * ratio
    if on_grid:
        until_s = until_s // 600.0 * 600.0
    whole = Play(campus, [MAKERS[policy]()]).rows
    part = Play(campus, [MAKERS[policy]()], until_s).rows
    assert part == [row for row in whole if row.time_s <= until_s]


@each_policy
@thorough
@given(campus=campuses(), ratio=st.floats(0, 1), seed=st.integers(0, 99))
def test_another_future_leaves_the_decisions_until_now_as_they_were(
    policy: str, campus: Campus, ratio: float, seed: int
) -> None:
    now_s = campus.span_s * ratio
    before = Play(campus, [MAKERS[policy]()])
    other = another_future(campus, before, now_s, random.Random(seed))
    after = Play(other, [MAKERS[policy]()], now_s)
    assert after.rows == [row for row in before.rows if row.time_s <= now_s]


def another_future(campus: Campus, play: Play, now_s: float, rng: random.Random) -> Campus:
    """Other run times of jobs that have not ended, other log-ins after now, other kills."""
    done = {r.job for r in runs_of(play.told, campus.span_s) if r.ending == "completed"
            and r.end_s <= now_s}  # fmt: skip
    ran = dict.fromkeys(range(len(campus.job_names)), 0.0)
    for run in runs_of(play.told, campus.span_s):
        if run.start_s <= now_s:
            ran[run.job] = max(ran[run.job], min(run.end_s, now_s) - run.start_s)
    run_s, kill_s = campus.run_s.copy(), campus.kill_s.copy()
    for job in ran:
        if job not in done:
            run_s[job] = rng.choice([np.nan, ran[job] + rng.choice([1.0, 700.0, 50_000.0])])
            if not kill_s[job] <= now_s:
                later = max(now_s, float(campus.submit_s[job]))
                kill_s[job] = rng.choice([np.nan, later + rng.choice([1.0, 5000.0])])
    known = [
        stay if stay.logout_s <= now_s else stay._replace(logout_s=campus.span_s + 1.0)
        for stay in sessions_of(campus)
        if stay.login_s <= now_s
    ]
    machines = range(len(campus.machine_names))
    new = [Session(m, now_s + 1.0 + rng.random() * 5000, campus.span_s + 9000.0) for m in machines]
    changed = dataclasses.replace(campus, run_s=run_s, kill_s=kill_s)
    return with_sessions(changed, [*known, *new])


@pytest.mark.parametrize("policy", MAKERS)
def test_nothing_a_policy_is_given_leads_to_the_truth(policy: str) -> None:
    """Walks everything reachable from the view, the jobs in it and the policy itself."""
    secret_s = 12_345.678
    campus = make_campus(
        [0, 0], [Work(n * 10.0, secret_s) for n in range(6)], [Session(0, 40_000.0, 50_000.0)]
    )
    made = MAKERS[policy]()
    run = CampusRun(campus, [made], lambda *row: None, until_s=100.0)
    run.run()
    assert run.site.jobs
    for thing in reachable([run.site, made]):
        assert not isinstance(thing, (Campus, SimulatedSite, CampusRun)), thing
        assert not (isinstance(thing, float) and thing in (secret_s, 40_000.0, 50_000.0)), thing


def reachable(roots: list[Any], most: int = 200_000) -> list[Any]:
    """Every object that attributes, items and closures lead to; types are not entered."""
    seen: dict[int, Any] = {}
    stack = list(roots)
    while stack and len(seen) < most:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, (ModuleType, type, str, bytes)):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, dict):
            stack += [*thing.keys(), *thing.values()]
        elif isinstance(thing, (list, tuple, set, frozenset)) or type(thing).__name__ == "deque":
            stack += list(thing)
        elif isinstance(thing, np.ndarray):
            stack += thing.ravel().tolist()
        stack += list(getattr(thing, "__dict__", {}).values())
        for kind in type(thing).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                stack.append(getattr(thing, name, None))
        stack += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        stack.append(getattr(thing, "__self__", None))
    assert len(seen) < most
    return list(seen.values())
