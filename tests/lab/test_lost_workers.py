"""Local workers that die and that dask does not start again are replaced."""

import time
from typing import Any

import pytest

from outrider_lab.running.dask_workers import LostWorkers

distributed = pytest.importorskip("distributed", reason="needs outrider[sweeps]")


class Cluster:
    """Part of a cluster that is checked: its supervisors, and the workers that answer."""

    def __init__(self, there: set[int]) -> None:
        self.workers = dict.fromkeys((0, 1, 2))
        self.there = there
        self.ended: list[list[int]] = []

    @property
    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {f"tcp://{name}": {"name": name} for name in self.there}}

    def scale_down(self, names: list[int]) -> None:
        self.ended.append(names)

    def sync(self, call: Any, names: list[int], callback_timeout: float) -> None:
        call(names)

    def scale(self, workers: int) -> None:
        assert workers == 3


def test_one_that_is_away_for_less_than_that_is_given_its_time() -> None:
    now_s, cluster = [0.0], Cluster({0, 2})
    lost = LostWorkers(cluster, 3, gone_after_s=30.0, clock=lambda: now_s[0])
    assert lost.look() == 0
    now_s[0], cluster.there = 29.0, {0, 1, 2}
    assert lost.look() == 0
    now_s[0], cluster.there = 40.0, {0, 2}
    assert lost.look() == 0, "it was there meanwhile"
    now_s[0] = 70.0
    assert lost.look() == 1
    assert cluster.ended == [[1]]
    now_s[0] = 71.0
    assert lost.look() == 0
    now_s[0] = 130.0
    assert lost.look() == 0, "the next one has twice the time"
    now_s[0] = 131.0
    assert lost.look() == 1


@pytest.mark.slow
def test_another_takes_its_place_and_work_goes_on() -> None:
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert client.submit(sum, [1, 2]).result() == 3
        cluster.sync(cluster.workers[0].close)  # behind the back of the cluster
        waiting = client.submit(sum, [3, 4])
        lost, replaced, deadline_s = LostWorkers(cluster, 1, 1.0), 0, time.monotonic() + 200.0
        while not waiting.done():
            assert time.monotonic() < deadline_s
            replaced += lost.look()
            time.sleep(0.2)
        assert replaced > 0
        assert waiting.result() == 7
