"""Run times are drawn in blocks from similar jobs, and are longer than the elapsed time."""

from math import nan

import numpy as np
import pytest

from outrider.forecast import run_times
from outrider.forecast.queue_state import Floats, Jobs, QueueState
from outrider.forecast.run_times import GROUP_LEVELS, KEPT, RunTimeHistory, draw_run_times
from outrider.forecast.running import HAS_COMPILER
from tests.forecast.test_rules import plain

Asked = tuple[str, float, int]  # user, request, CPUs


def jobs(history: RunTimeHistory, asked: list[Asked]) -> Jobs:
    """Return the columns of some jobs."""
    groups = [history.groups_of(user, request_s, "", cpus) for user, request_s, cpus in asked]
    request_s = np.array([request for _, request, _ in asked], dtype=float)
    cpus = np.array([width for _, _, width in asked], dtype=np.int64)
    return Jobs(cpus, request_s, request_s, np.array(groups, np.int64).reshape(-1, GROUP_LEVELS))


def past(*ended: tuple[Asked, float]) -> RunTimeHistory:
    """Return a history of jobs and their run times."""
    history = RunTimeHistory()
    for (user, request_s, cpus), run_s in ended:
        groups = np.array(history.groups_of(user, request_s, "", cpus))
        history.add(groups, run_s, request_s)
    return history


def drawn(
    history: RunTimeHistory,
    running: list[tuple[Asked, float]],
    waiting: list[Asked],
    n: int = 400,
    lost_s: tuple[float, ...] = (),
) -> Floats:
    """Draw (n, running + waiting) run times; running jobs are given by their elapsed time."""
    state = QueueState(
        1e6, 0.0, 0, 64, jobs(history, [job for job, _ in running]),
        1e6 - np.array([elapsed_s for _, elapsed_s in running], dtype=float),
        jobs(history, waiting), np.array(lost_s),
    )  # fmt: skip
    return draw_run_times(state, history, n, np.random.default_rng(1))


ANN: Asked = ("ann", 3600.0, 1)
BOB: Asked = ("bob", 3600.0, 1)


def test_a_well_known_kind_is_drawn_from_its_own_runs() -> None:
    history = past(*[(ANN, 100.0)] * 200, *[(BOB, 900.0)] * 200)
    assert (drawn(history, [], [ANN]) == 100.0).mean() > 0.95


def test_a_job_that_lost_a_run_will_run_for_longer_and_stands_for_no_other() -> None:
    lengths_s = np.random.default_rng(0).choice([100.0, 500.0], 250).tolist()
    history = past(*[(ANN, length_s) for length_s in lengths_s])
    run_s = drawn(history, [], [ANN, ANN], lost_s=(200.0, 0.0))
    assert (run_s[:, 0] > 200.0).all()
    assert (run_s[:, 0] == 500.0).mean() > 0.9
    # a job that runs and has passed 200 s makes long ones likelier; one that waits again does not
    alone = drawn(history, [], [ANN])[:, 0].mean()
    many = drawn(history, [], [*[ANN] * 150, ANN], lost_s=(*[200.0] * 150, 0.0))[:, -1].mean()
    runs = drawn(history, [(ANN, 200.0)] * 150, [ANN])[:, -1].mean()
    assert abs(many - alone) < 40.0
    assert runs > alone + 80.0


def test_whoever_lost_more_than_anybody_ran_is_drawn_beyond_it() -> None:
    history = past(*[(ANN, 100.0)] * 50)
    running = [((ANN), 300.0), (ANN, 10.0)]  # the first has run for longer than was lost
    run_s = drawn(history, running, [ANN, ANN], lost_s=(250.0, 900.0))
    assert (run_s[:, 2] > 250.0).all()
    assert (run_s[:, 3] > 900.0).all()


def test_runs_of_no_length_are_run_times_like_others() -> None:
    """Programs that fail immediately take 0 s in logs of whole seconds."""
    history = past(*[(ANN, 0.0)] * 50)
    assert (drawn(history, [], [ANN, ANN]) == 0.0).all()
    assert (drawn(history, [(ANN, 0.0)], [ANN]) == 0.0).all()


def test_groups_are_bounded_and_new_ones_go_with_the_next_wider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_times, "MAX_GROUPS", 2 * GROUP_LEVELS)
    history = past((ANN, 60.0), (BOB, 70.0))
    ann = history.groups_of("ann", 3600.0, "", 1)
    assert len(set(ann)) == GROUP_LEVELS
    wider = history.groups_of("ann", 7200.0, "", 1)  # ann is known, and this request is not
    assert wider == [ann[2], ann[2], ann[2], ann[4], ann[4]]
    assert set(history.groups_of("eve", 10.0, "other", 9)) == {ann[4]}
    history.add(np.array(wider), 80.0, 7200.0)
    assert history.totals[ann[2]] == 2
    assert history.totals[ann[4]] == 3


def test_a_batch_is_a_block_of_the_past() -> None:
    history = past(*[(ANN, float(n + 1)) for n in range(KEPT)])
    steps = np.diff(drawn(history, [], [ANN] * 10), axis=1)
    assert (np.isin(steps, [1.0, 1.0 - KEPT])).mean() > 0.98


def test_who_runs_runs_longer_than_it_has() -> None:
    history = past(*[(ANN, float(run_s)) for run_s in range(10, 2000, 10)])
    assert (drawn(history, [(ANN, 1500.0)], [])[:, 0] > 1500.0).all()


def test_who_ran_longer_than_anybody_did_goes_on_for_a_while() -> None:
    run_s = drawn(past((ANN, 100.0)), [(ANN, 1500.0)], [])[:, 0]
    assert (run_s > 1500.0).all()
    assert run_s.max() <= 3600.0  # what it asked for


def test_nobody_runs_longer_than_asked_where_that_kills() -> None:
    long = ("ann", 9000.0, 1)
    history = past(*[(long, 8000.0)] * 50)
    assert history.kills_at_request
    assert (drawn(history, [], [("ann", 600.0, 1)]) <= 600.0).all()


def test_where_jobs_run_over_their_request_it_is_no_limit() -> None:
    over = ("ann", 600.0, 1)
    history = past(*[(over, 8000.0)] * 50)
    assert not history.kills_at_request
    assert (drawn(history, [], [over]) == 8000.0).all()


def test_a_new_burst_is_of_one_length_in_half_of_the_replicates() -> None:
    history = past(*[(BOB, float(n + 1)) for n in range(KEPT)])
    run_s = drawn(history, [], [("new", nan, 1)] * 8, 1000)
    alike = (run_s == run_s[:, :1]).all(axis=1).mean()
    assert 0.42 < alike < 0.58


def test_the_last_runs_are_kept() -> None:
    history = past(*[(ANN, 1.0)] * 50, *[(ANN, 2.0)] * KEPT)
    assert (drawn(history, [], [ANN]) == 2.0).all()


@pytest.mark.skipif(not HAS_COMPILER, reason="numba, the extra forecast, is not installed")
def test_compiled_and_plain_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    history = past(*[(ANN, float(n + 1)) for n in range(300)], *[(BOB, 50.0)] * 3)
    running = [(ANN, 250.0), (BOB, 70.0), (("new", nan, 4), 400.0)]
    waiting = [ANN, BOB, BOB, ("new", nan, 4)]
    compiled = drawn(history, running, waiting, 20).tolist()
    plain(run_times, monkeypatch)
    assert drawn(history, running, waiting, 20).tolist() == compiled
