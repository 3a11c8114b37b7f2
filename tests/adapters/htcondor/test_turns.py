"""Tests of the order of jobs, by ads of users' priorities and jobs, and by the queue."""

from typing import Any

from outrider_adapters.htcondor.pool_calls import AccessPoint, ClassAd, HTCondorException, PoolCalls
from outrider_adapters.htcondor.questions import accounts_of, submitter_of, turn_of
from outrider_adapters.htcondor.reasons import (
    Now,
    Turn,
    waiting_reason,
)
from tests.adapters.htcondor.test_eligibility import JOB, changed
from tests.adapters.htcondor.test_reasons import matched, slots

ACCOUNTING, SUBMITTERS = "accounting", "submitters"
PRIORITIES = {
    "ann@site": 500.0, "bob@site": 100.0, "cy@site": 900.0, "physics.ann@site": 50.0,
    'odd".ann@site': 70.0,
}  # fmt: skip
IDLE = [
    ("ann@site", 9), ("bob@site", 3), ("bob@site", 4), ("cy@site", 5), ("physics.ann@site", 2),
    ("new@site", 1),
]  # fmt: skip
"""Idle jobs of users, at two access points; a new user has no priority yet: the best."""


class Site:
    """A collector and a queue that answer by evaluating the constraint on each ad."""

    def __init__(self, *queue: dict[str, Any]) -> None:
        self.queue = [ClassAd({"JobStatus": 1, "JobPrio": 0, **ad}) for ad in queue]
        self.calls = PoolCalls(self, None, HTCondorException, (), ACCOUNTING, SUBMITTERS)

    def query(self, *words: Any) -> list[Any]:
        if words[0] == ACCOUNTING:
            groups = [{"Name": "<none>", "Priority": 1.0, "IsAccountingGroup": True}]
            users = [{"Name": name, "Priority": n} for name, n in PRIORITIES.items()]
            ads, constraint = [ClassAd(ad) for ad in groups + users], words[1]
        elif words[0] == SUBMITTERS:
            ads = [ClassAd({"Name": name, "IdleJobs": n}) for name, n in IDLE]
            constraint = words[1]
        else:
            ads, constraint = self.queue, words[0]
        return [ad for ad in ads if holds(ad, constraint)]

    def turn(self, at: int) -> Turn | None:
        point: Any = AccessPoint("ap1", self, HTCondorException)  # type: ignore[arg-type]
        accounts = accounts_of(self.calls, submitter_of(self.queue[at]))
        return turn_of(self.calls, point, self.queue[at], accounts)


def holds(ad: Any, constraint: str) -> bool:
    asked = ClassAd(str(ad))
    asked["_asked"] = ClassAd(f"[x = {constraint}]").lookup("x")
    return asked.eval("_asked") is True


def job(cluster: int, user: str = "ann@site", **more: Any) -> dict[str, Any]:
    return {"ClusterId": cluster, "ProcId": 0, "User": user, **more}


def test_users_of_better_priority_and_ones_own_jobs_come_before() -> None:
    site = Site(
        job(1), job(2), job(3), job(4, JobPrio=5), job(1, "bob@site"), job(2, JobStatus=5),
        job(2, AccountingGroup="physics.ann"), job(2, ProcId=1),
    )  # fmt: skip
    # bob's 3 + 4, 2 of physics.ann, 1 of somebody new; own: 1.0, 2.0, 2.1 and 4.0
    assert site.turn(2) == Turn(500.0, 3, 10, 4)
    assert site.turn(3) == Turn(500.0, 3, 10, 0), "of its user the first by JobPrio"
    assert site.turn(6) == Turn(50.0, 1, 1, 0), "a group has a queue and a priority of its own"


def test_a_group_that_is_spelt_to_break_out_of_its_string_is_only_a_name() -> None:
    site = Site(job(1, AccountingGroup='odd".ann'), job(2, AccountingGroup='odd".ann'), job(1))
    turn = site.turn(1)
    assert turn is not None
    assert (turn.priority, turn.own) == (70.0, 1)


def test_a_user_without_usage_has_a_priority_by_the_negotiator_alone() -> None:
    site = Site(job(1, "new@site"), job(2, "new@site"))
    assert site.turn(1) is None
    asked = [{"Name": "new@site", "Priority": 500.0}, {"Name": "cy@site", "Priority": 0.5}]
    site.calls = site.calls._replace(accounts=lambda: asked)
    # the collector's word goes first: cy@site is not better than that
    assert site.turn(1) == Turn(500.0, 2, 9, 1)

    def fails() -> list[Any]:
        raise HTCondorException("busy")

    site.calls = site.calls._replace(accounts=fails)
    assert site.turn(1) is None


def test_where_priorities_are_not_told_nothing_is_said() -> None:
    site = Site(job(1, "nobody@elsewhere"))
    assert site.turn(0) is None
    site.calls = site.calls._replace(accounting_ads=None)
    assert site.turn(0) is None


def test_who_comes_before_is_told_with_the_priority() -> None:
    ad, machines = ClassAd(changed(JOB, JobStatus="1")), matched(JOB, slots())
    reported = waiting_reason(ad, "ap1", machines, Now(0, 0), Turn(500.25, 1, 7, 2))
    assert reported is not None
    assert reported.ahead == 9
    assert reported.sentence.endswith(
        "none of them has room for it now; 7 idle jobs of 1 user of better priority and 2 idle "
        "jobs of its own user come before it (its user's priority is 500.25)"
    )
    first = waiting_reason(ad, "ap1", machines, Now(0, 0), Turn(500.25, 0, 0, 0))
    assert first is not None
    assert (first.ahead, first.sentence[-23:]) == (0, "them has a free slot"[-23:]) or (
        first.ahead == 0 and first.sentence.endswith("none of them has room for it now")
    )
