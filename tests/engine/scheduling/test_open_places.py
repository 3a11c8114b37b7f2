"""View of a policy that decides a job that does not fit everywhere: its places and the site."""

import random
from typing import Any

import pytest

from outrider.engine.scheduling.placement import OpenPlaces
from outrider.model import events as ev
from outrider.model.machines import MachineSpec
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.placements import Fifo


@pytest.fixture
def hand() -> HandSite:
    """Machines of 1, 4, 8 (3 in use) and 4 CPUs; the last is in another cluster."""
    hand = HandSite(Fifo, shares={"a": 1.0})
    lab = {"active_w": 80.0, "speed": 2.0}
    hand.machines(1, 4, 8, cluster="lab", **lab)
    hand.machines(4, cluster="office", active_w=40.0)
    hand.site.index_runs()
    hand.submit(0, cpus=3, vo="a")
    hand.tell(ev.STARTED, 0, (2, 3))
    hand.now = 600.0
    hand.tell(ev.TICK, 0)
    hand.submit(1, cpus=4, vo="a")
    return hand


def places(hand: HandSite, *allowed: int) -> OpenPlaces:
    allows = (lambda machine: machine in allowed) if allowed else None
    return OpenPlaces(hand.site, hand.site.jobs[1], allows)


def test_free_are_the_machines_where_the_job_may_start(hand: HandSite) -> None:
    shown = places(hand)
    assert list(shown.free_since) == [1, 2, 3]
    assert (shown.free_total, list(shown.free_n)) == (3, [2, 1])
    assert [shown.is_free(machine) for machine in range(4)] == [False, True, True, True]
    assert [shown.cpus_left(machine) for machine in range(4)] == [0, 4, 5, 4]
    assert (shown.longest_free(), shown.tightest(4), shown.tightest(5), shown.tightest(6)) == (
        1, 1, 2, -1,
    )  # fmt: skip
    assert (shown.fitting(4), shown.fitting(5)) == ([2, 3, 1], [2])
    assert {shown.draw(random.Random(n)) for n in range(50)} == {1, 2, 3}
    assert {shown.draw_in(0, random.Random(n)) for n in range(50)} == {1, 2}
    assert list(places(hand, 3).free_since) == [3], "the others are promised"


def test_where_there_is_no_place_nothing_can_be_drawn(hand: HandSite) -> None:
    shown = places(hand, 99)
    assert (shown.free_total, list(shown.free_n)) == (0, [0, 0])
    for ask in (shown.longest_free, lambda: shown.draw(random.Random(1)),
                lambda: shown.draw_in(0, random.Random(1))):  # fmt: skip
        with pytest.raises(LookupError, match="the job may start on no machine now"):
            ask()


def test_all_else_is_the_sites_own(hand: HandSite) -> None:
    shown, site = places(hand), hand.site
    asked: dict[str, tuple[Any, ...]] = {
        "hour_of_day": (), "week_second": (), "next_reboot_s": (), "watts_span": (),
        "was_available": (0.0, 500.0), "cluster_of": (3,), "cpus_of": (2,), "speed_of": (1,),
        "resources_left": (1,), "may_use": (site.jobs[1], 0), "vo_shares": (),
        "utility": (site.jobs[1],),
    }  # fmt: skip
    for name, given in asked.items():
        assert getattr(shown, name)(*given) == getattr(site, name)(*given), name
    for name in ("now", "active_w", "cluster_names", "members", "machines_n", "delivered_cpu_s"):
        assert getattr(shown, name) == getattr(site, name), name
    assert [job.number for job in shown.running] == [0]
    assert [job.number for job in shown.running_on(2)] == [0]
    assert (shown.now, shown.watts_span(), shown.cpus_of(0)) == (600.0, (40.0, 80.0), 1)
    assert (shown.speed_of(2), shown.delivered_cpu_s) == (2.0, 1800.0)


def test_a_machine_without_gpus_is_no_place_for_who_needs_one(hand: HandSite) -> None:
    hand.tell(ev.JOINED, 4, MachineSpec(cluster="lab", cpus=16))
    assert 4 in places(hand).free_since
    hand.tell(ev.ELIGIBLE, 0, ("large", (4,), True))
    hand.submit(2, cpus=4, eligible="large")
    shown = OpenPlaces(hand.site, hand.site.jobs[2])
    assert list(shown.free_since) == [4]
    assert not shown.may_use(hand.site.jobs[2], 1)
