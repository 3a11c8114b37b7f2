"""A job that Outrider lets HTCondor show as held waits, for its policies as for its user."""

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.lease_edits import OWN_HOLD
from outrider_adapters.htcondor.pool_watch import OwnHolds

HELD: NamedEvent = (10.0, events.HELD, "ap#1.0", OWN_HOLD)
RELEASED: NamedEvent = (20.0, events.RELEASED, "ap#1.0", None)
CHANGED: NamedEvent = (15.0, events.CHANGED, "ap#1.0", {"cpus": 2})


def test_own_holds_and_what_ends_them_are_not_told() -> None:
    holds = OwnHolds()
    assert holds.without([HELD, CHANGED]) == [CHANGED]
    assert holds.without([RELEASED]) == []
    assert holds.without([RELEASED]) == [RELEASED], "that one was somebody else's"


def test_holds_of_users_are_told_also_of_a_job_that_outrider_held_before() -> None:
    theirs: NamedEvent = (30.0, events.HELD, "ap#1.0", "via condor_hold (by user alice)")
    holds = OwnHolds()
    assert holds.without([HELD, RELEASED, theirs, RELEASED]) == [theirs, RELEASED]


def test_a_job_that_left_is_forgotten() -> None:
    removed: NamedEvent = (15.0, events.REMOVED, "ap#1.0", "removed")
    holds = OwnHolds()
    assert holds.without([HELD, removed]) == [removed]
    assert holds.save() == []


def test_what_is_held_outlives_a_restart() -> None:
    before, after = OwnHolds(), OwnHolds()
    before.without([HELD])
    after.restore(before.save())
    assert after.without([RELEASED]) == []
