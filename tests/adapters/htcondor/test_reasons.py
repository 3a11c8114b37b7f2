"""Tests of reasons for waiting: by hand-made ads, and in a mock pool."""

import re
from typing import Any

import pytest

from outrider.api import Clause, PeerError, WaitingReason
from outrider_adapters.htcondor.eligibility.matching import START, AtMost, Matching
from outrider_adapters.htcondor.pool_calls import (
    ClassAd,
    HTCondorException,
    JobAction,
    PoolCalls,
)
from outrider_adapters.htcondor.questions import (
    accounts_of,
    ask_why,
    obstacle_of,
    submitter_of,
)
from outrider_adapters.htcondor.reasons import (
    STOPPED,
    NegotiatorWatch,
    Now,
    waiting_reason,
)
from tests.adapters.htcondor.test_eligibility import JOB, SLOT, Ads, changed
from tests.adapters.htcondor.watched_pool import WatchedPool

NAMES = [f"m{n}" for n in range(4)]


def slots(**attributes: str) -> list[str]:
    """Four machines; `Memory="1000 2000 3000 4000"` gives one value to each."""
    made = []
    for n, name in enumerate(NAMES):
        own = {key: values.split()[n] for key, values in attributes.items()}
        made.append(changed(SLOT, Name=f'"slot1@{name}"', **own))
    return made


def matched(job: str, ads: list[str]) -> Matching:
    """Return the match of a job with a pool."""
    pool = Ads(ads, [job])
    pool.classes()
    [ad] = pool.watch.ask(lambda _: pool.jobs, ["ClusterId"])
    matching = pool.watch.matching(ad)
    assert matching is not None
    return matching


def reason(job: str, ads: list[str]) -> WaitingReason:
    now = Now(0, 0)
    reported = waiting_reason(ClassAd(changed(job, JobStatus="1")), "ap1", matched(job, ads), now)
    assert reported is not None
    return reported


# -- how a job and the machines meet ----------------------------------------------------------


def test_each_clause_counts_alone_and_what_is_left_without_it() -> None:
    job = changed(
        JOB, Requirements='Memory >= RequestMemory && Arch == "X86_64" && Cpus >= 3',
        RequestMemory="2500",
    )  # fmt: skip
    found = matched(job, slots(Memory="1000 2000 3000 4000", Cpus="4 4 4 1"))
    assert found.clauses == (
        Clause("Memory >= 2500", 2, 3),
        Clause('Arch == "X86_64"', 4, 1),
        Clause("Cpus >= 3", 3, 2),
    )
    assert (found.pool, *found.machines) == (4, "m2")


def test_of_a_machine_with_two_slots_one_that_matches_is_enough() -> None:
    second = changed(SLOT, Name='"slot2@m0"', Memory="9000")
    found = matched(changed(JOB, RequestMemory="8000"), [*slots(), second])
    assert (found.pool, *found.machines) == (4, "m0")


def test_a_smaller_request_is_looked_for_that_lets_machines_match() -> None:
    found = matched(changed(JOB, RequestMemory="1048576"), slots(Memory="1000 2000 3000 3000"))
    assert found.at_most == (AtMost("memory", 3000.0, 2),)


def test_machines_whose_start_reads_the_request_are_judged_by_the_smaller_one() -> None:
    start = slots(Memory="1000 2000 3000 4000", Start="RequestMemory<=2000 " * 4)
    found = matched(changed(JOB, RequestMemory="5000"), start)
    assert found.machines == set()
    assert found.at_most == (AtMost("memory", 2000.0, 3),)
    assert found.clauses[-1] == Clause(START, 0, 0)


def test_two_requests_that_nobody_meets_are_told_with_the_most_there_is() -> None:
    found = matched(changed(JOB, RequestMemory="9000", RequestCpus="64"), slots(Cpus="4 8 2 1"))
    assert found.at_most == (AtMost("memory", 4096.0, 0), AtMost("cpus", 8.0, 0))


def test_an_empty_pool_and_a_job_without_conditions() -> None:
    assert matched(JOB, []).machines == set()
    free = matched(changed(JOB, Requirements="true"), slots())
    assert (sorted(free.machines), free.clauses, free.at_most) == (NAMES, (), ())


