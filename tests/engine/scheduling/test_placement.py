"""Starts that are impossible are not recorded; the policy is informed and continues."""

from typing import Any

import pytest

from outrider.api import Choice, Job, Policy, SiteView
from outrider.engine.scheduling.placement import WHYS
from outrider.model import events as ev
from outrider.model.decisions import NOWHERE
from outrider.model.errors import PolicyError
from outrider.model.machines import MachineSpec, Resources
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.placements import BestFit, RandomMatch


class Stubborn(Policy):
    """Sends every job to machine 0, whatever it is shown; then, if it may not, anywhere."""

    name = "stubborn"
    description = "for tests: machine 0 for every job"
    target: Any = 0

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(self.target, "stubborn")


def test_a_strict_run_ends_with_the_policy_the_job_the_machine_and_what_is_left() -> None:
    hand = HandSite(Stubborn)
    hand.machines(4, 16)
    hand.submit(0, cpus=16)
    said = r'"stubborn".*job 0 on machine 0 \(cpus\): asked for 16 CPUs, but 4 CPUs left'
    with pytest.raises(PolicyError, match=said):
        hand.tick()


def a_site(*machines: MachineSpec) -> HandSite:
    """A site whose policy is forgiven, as in the daemon."""
    hand = HandSite(Stubborn)
    hand.runner.strict = False
    for number, spec in enumerate(machines):
        hand.tell(ev.JOINED, number, spec)
    return hand


SMALL = MachineSpec(cpus=8, resources=Resources(memory_mib=4_000, gpus=1, named=(("licence", 1),)))
LARGE = MachineSpec(cpus=8, resources=Resources(memory_mib=64_000, gpus=4, named=(("licence", 9),)))


@pytest.mark.parametrize(
    ("asked", "target", "why"),
    [
        ({"cpus": 1}, 77, "unknown_machine"),
        ({"cpus": 1}, -5, "unknown_machine"),
        ({"cpus": 1}, "m0", "unknown_machine"),
        ({"cpus": 16}, 0, "cpus"),
        ({"resources": Resources(memory_mib=8_000)}, 0, "memory"),
        ({"resources": Resources(gpus=2)}, 0, "gpus"),
        ({"resources": Resources(named=(("licence", 2),))}, 0, "resource"),
        ({"eligible": "large"}, 0, "ineligible"),
    ],
)
def test_in_the_daemon_a_refusal_is_counted_and_the_job_waits_with_its_reason(
    asked: dict[str, Any], target: Any, why: str
) -> None:
    wide = MachineSpec(cpus=32, resources=LARGE.resources)
    hand = a_site(SMALL, wide)
    hand.tell(ev.ELIGIBLE, 0, ("large", (1,), True))
    assert isinstance(hand.policy, Stubborn)
    hand.policy.target = target
    hand.submit(0, **asked)
    assert hand.tick() == []
    assert hand.runner.refused == {why: 1}
    assert why in WHYS
    assert hand.runner.queue.waiting[0].reason == f"refused_{why}"
    assert hand.runner.broken == "", "the policy goes on"
    hand.policy.target = 1
    assert hand.tick(3600.0) == [0], "it is decided again an epoch later"


def test_a_closed_machine_is_refused() -> None:
    hand = a_site(SMALL, LARGE)
    hand.tell(ev.DRAINED, 0)
    hand.submit(0)
    assert hand.tick() == []
    assert hand.runner.refused == {"closed": 1}


def test_what_the_pass_has_chosen_before_is_taken() -> None:
    hand = a_site(SMALL)
    for job in (0, 1):
        hand.submit(job, resources=Resources(memory_mib=3_000))
    assert hand.tick() == [0]
    assert hand.runner.refused == {}, "it was not even asked where the second should run"
    hand.complete(0)
    assert hand.tick(1.0) == [1], "memory is given back with the end of the run"


@pytest.mark.parametrize("leave", [ev.EVICTED, ev.REMOVED])
def test_resources_come_back_however_a_run_ends(leave: int) -> None:
    hand = a_site(SMALL)
    hand.submit(0, resources=Resources(gpus=1))
    assert hand.tick() == [0]
    hand.submit(1, resources=Resources(gpus=1))
    assert hand.tick(1.0) == []
    hand.tell(leave, 0, "removed" if leave == ev.REMOVED else "owner")
    assert len(hand.tick(1.0)) == 1


def test_what_a_machine_does_not_declare_is_not_checked() -> None:
    hand = a_site(MachineSpec(cpus=2))
    hand.submit(0, resources=Resources(memory_mib=1e9, gpus=64))
    assert hand.tick() == [0]


def test_a_job_that_fits_no_machine_is_told_so_and_nobody_waits_behind_it() -> None:
    hand = HandSite(BestFit, "strict")
    hand.machines(8)
    hand.submit(0, cpus=16)
    hand.submit(1, cpus=8)
    assert hand.tick() == [1]
    assert hand.runner.queue.waiting[0].reason == "impossible"
    hand.machines(16)
    assert hand.tick(1.0) == [0]


def test_best_fit_does_not_give_one_cpu_to_two_jobs_of_a_pass() -> None:
    hand = HandSite(BestFit)
    hand.machines(8)
    hand.submit(0, cpus=4)
    hand.submit(1, cpus=6)
    hand.submit(2, cpus=3)
    assert hand.tick() == [0, 2]


def test_the_starvation_guard_draws_only_where_the_job_fits() -> None:
    class Lazy(Policy):
        """Defers every job until it must start."""

        name = "lazy"
        description = "for tests"
        max_defer_s = 100.0

        def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
            return Choice(NOWHERE, "lazy")

    for seed in range(5):
        hand = HandSite(Lazy)
        hand.policy.rng.seed(seed)
        hand.machines(1, 1, 4, 1, 2)
        hand.submit(0, cpus=3)
        assert hand.tick() == []
        assert hand.tick(100.0) == [0]
        assert hand.starts == [(0, 2)]


def test_who_waits_for_a_wide_machine_keeps_its_place_in_line() -> None:
    hand = HandSite(RandomMatch)
    hand.machines(4)
    hand.submit(0, cpus=4)
    assert hand.tick() == [0]
    for job in (1, 2, 3):
        hand.submit(job, cpus=3)
        assert hand.tick(1.0) == []
    order: list[int] = []
    for _ in range(3):
        hand.complete(order[-1] if order else 0)
        order += hand.tick(1.0)
    assert order == [1, 2, 3]


def test_resources_and_classes_outlast_a_restart() -> None:
    hand = a_site(SMALL, LARGE)
    hand.tell(ev.ELIGIBLE, 0, ("small", (0,), True))
    hand.submit(0, resources=Resources(memory_mib=3_000))
    assert hand.tick() == [0]
    fresh = HandSite(Stubborn)
    fresh.runner.strict = False
    fresh.engine.restore(hand.engine.save())
    fresh.now = hand.now
    fresh.submit(1, resources=Resources(memory_mib=3_000), eligible="small")
    assert fresh.tick(1.0) == [], "the first still uses the memory of the only machine of its class"
    fresh.complete(0)
    assert fresh.tick(1.0) == [1]
