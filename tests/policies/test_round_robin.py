"""Every machine in its turn, from the first on."""

from outrider.testing.fixtures import HandSite
from outrider_policies.rules.placements import RoundRobin


def test_the_first_machine_comes_first_and_again_after_the_last() -> None:
    hand = HandSite(RoundRobin)
    hand.machines(4, 4, 4)
    for job in range(5):
        hand.submit(job)
    assert hand.tick() == [0, 1, 2, 3, 4]
    assert [machine for _, machine in hand.starts] == [0, 1, 2, 0, 1]


def test_a_machine_without_room_is_passed_over_and_the_turn_outlives_a_restart() -> None:
    hand = HandSite(RoundRobin)
    hand.machines(4, 1, 4)
    hand.submit(0)
    hand.submit(1, cpus=4)
    hand.tick()
    assert hand.starts == [(0, 0), (1, 2)]
    again = HandSite(RoundRobin)
    again.machines(4, 1, 4)
    again.policy.restore(hand.policy.save(hand.site), again.site)
    again.submit(0)
    again.submit(1)
    again.tick()
    assert again.starts == [(0, 0), (1, 1)], "after the last comes the first"