# -- words ------------------------------------------------------------------------------------


def test_memory_that_nobody_has_is_said_with_what_would_match() -> None:
    reported = reason(changed(JOB, RequestMemory="1048576"), slots(Memory="1000 2000 3000 3000"))
    assert reported.never
    assert reported.machines == 0
    assert reported.sentence == (
        "none of the pool's 4 machines may run it: no machine meets TARGET.Memory >= 1048576"
    )
    assert reported.remedies[0] == (
        "ask for at most 3,000 MB of memory: 2 machines match then: "
        "condor_qedit 7.0 RequestMemory 3000"
    )
    assert reported.remedies[1] == "4 machines would match without TARGET.Memory >= 1048576"


def test_conditions_that_no_machine_meets_at_once() -> None:
    job = changed(JOB, Requirements="Memory > 2500 && Cpus > 4")
    reported = reason(job, slots(Memory="1000 2000 3000 4000", Cpus="8 8 4 4"))
    assert reported.never
    at_once, most = reported.sentence.split("; ")
    assert at_once.endswith("no machine meets all of its conditions together")
    assert most == "Memory > 2500 removes most machines: 2 of 4"
    assert reported.removes_most == "Memory > 2500"
    assert reported.remedies == (
        "2 machines would match without Memory > 2500",
        "2 machines would match without Cpus > 4",
    )


def test_the_condition_that_removes_most_is_named_where_some_machines_are_left() -> None:
    long = " || ".join(f'Name == "other{n}"' for n in range(20))
    job = changed(JOB, Requirements=f"(Memory > 3500 || {long}) && Cpus > 4")
    reported = reason(job, slots(Memory="1000 2000 3000 4000", Cpus="8 8 4 8"))
    assert reported.machines == 1
    assert reported.removes_most is not None
    assert reported.removes_most.startswith('Memory > 3500 || Name == "other0"')
    assert reported.sentence.endswith("... removes most machines: 3 of 4")
    assert len(reported.sentence) < 300, "however long the condition"
    anywhere = reason(JOB, slots())
    assert anywhere.removes_most is None
    assert "removes" not in anywhere.sentence


def test_machines_that_want_no_such_job() -> None:
    reported = reason(JOB, slots(Start='TARGET.Owner=="bob" ' * 4))
    assert reported.sentence.endswith(f'no machine meets {START} (TARGET.Owner == "bob")')
    assert reported.remedies == (
        "4 machines would match if their START took it: ask their administrators",
    )


def test_a_machine_that_wants_no_such_job_among_those_that_the_job_wants() -> None:
    job = changed(JOB, Requirements="Memory >= 3000", Owner='"ann"')
    starts = 'true TARGET.Owner=="bob" TARGET.Owner=="cy"&&Memory>1 TARGET.Owner=!="ann"'
    reported = reason(job, slots(Memory="1000 1000 3000 3000", Start=starts))
    assert reported.sentence.endswith(
        "may run it: 2 machines meet its own conditions, and their START refuses it "
        '(TARGET.Owner == "cy", TARGET.Owner isnt "ann")'
    )


@pytest.mark.parametrize(
    ("now", "rejected", "message", "remedy"),
    [
        (Now(0, 0), "", "and none of them has room for it now", "wait for a machine to get free"),
        (Now(0, 3), "", "and none of them has room for it now, 3 of them used by their owners",
         "wait for a machine to get free"),
        (Now(2, 0), "", "2 have room for it now, and the negotiator has given it none",
         "wait for the negotiator's next cycles"),
        (Now(2, 0), "concurrency limit matlab reached",
         "has given it none; HTCondor says: concurrency limit matlab reached",
         "wait until jobs that count against this limit have ended, or have it raised"),
    ],
)  # fmt: skip
def test_a_job_that_may_run_somewhere_waits_for_its_turn(
    now: Now, rejected: str, message: str, remedy: str
) -> None:
    ad = ClassAd(changed(JOB, JobStatus="1", LastRejMatchReason=f'"{rejected}"'))
    reported = waiting_reason(ad, "ap1", matched(JOB, slots()), now)
    assert reported is not None
    assert reported.sentence.startswith("4 of the pool's 4 machines may run it, ")
    assert reported.sentence.endswith(message)
    assert not reported.never
    assert reported.remedies == (remedy,)


