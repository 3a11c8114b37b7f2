"""Tests of policies: propensities are true probabilities, since later estimates divide by them."""

import unittest
from collections import defaultdict
from itertools import pairwise
from math import inf, sqrt
from typing import Final

import msgspec

from outrider.api.policy import Policy
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE
from outrider.model.jobs import Job, JobSpec
from outrider.testing.conformance import expect
from outrider.testing.fixtures import evaluation, events_after, events_until, plans
from outrider.testing.policy_under_test import PolicyUnderTest, events_beside_tiny_campus

_CHOICES_N: Final = 400
_SIGMAS: Final = 5.0
_SAME: Final = 1e-9
_MOMENTS_S: Final = (0.5 * 3600.0, 32.5 * 3600.0, 50.5 * 3600.0)
"""At each, every cluster of the tiny campus has a free machine; the last two follow about a
hundred outcomes."""


class PropensityTests(PolicyUnderTest):
    """Tests of propensities."""

    def test_propensities_are_the_frequencies_of_its_choices(self) -> None:
        """Asked often in one situation: sums to at most 1, and happens as often as it says."""
        if plans(self.make()):
            raise unittest.SkipTest("it plans whole rounds: it never chooses a place for one job")
        events = events_beside_tiny_campus()
        policy = self.make()
        shadow = self.in_shadow(policy)
        for before_s, moment_s in pairwise((-inf, *_MOMENTS_S)):
            shadow.play(events_until(events_after(events, before_s), moment_s), moment_s)
            expect(min(shadow.site.free_n) > 0, f"a room is full at {moment_s:g} s: ask elsewhere")
            self._ask_often(policy, shadow.site, f"at {moment_s:g} s")

    def _ask_often(self, policy: Policy, site: Site, where: str) -> None:
        job = Job(1_000_000, JobSpec(user="ann"), site.now - 60.0)
        memory = msgspec.msgpack.encode(policy.save(site))
        claims: dict[int, list[float]] = defaultdict(list)
        for _ in range(_CHOICES_N):
            policy.restore(msgspec.msgpack.decode(memory), site)
            choice = policy.choose(job, evaluation(policy, job, site), site, True)
            if choice.propensity is None:
                raise unittest.SkipTest("it declares that its propensities are unknown")
            place = NOWHERE if choice.machine == NOWHERE else site.cluster_of(choice.machine)
            claims[place].append(choice.propensity)
        names = dict(enumerate(site.cluster_names))
        names[NOWHERE] = "the queue"
        for place, said in claims.items():
            expect(
                max(said) - min(said) <= _SAME,
                f"{where}: {names[place]} was chosen with propensity {min(said):g} and with "
                f"{max(said):g} in one and the same situation",
            )
            often, claim = len(said) / _CHOICES_N, said[0]
            slack = _SIGMAS * sqrt(claim * (1.0 - claim) / _CHOICES_N) + 1.0 / _CHOICES_N
            expect(
                abs(often - claim) <= slack,
                f"{where}: {names[place]} was chosen in {often:.1%} of {_CHOICES_N} choices, "
                f"but with propensity {claim:g}; it must be the cluster's, not the machine's",
            )
        total = sum(said[0] for said in claims.values())
        expect(
            total <= 1.0 + 1e-6,
            f"{where}: propensities of what it chose sum to {total:g}, more than 1",
        )
