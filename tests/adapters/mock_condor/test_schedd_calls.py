"""The schedd's calls give what htcondor2's give."""

import inspect
import math

import pytest

from outrider_adapters.htcondor import pool_calls
from outrider_adapters.htcondor.pool_calls import HTCondorException, htcondor2
from outrider_adapters.mock_condor.collector import Collector
from outrider_adapters.mock_condor.pool import Negotiator
from outrider_adapters.mock_condor.schedd import Schedd
from tests.adapters.mock_condor.made_pool import (
    BEGIN_S,
    COMPLETED,
    HELD,
    IDLE,
    JOB,
    REMOVED,
    RUNNING,
    SUSPENDED,
    JobAction,
    hosts,
    job_ad,
    made_pool,
    slot_ad,
    status,
)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Schedd, htcondor2.Schedd),
        (Collector, htcondor2.Collector),
        (Negotiator, htcondor2.Negotiator),
    ],
)
def test_every_call_has_the_name_and_the_arguments_of_htcondor2(ours: type, theirs: type) -> None:
    calls = [name for name in vars(ours) if not name.startswith("_")]
    assert calls
    for call in calls:
        mine = list(inspect.signature(getattr(ours, call)).parameters.values())
        real = list(inspect.signature(getattr(theirs, call)).parameters.values())
        assert [p.name for p in mine] == [p.name for p in real[: len(mine)]], call
        needed = [p.default is p.empty for p in mine]
        assert needed == [p.default is p.empty for p in real[: len(mine)]], call


def test_a_query_returns_what_it_is_asked_for() -> None:
    pool = made_pool(2)
    pool.submit("alice", JOB, 100, 3)
    pool.submit("bob", JOB, 100, 2)
    schedd = pool.schedd("bob")
    assert len(schedd.query()) == 5
    assert len(schedd.query('Owner == "alice"', limit=2)) == 2
    (ad,) = schedd.query("ClusterId == 2 && ProcId == 1", ["ClusterId", "Owner", "NoSuch"])
    assert dict(ad.items()) == {"ClusterId": 2, "Owner": "bob"}
    assert schedd.query("true", callback=lambda found: found["ProcId"] or None) == [1, 2, 1]
    assert schedd.query("NoSuch == 1") == []
    assert schedd.query("QDate <= time()", ["ServerTime"])[0]["ServerTime"] == int(BEGIN_S)
    with pytest.raises(HTCondorException, match="x y"):
        schedd.query("x y")


def test_what_a_query_returned_is_the_callers_own() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    pool.schedd("alice").query()[0]["JobStatus"] = HELD
    assert status(pool, "1.0") == IDLE


def test_no_client_learns_a_run_time_before_its_end() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 98_765.0)
    pool.negotiate()
    pool.advance(BEGIN_S + 50)
    assert "98765" not in repr(job_ad(pool, "1.0")) + repr(slot_ad(pool, "slot1@m0"))


def test_a_submit_object_of_htcondor2_becomes_jobs() -> None:
    pool = made_pool(4)
    description = htcondor2.Submit(
        """
        executable = /bin/sleep
        arguments = 3$(Process)
        +Project = "muon"
        priority = 4
        request_memory = 1GB
        queue 3
        """
    )
    result = pool.schedd("alice").submit(description)
    assert (result.cluster(), result.first_proc(), result.num_procs()) == (1, 0, 3)
    ad = job_ad(pool, "1.2")
    assert (ad["Owner"], ad["User"], ad["Project"]) == ("alice", "alice@mock.local", "muon")
    assert (ad["JobPrio"], ad["RequestMemory"], ad["Args"]) == (4, 1024, "32")
    pool.negotiate()
    pool.advance(BEGIN_S + 31)
    assert [status(pool, f"1.{n}") for n in range(3)] == [COMPLETED, COMPLETED, RUNNING]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exectuable": "x"}, 'did you mean "executable"'),
        ({"requirements": "x y"}, "no ClassAd expression"),
        ({"universe": "docker"}, "only vanilla"),
        ({"arguments": "$(Item)"}, "does not expand"),
        ({"executable": "/bin/true"}, "sleep SECONDS"),
    ],
)
def test_what_the_mock_pool_does_not_know_is_refused(change: dict[str, str], message: str) -> None:
    pool = made_pool(1)
    with pytest.raises(HTCondorException, match=message):
        pool.schedd("alice").submit({"executable": "/bin/sleep", "arguments": "5", **change})
    assert pool.schedd("alice").query() == []