@pytest.mark.parametrize(
    ("code", "subcode", "why", "sentence", "remedy"),
    [
        (1, 0, "via condor_hold (by user ann)", "it is held: via condor_hold (by user ann)",
         "release it: condor_release 7.0"),
        (16, 0, "Spooling input data files", "it is held: Spooling input data files",
         "wait: its input files are still being sent"),
        (12, 2, "Transfer output files failure", "it is held: Transfer output files failure",
         "fix what the reason names, then condor_release 7.0"),
        (34, 0, "memory usage exceeded", ("it is held: memory usage exceeded; it asked for 100 MB "
         "of memory and used 512 MB"), "ask for more than it used, then condor_release 7.0"),
        (999, 0, "", "it is held: HTCondor gives no reason",
         "fix what the reason names, then condor_release 7.0"),
    ],
)  # fmt: skip
def test_a_hold_is_told_in_htcondors_words_with_what_lifts_it(
    code: int, subcode: int, why: str, sentence: str, remedy: str
) -> None:
    ad = changed(
        JOB, JobStatus="5", HoldReasonCode=f"{code}", HoldReasonSubCode=f"{subcode}",
        HoldReason=f'"{why}"', MemoryUsage="512",
    )  # fmt: skip
    reported = waiting_reason(ClassAd(ad), "ap1", None, Now(0, 0))
    assert reported is not None
    assert reported.code == (f"{code}.{subcode}" if subcode else f"{code}")
    assert (reported.sentence, reported.remedies) == (sentence, (remedy,))
    assert not reported.never


@pytest.mark.parametrize("status", [3, 4])
def test_a_job_that_leaves_does_not_wait(status: int) -> None:
    ad = ClassAd(changed(JOB, JobStatus=f"{status}"))
    assert waiting_reason(ad, "ap1", None, Now(0, 0)) is None


@pytest.mark.parametrize("status", [2, 6, 7])
def test_a_job_that_runs_by_now_does_not_wait(status: int) -> None:
    run = {"RemoteHost": '"slot1@m1"', "JobCurrentStartDate": "1795942000"}
    ad = ClassAd(changed(JOB, JobStatus=f"{status}", **run))
    reported = waiting_reason(ad, "ap1", None, Now(0, 0))
    assert reported is not None
    assert reported.is_over
    assert reported.sentence == "runs on slot1@m1 since 2026-11-29 08:46:40 UTC"


def test_a_job_that_lost_its_connection_may_run_still() -> None:
    away = {"JobCurrentReconnectAttempt": "2", "JobDisconnectedDate": "1795942000"}
    lease = {"LastJobLeaseRenewal": "1795942000", "JobLeaseDuration": "2400"}
    job = changed(JOB, JobStatus="2", RemoteHost='"slot1@m1"', **away, **lease)
    reported = waiting_reason(ClassAd(job), "ap1", None, Now(0, 0))
    assert reported is not None
    assert reported.is_over
    assert reported.sentence == (
        "ran on slot1@m1, and may do so still: its access point lost the connection to it at "
        "2026-11-29 08:46:40 UTC, and tries to reconnect until 2026-11-29 09:26:40 UTC"
    )


# -- asked of a pool --------------------------------------------------------------------------


def why(site: WatchedPool, job: str) -> Any:
    return ask_why(site.watch, site.calls, job)


def test_a_waiting_a_held_and_a_running_job_of_a_pool(site: WatchedPool) -> None:
    site.look()
    big = site.submit(60, request_memory="1000000")
    held = site.submit(60)
    site.pool.schedd("alice").act(JobAction.Hold, [held.partition("#")[2]])
    runs = site.submit(60)
    site.look(30)
    reported = why(site, big)
    assert reported.never
    assert re.match(
        r"none of the pool's 4 machines may run it: .*Memory >= 1000000", reported.sentence
    )
    assert reported.remedies[0].startswith("ask for at most ")
    assert why(site, held).sentence.startswith("it is held: ")
    assert re.fullmatch(r"runs on slot1@m\d+ since \S+ \S+ UTC", why(site, runs).sentence)


