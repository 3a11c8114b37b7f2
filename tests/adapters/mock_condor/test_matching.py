"""Jobs and slots match by real ClassAds, both ways, and the better match comes first."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    IDLE,
    JOB,
    ClassAd,
    ExprTree,
    JobAction,
    Machine,
    host,
    hosts,
    made_pool,
    status,
)


def test_functions_that_need_the_bindings_imported_in_order_evaluate() -> None:
    pool = made_pool(1)
    wish = 'stringListMember(TARGET.MachineCluster, "A,B") && split("x 1.2")[1] == "1.2"'
    pool.submit("alice", {**JOB, "requirements": wish}, 100)
    assert pool.negotiate() == 1


def test_the_requirements_of_a_job_keep_it_from_other_machines() -> None:
    pool = made_pool(4)
    pool.submit("alice", {**JOB, "requirements": 'MachineCluster == "B"'}, 100, 3)
    assert pool.negotiate() == 2
    assert set(hosts(pool).values()) == {"slot1@m1", "slot1@m3"}


def test_the_start_expression_of_a_machine_keeps_jobs_away() -> None:
    choosy = Machine(name="choosy", start='TARGET.Owner == "bob"')
    pool = made_pool([choosy])
    pool.submit("alice", JOB, 100)
    assert pool.negotiate() == 0
    pool.submit("bob", JOB, 100)
    assert pool.negotiate() == 1
    assert host(pool, "2.0") == "slot1@choosy"


@pytest.mark.parametrize(
    ("asks", "fits"),
    [
        ({"request_memory": "2048"}, True),
        ({"request_memory": "2GB"}, True),
        ({"request_memory": "2049MB"}, False),
        ({"request_cpus": "2"}, False),
        ({"request_disk": "1TB"}, False),
        ({"requirements": "NoSuchAttribute"}, False),
        ({"requirements": '"nonsense"'}, False),
    ],
)
def test_what_a_job_asks_for_must_be_there(asks: dict[str, str], fits: bool) -> None:
    pool = made_pool(1)
    pool.submit("alice", {**JOB, **asks}, 100)
    assert pool.negotiate() == int(fits)


def test_a_job_takes_the_slot_that_it_ranks_highest() -> None:
    machines = [Machine(name=f"m{n}", attributes={"Mips": str(n % 3)}) for n in range(6)]
    pool = made_pool(machines)
    pool.submit("alice", {**JOB, "rank": "TARGET.Mips"}, 100, 2)
    pool.negotiate()
    assert set(hosts(pool).values()) == {"slot1@m2", "slot1@m5"}


def test_a_machine_that_ranks_the_job_highly_comes_before_the_jobs_own_rank() -> None:
    fond = Machine(name="fond", rank='TARGET.Owner == "alice"', attributes={"Mips": "1"})
    fast = Machine(name="fast", attributes={"Mips": "9"})
    pool = made_pool([fast, fond])
    pool.submit("alice", {**JOB, "rank": "TARGET.Mips"}, 100)
    pool.submit("bob", {**JOB, "rank": "TARGET.Mips"}, 100)
    pool.negotiate()
    assert hosts(pool) == {"1.0": "slot1@fond", "2.0": "slot1@fast"}


def test_slots_that_are_liked_alike_are_drawn_by_seed() -> None:
    def placed(seed: int) -> str | None:
        pool = made_pool(20, seed=seed)
        pool.submit("alice", JOB, 100)
        pool.negotiate()
        return host(pool, "1.0")

    assert placed(1) == placed(1)
    assert len({placed(seed) for seed in range(10)}) > 1


def test_jobs_of_one_user_start_by_priority_then_age() -> None:
    pool = made_pool(1)
    for priority in ("0", "5", "0", "-3"):
        pool.submit("alice", {**JOB, "priority": priority}, 60)
        pool.advance(pool.now_s + 1)
    order = []
    while waiting := pool.schedd("alice").query():
        pool.negotiate()
        order += [ad["ClusterId"] for ad in pool.schedd("alice").query() if "RemoteHost" in ad]
        pool.advance(pool.now_s + 59)
        pool.advance(pool.now_s + 1)
        assert len(waiting) == 5 - len(order)
    assert order == [2, 1, 3, 4]


def test_prejobprio1_comes_before_the_users_own_priority_and_undefined_gives_it_back() -> None:
    pool = made_pool(1)
    pool.submit("alice", {**JOB, "priority": "9"}, 60)
    pool.submit("alice", JOB, 60)
    pool.schedd("alice").edit(["2.0"], "PreJobPrio1", "1")
    pool.negotiate()
    assert list(hosts(pool)) == ["2.0"]
    pool.schedd("alice").act(JobAction.Vacate, ["2.0"])
    pool.schedd("alice").edit(["2.0"], "PreJobPrio1", "undefined")
    pool.negotiate()
    assert list(hosts(pool)) == ["1.0"]


def test_time_in_an_expression_is_the_pools_time() -> None:
    """A lease, as Outrider's levers will use it: it lapses on the pool's clock."""
    pool = made_pool(1)
    until_s = int(BEGIN_S) + 600
    lease = "(MY.PolicyUntil ?: 0) <= time() || MY.PolicyHold isnt true"
    pool.submit(
        "alice",
        {**JOB, "requirements": lease, "+PolicyHold": "true", "+PolicyUntil": str(until_s)},
        60,
    )
    pool.advance(until_s - 1)
    assert status(pool, "1.0") == IDLE
    pool.advance(until_s + 60)
    assert pool.queue.history or hosts(pool)


def test_a_sleeping_machine_gets_no_job() -> None:
    pool = made_pool(1)
    pool.publish("m0", "Offline", "true")
    pool.submit("alice", JOB, 100)
    assert pool.negotiate() == 0
    pool.publish("m0", "Offline", "false")
    assert pool.negotiate() == 1


def test_nobody_who_runs_is_preempted() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 10_000)
    pool.negotiate()
    pool.negotiator("condor").setPriority("alice@mock.local", 1e6)
    pool.submit("bob", {**JOB, "priority": "100"}, 100)
    pool.negotiate()
    assert list(hosts(pool)) == ["1.0"]


def test_the_ads_of_a_real_pool_match_as_they_did_there(shared: Path) -> None:
    jobs = _real_ads(shared, "text-jobs-1-running.json")
    slots = _real_ads(shared, "text-slots-1-busy.json")
    owners = [ad for ad in _real_ads(shared, "text-slots-2-owner.json") if ad["State"] == "Owner"]
    assert jobs
    assert slots
    assert owners
    for job in jobs:
        assert all(job.symmetricMatch(slot) for slot in slots)
        assert not any(job.symmetricMatch(slot) for slot in owners)


def _real_ads(shared: Path, name: str) -> list[Any]:
    path = shared / "peers/htcondor/samples" / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the shared folder")
    return [
        ClassAd(
            {
                key: ExprTree(value[6:-2]) if str(value).startswith("/Expr(") else value
                for key, value in facts.items()
            }
        )
        for facts in json.loads(path.read_text())
    ]