def test_an_edit_counts_the_jobs_and_changes_them() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100, 3)
    schedd = pool.schedd("alice")
    assert schedd.edit(["1.0", "1.2"], "JobPrio", "7") == 2
    assert schedd.edit("ProcId == 1", "Note", '"later"') == 1
    assert schedd.edit(1, "Rank", pool_calls.ExprTree("TARGET.Mips + 1")) == 3
    assert [ad["JobPrio"] for ad in schedd.query()] == [7, 0, 7]
    assert job_ad(pool, "1.1")["Note"] == "later"
    assert repr(job_ad(pool, "1.1").lookup("Rank")) == "TARGET.Mips + 1"


def test_an_edit_of_somebody_elses_job_reports_success_and_changes_nothing() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    assert pool.schedd("bob").edit(["1.0"], "JobPrio", "7") == 1
    assert job_ad(pool, "1.0")["JobPrio"] == 0
    assert pool.schedd("condor").edit(["1.0"], "JobPrio", "7") == 1
    assert job_ad(pool, "1.0")["JobPrio"] == 7


def test_an_edit_that_can_reach_no_job_is_an_error() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    schedd = pool.schedd("alice")
    for spec, attribute, value in (
        (["1.0", "9.9"], "JobPrio", "7"),
        ("false", "JobPrio", "7"),
        (["1.0"], "Owner", '"bob"'),
        (["1.0"], "JobPrio", "x y"),
    ):
        with pytest.raises(HTCondorException, match="Unable to edit"):
            schedd.edit(spec, attribute, value)
    assert job_ad(pool, "1.0")["JobPrio"] == 0
    with pytest.raises(ValueError, match="clusterID"):
        schedd.edit(["one"], "JobPrio", "7")


def test_act_counts_how_each_job_fared() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100, 2)
    pool.submit("bob", JOB, 100)
    alice = pool.schedd("alice")
    answer = alice.act(JobAction.Hold, ["1.0", "2.0", "3.0"])
    assert (answer["TotalSuccess"], answer["TotalPermissionDenied"]) == (1, 1)
    assert (answer["TotalNotFound"], answer["TotalChangedAds"], answer["TotalJobAds"]) == (1, 1, 3)
    assert alice.act(JobAction.Hold, "1.0")["TotalAlreadyDone"] == 1
    assert alice.act(JobAction.Vacate, "1.1")["TotalBadStatus"] == 1
    refused = pool.schedd("bob").act(JobAction.Remove, "1.1")
    assert (refused["TotalPermissionDenied"], refused["TotalChangedAds"]) == (1, 0)
    assert [status(pool, name) for name in ("1.0", "1.1", "2.0")] == [HELD, IDLE, IDLE]


def test_a_held_job_stays_until_it_is_released() -> None:
    pool = made_pool(1)
    pool.submit("alice", {**JOB, "hold": "true"}, 100)
    assert (pool.negotiate(), status(pool, "1.0")) == (0, HELD)
    assert job_ad(pool, "1.0")["HoldReasonCode"] == 15
    pool.schedd("alice").act(JobAction.Release, ["1.0"])
    assert pool.negotiate() == 1
    pool.schedd("alice").act(JobAction.Hold, ["1.0"], ("because", 42))
    ad = job_ad(pool, "1.0")
    assert (ad["JobStatus"], ad["HoldReason"], ad["VacateReasonCode"]) == (HELD, "because", 0)
    assert slot_ad(pool, "slot1@m0")["State"] == "Unclaimed"