def test_a_full_pool_and_one_with_owners(site: WatchedPool) -> None:
    site.look()
    jobs = [site.submit(600) for _ in range(9)]
    site.pool.owner_came("m1")
    site.look(60)
    waits = [reported for job in jobs if not (reported := why(site, job)).is_over]
    assert waits
    assert {reported.sentence for reported in waits} == {
        (
            "4 of the pool's 4 machines may run it, and none of them has room for it now, "
            "1 of them used by their owners"
        )
    }


@pytest.mark.parametrize(
    "job", ["outrider:7", "7.0", "other#7", "mock.local#9999.0", "x#7.0#1", "a#7.0 || true"]
)
def test_another_batch_systems_job_and_one_that_left_are_nobodys(
    site: WatchedPool, job: str
) -> None:
    site.look()
    site.submit(60, request_memory="1000000")
    site.look(30)
    assert why(site, job) is None


def test_a_pool_that_does_not_answer_is_a_peer_that_does_not(site: WatchedPool) -> None:
    job = site.submit(60, request_memory="1000000")
    site.look(30)
    site.fails(outage_ratio=1.0)
    with pytest.raises(PeerError, match="the pool does not answer"):
        why(site, job)


# -- negotiator -------------------------------------------------------------------------------


class Collector:
    """A collector that knows the ads that a test sets."""

    def __init__(self) -> None:
        self.ads: list[dict[str, Any]] = []
        self.groups: list[dict[str, Any]] = []

    def query(self, kind: str, constraint: str = "", *_: Any) -> list[dict[str, Any]]:
        return self.groups if constraint == "IsAccountingGroup =?= true" else self.ads


def negotiator_of(collector: Collector, accounting: str | None = None) -> NegotiatorWatch:
    calls = PoolCalls(
        collector, "slots", HTCondorException, (),
        accounting_ads=accounting, negotiator_ads="negotiators",
    )  # fmt: skip
    return NegotiatorWatch(calls, silent_after_s=400.0)


def test_a_negotiator_that_is_gone_for_a_cycle_is_a_problem() -> None:
    collector = Collector()
    watch = negotiator_of(collector)
    for now_s in (0.0, 500.0):  # this pool may be run without any
        watch.look(now_s)
        assert watch.problem == ""
    collector.ads = [{"Name": "cm", "LastHeardFrom": 990, "LastNegotiationCyclePeriod0": 60}]
    watch.look(1000.0)
    collector.ads = []
    watch.look(1005.0)
    assert watch.problem == "", "a restarted one is back within a cycle"
    watch.look(1070.0)
    assert "condor_on -negotiator" in watch.problem
    collector.ads = [{"Name": "cm", "LastHeardFrom": 1071, "LastNegotiationCyclePeriod0": 900}]
    watch.look(1080.0)
    assert watch.problem == ""
    watch.look(1500.0)
    assert "silent" in watch.problem
    assert "400 s" in watch.problem


def cycles(watch: NegotiatorWatch, collector: Collector, ends_s: list[float]) -> None:
    """Let cycles end at these times, by a clock 1,000 s ahead, and look after each."""
    for end_s in ends_s:
        collector.groups = [{"LastHeardFrom": 1000.0 + end_s}, {"LastHeardFrom": 1000.0}]
        watch.look(end_s + 5.0)
        assert watch.problem == ""


def test_a_negotiator_that_ends_no_cycle_is_a_problem_after_two() -> None:
    collector = Collector()
    watch = negotiator_of(collector, "accounting")
    collector.ads = [{"Name": "cm", "LastHeardFrom": 1000}]  # its own ad is renewed seldom
    cycles(watch, collector, [60.0, 120.0, 180.0])
    for now_s in (190.0, 250.0, 305.0):
        watch.look(now_s)
        assert watch.problem == ""
    watch.look(306.0)
    assert watch.problem.startswith("the pool's negotiator has ended no cycle for more than 120 s")
    cycles(watch, collector, [400.0, 460.0])


