"""Restarts of the survival index, which restores by the names of clusters, not by place."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from outrider.model import events as ev
from outrider.testing.fixtures import HandSite, chance
from outrider_policies.survival import Survival
from outrider_policies.survival.hosts import Absence
from outrider_policies.survival.owner_return import WEEK_H, OwnerReturn
from outrider_policies.survival.policy import SurvivalSettings
from tests.policies.test_survival import HOUR_S, lose_a_run, site_of


def lived() -> HandSite:
    """Two days in which owners come to the busy room every other hour, and to the other never."""
    hand = site_of({"busy": (2, 57.0), "quiet": (1, 70.0)})
    for hour in range(48):
        for machine in (0, 1):
            kinds = (ev.OWNER_WENT, ev.USABLE) if hour % 2 else (ev.OWNER_CAME,)
            for kind in kinds:
                hand.tell(kind, machine)
        hand.now += HOUR_S
        hand.submit(1000 + hour)
        hand.tick()
        hand.tell(ev.REMOVED, 1000 + hour, "removed")
    hand.submit(1)
    lose_a_run(hand, 1, 1200.0)
    return hand


def fresh() -> Survival:
    return Survival(SurvivalSettings(), chance("survival"))


def test_a_restart_changes_nothing_of_what_was_learned() -> None:
    hand = lived()
    again = fresh()
    again.restore(hand.policy.save(hand.site), hand.site)
    assert again.save(hand.site) == hand.policy.save(hand.site)
    job = hand.site.jobs[1]
    for machine in range(3):
        assert again.predict(job, machine, hand.site) == hand.policy.predict(
            job, machine, hand.site
        )


def test_each_room_keeps_its_own_owners_though_rooms_are_numbered_anew_and_one_is_new() -> None:
    hand = lived()
    before: dict[str, Any] = hand.policy.save(hand.site)
    members = [list(of) for of in hand.site.members]
    site: Any = SimpleNamespace(
        cluster_names=["attic", "quiet", "busy"], members=[[], members[1], members[0]]
    )
    again = fresh()
    again.restore(before, site)
    after = again.save(site)
    assert after["clusters"] == ["attic", "quiet", "busy"]
    for name in ("busy", "quiet"):
        was, is_now = before["clusters"].index(name), after["clusters"].index(name)
        assert after["hosts"]["levels"][is_now] == before["hosts"]["levels"][was]
        assert after["hosts"]["watched"][is_now] == before["hosts"]["watched"][was]
        for count in ("came", "exposed_h", "seen", "expected"):
            kept, owners = after["hosts"]["owners"][count], before["hosts"]["owners"][count]
            assert kept[is_now] == owners[was], (name, count)
    assert sum(after["hosts"]["owners"]["came"][2]) > sum(after["hosts"]["owners"]["came"][1])
    assert sum(after["hosts"]["owners"]["came"][0]) == 0.0, "nobody was seen in the attic"
    assert after["hosts"]["watched"][0] is False


def test_counts_of_owners_go_where_their_cluster_is_today() -> None:
    owners, again = (OwnerReturn(0.9, 20.0, 72.0) for _ in range(2))
    owners.grow(2)
    owners.came[0, 5], owners.came[1, 7] = 3.0, 4.0
    owners.exposed_h[1, 7] = 9.0
    owners.seen[:] = 1.0, 2.0
    owners.expected[:] = 1.5, 2.5
    again.restore(owners.save(), [2, 0], 3)
    assert again.came.shape == again.exposed_h.shape == (3, WEEK_H)
    assert (again.came[2, 5], again.came[0, 7], again.came.sum()) == (3.0, 4.0, 7.0)
    assert (again.exposed_h[0, 7], again.exposed_h.sum()) == (9.0, 9.0)
    assert again.seen.tolist() == [2.0, 0.0, 1.0]
    assert again.expected.tolist() == [2.5, 0.0, 1.5]


def test_the_owners_of_the_present_hour_are_counted_on_after_a_restart() -> None:
    absence, again = Absence(), Absence()
    for one in (absence, again):
        one.add_up(0.0, 3600.0, 3)
    absence.note(4500.0, 0, True)
    absence.note(5400.0, 1, True)
    absence.note(6300.0, 1, False)
    again.restore(absence.save())
    for one in (absence, again):
        logins, absent_h = one.add_up(3600.0, 7200.0, 3)
        assert np.asarray(logins).tolist() == [1, 1, 0]
        assert np.asarray(absent_h).tolist() == pytest.approx([0.25, 0.75, 1.0])