def test_a_suspended_job_runs_the_rest_later() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    pool.negotiate()
    alice = pool.schedd("alice")
    pool.advance(BEGIN_S + 40)
    alice.act(JobAction.Suspend, "1.0")
    assert status(pool, "1.0") == SUSPENDED
    assert slot_ad(pool, "slot1@m0")["Activity"] == "Suspended"
    pool.advance(BEGIN_S + 1000)
    alice.act(JobAction.Continue, "1.0")
    pool.advance(BEGIN_S + 1059)
    assert status(pool, "1.0") == RUNNING
    pool.advance(BEGIN_S + 1060)
    assert status(pool, "1.0") == COMPLETED
    assert job_ad(pool, "1.0")["CumulativeSuspensionTime"] == 960


def test_a_vacated_job_runs_again() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    pool.negotiate()
    pool.schedd("alice").act(JobAction.VacateFast, "1.0")
    assert (status(pool, "1.0"), job_ad(pool, "1.0")["VacateReasonCode"]) == (IDLE, 1004)
    assert pool.negotiate() == 1


def test_a_job_without_an_end_runs_until_it_is_removed() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, math.inf)
    pool.negotiate()
    pool.advance(BEGIN_S + 30 * 86_400)
    assert status(pool, "1.0") == RUNNING
    pool.remove("1.0")
    ad = job_ad(pool, "1.0")
    assert (ad["JobStatus"], ad["RemoveReason"]) == (REMOVED, "via condor_rm (by user alice)")
    pool.remove("1.0")
    assert len(pool.schedd("alice").history()) == 1


def test_history_begins_with_the_last_and_stops_where_it_is_told() -> None:
    pool = made_pool(3)
    for run_s in (300, 100, 200):
        pool.submit("alice", JOB, run_s)
    pool.negotiate()
    pool.advance(BEGIN_S + 400)
    schedd = pool.schedd("alice")

    def clusters(**asked: object) -> list[int]:
        return [ad["ClusterId"] for ad in schedd.history(**asked)]  # type: ignore[arg-type]

    assert clusters() == [1, 3, 2]
    assert clusters(match=2) == [1, 3]
    assert clusters(constraint="ClusterId > 1") == [3, 2]
    assert clusters(since=3) == clusters(since="3.0") == clusters(since="3") == [1]
    assert clusters(since=f"CompletionDate < {int(BEGIN_S) + 150}") == [1, 3]
    assert schedd.history(projection=["ProcId"])[0].keys() == {"ProcId"}


def test_the_history_forgets_the_oldest() -> None:
    pool = made_pool(5, most_history=3)
    pool.submit("alice", JOB, 10, 5)
    pool.negotiate()
    pool.advance(BEGIN_S + 20)
    assert [ad["ProcId"] for ad in pool.schedd("alice").history()] == [4, 3, 2]


def test_reschedule_brings_the_next_cycle_forward() -> None:
    pool = made_pool(1)
    pool.submit("alice", JOB, 100)
    pool.schedd("alice").reschedule()
    pool.advance(BEGIN_S + 1)
    assert list(hosts(pool)) == ["1.0"]


def test_the_schedd_and_the_negotiator_can_be_located() -> None:
    pool = made_pool(3)
    pool.submit("alice", JOB, 100, 4)
    pool.negotiate()
    collector = pool.collector()
    place = collector.locate(pool_calls.DaemonType.Schedd)
    assert place is not None
    assert {"MyAddress", "CondorVersion", "Name"} <= set(place)
    assert collector.locate(pool_calls.DaemonType.Schedd, "other@place") is None
    (schedd,) = collector.query(pool_calls.AdType.Schedd)
    assert (schedd["TotalRunningJobs"], schedd["TotalIdleJobs"]) == (3, 1)
    (negotiator,) = collector.query(pool_calls.AdType.Negotiator)
    assert negotiator["LastNegotiationCycleMatches0"] == 3
    assert len(collector.query()) == 3 + 2
    with pytest.raises(HTCondorException, match="constraint"):
        collector.query(pool_calls.AdType.Startd, "x y")


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="time does not go back"):
        made_pool(1).advance(BEGIN_S - 1)