def test_long_cycles_are_known_by_the_negotiators_ad_or_by_those_before() -> None:
    collector = Collector()
    by_ad, by_gaps = (negotiator_of(collector, "accounting") for _ in range(2))
    collector.ads = [{"Name": "cm", "LastHeardFrom": 1e9, "LastNegotiationCyclePeriod0": 240}]
    cycles(by_ad, collector, [60.0])
    by_ad.look(540.0)
    assert by_ad.problem == ""
    by_ad.look(546.0)
    assert "more than 480 s" in by_ad.problem
    collector.ads = [{"Name": "cm", "LastHeardFrom": 1e9}]
    for look_s in range(0, 101, 20):  # looks are regular: a long time between two is no cycle
        collector.groups = [{"LastHeardFrom": 1000.0 + (look_s == 100) * 100.0}]
        by_gaps.look(float(look_s))
    by_gaps.look(300.0)
    assert by_gaps.problem == ""
    by_gaps.look(301.0)
    assert "more than 200 s" in by_gaps.problem


def test_a_negotiator_that_publishes_no_cycles_goes_by_its_own_ad() -> None:
    collector = Collector()
    watch = negotiator_of(collector, "accounting")
    collector.ads = [{"Name": "cm", "LastHeardFrom": 0}]
    watch.look(399.0)
    assert watch.problem == ""
    watch.look(401.0)
    assert "silent" in watch.problem


def test_without_a_negotiator_nothing_is_to_be_waited_for() -> None:
    job = changed(JOB, Requirements="Memory >= 1")
    ad, found = ClassAd(changed(job, JobStatus="1")), matched(job, slots(Memory="1 1 1 1"))
    said = waiting_reason(ad, "ap1", found, Now(4, 0), None, obstacle({}, [], STOPPED))
    assert said is not None
    assert said.sentence.startswith("the pool's negotiator does not run")
    assert said.remedies[0] == "use condor_on -negotiator on the central manager"


# -- obstacles --------------------------------------------------------------------------------

NOW_S = 1_795_942_000.0
WAITS = {"JobStatus": 1, "JobUniverse": 5, "User": "ann@site", "RequestCpus": 2}


def obstacle(job: dict[str, Any], ads: list[dict[str, Any]], problem: str = "") -> Any:
    """Return what keeps a job from being matched, by the ads of the collector."""
    collector = Collector()
    collector.ads = ads
    calls = PoolCalls(collector, "slots", HTCondorException, (), accounting_ads="accounting")
    accounts = accounts_of(calls, submitter_of(WAITS | job))
    return obstacle_of(calls, WAITS | job, NOW_S, accounts, problem)


def group(used: float, quota: float, surplus: str = "no") -> list[dict[str, Any]]:
    """Return a group and a submitter of it, as HTCondor 23.9 publishes them."""
    return [
        {"Name": "physics", "EffectiveQuota": quota, "SurplusPolicy": surplus,
         "WeightedResourcesUsed": used, "AccountingGroup": "<none>", "IsAccountingGroup": True},
        {"Name": "physics.ann@site", "AccountingGroup": "physics", "Ceiling": -1,
         "WeightedResourcesUsed": used, "IsAccountingGroup": False},
    ]  # fmt: skip


IN_GROUP = {"AccountingGroup": "physics.ann"}


@pytest.mark.parametrize(
    ("job", "ads", "sentence", "remedy"),
    [
        (IN_GROUP, group(9.0, 10.0), "its accounting group physics uses 9 CPUs of a quota of 10",
         "wait until jobs of physics have ended, or have the quota of physics raised"),
        (IN_GROUP, group(0.0, 1.0), "uses 0 CPUs of a quota of 1", "have the quota of physics"),
        (IN_GROUP, group(9.0, 10.0)[:1], "accounting group physics", "wait until jobs of physics"),
        ({}, [{"Name": "ann@site", "Ceiling": 3, "WeightedResourcesUsed": 2.0}],
         "ann@site uses 2 of at most 3 CPUs (its ceiling)", "wait until jobs of ann@site"),
        ({"DeferralTime": NOW_S + 4000, "DeferralPrepTime": 300}, [],
         "it starts at 2026-11-29 09:53:20 UTC at the earliest, its deferral_time", "wait until"),
        ({"DeferralTime": NOW_S + 4000, "CronMinute": "0"}, [], "time of its cron_", "wait until"),
        ({"DeferralTime": 1e300}, [], "it starts at second 1", "wait until then"),
        ({"JobUniverse": 9, "GridResource": "batch slurm",
          "GridResourceUnavailableTime": NOW_S}, [],
         "it is for batch slurm: .*has not answered since 2026-11-29 08:46:40 UTC", "see Gridm"),
        ({"JobUniverse": 11, "Scheduler": "DedicatedScheduler@ap", "MaxHosts": 2}, [{}],
         "needs 2 slots together; 1 slots of the pool serve", "set DedicatedScheduler on more"),
        ({"JobUniverse": 7}, [], "it runs on its access point", "see START_LOCAL_UNIVERSE"),
        ({"OutriderUntil": NOW_S + 100, "OutriderHold": True}, [],
         "Outrider keeps it in the queue until 2026-11-29 08:48:20 UTC", "wait: it is released"),
    ],
)  # fmt: skip
def test_what_keeps_a_job_though_machines_may_run_it(
    job: dict[str, Any], ads: list[dict[str, Any]], sentence: str, remedy: str
) -> None:
    found = obstacle(job, ads)
    assert found is not None
    assert re.search(sentence.replace("(", r"\(").replace(")", r"\)"), found.sentence)
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("job", "ads"),
    [
        ({}, []),
        (IN_GROUP, group(7.0, 10.0)),
        (IN_GROUP, group(9.0, 10.0, surplus="byquota")),
        ({}, [{"Name": "ann@site", "Ceiling": -1, "WeightedResourcesUsed": 2.0}]),
        ({"DeferralTime": NOW_S + 200, "DeferralPrepTime": 300}, []),
        ({"OutriderUntil": NOW_S - 1, "OutriderHold": True}, []),
    ],
)
def test_limits_that_leave_room_and_times_that_have_passed_keep_nothing(
    job: dict[str, Any], ads: list[dict[str, Any]]
) -> None:
    assert obstacle(job, ads) is None


def test_a_user_without_usage_has_a_ceiling_by_the_negotiator_alone() -> None:
    collector = Collector()
    calls = PoolCalls(
        collector, "slots", HTCondorException, (), accounting_ads="accounting",
        accounts=lambda: [{"Name": "ann@site", "Ceiling": 1, "WeightedResourcesUsed": 0.0}],
    )  # fmt: skip
    found = obstacle_of(calls, WAITS, NOW_S, accounts_of(calls, "ann@site"))
    assert found is not None
    assert found.sentence == "ann@site uses 0 of at most 1 CPUs (its ceiling)"
    assert found.remedy == "have the ceiling of ann@site raised"
    assert accounts_of(calls, "ann@site", asks_negotiator=False) == {}


def test_why_a_machine_is_drained_and_that_start_is_false_is_said() -> None:
    job = changed(JOB, Requirements="Memory >= 1")
    ad, found = ClassAd(changed(job, JobStatus="1")), matched(job, slots(Memory="1 1 1 1"))
    start = ("ClockMin > 480",)
    now = Now(0, 0, drained=3, drain_reasons=("broken fan",), closed=1, starts=start)
    said = waiting_reason(ad, "ap1", found, now)
    assert said is not None
    assert (
        "none of them has room for it now, 3 of them drained by an administrator (broken fan), "
        "1 of them closed to all jobs now by their START (ClockMin > 480)"
    ) in said.sentence
    assert said.remedies[0].startswith("wait until their START takes jobs again")
    said = waiting_reason(ad, "ap1", found, Now(0, 0, 4, ("broken fan",)))
    assert said is not None
    assert said.remedies[0].startswith("wait until an administrator opens them again (broken fan)")
