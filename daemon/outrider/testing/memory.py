"""Does a policy learn from outcomes alone, and lose nothing over a restart?"""

import time
import unittest
from collections.abc import Hashable, Iterable
from itertools import product
from math import isclose
from typing import Any, Final

from outrider.api.capabilities import Learns, Plans
from outrider.api.policy import Policy
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import Job, JobSpec
from outrider.model.outcomes import COMPLETED_RUN, EVICTED_RUN, REMOVED_RUN, Outcome
from outrider.testing.campuses import SPAN_S, tiny_campus
from outrider.testing.candidate import Candidate
from outrider.testing.fixtures import (
    Shadow,
    act,
    after,
    before,
    evaluation,
    plans,
    seen_from_outside,
)
from outrider.testing.instrumented_policy import Witness, check_rewards
from outrider.testing.verdict import expect

_CUT_S: Final = 38.5 * 3600.0
_Scores = dict[Hashable, dict[str, float]]


class RemembersAndForgetsNothing(Candidate):
    """Questions about learning, snapshots and speed."""

    def test_being_asked_teaches_nothing(self) -> None:
        """Choices without outcomes leave every score as it was.

        A policy that plans may learn from the state of the site in which a moment finds it, but
        once: not from being asked again.
        """
        shadow, witness = self._until_cut()
        policy, site = shadow.policy, shadow.site
        expect(site.free_total > 0, "no machine is free at the cut: nothing to ask")
        job = Job(1_000_000, JobSpec(user="ann"), site.now - 60.0)

        def ask() -> None:
            if isinstance(policy, Plans):
                if witness.queue is not None:
                    policy.plan(witness.queue, site)
            else:
                policy.choose(job, evaluation(policy, job, site), site, True)

        if isinstance(policy, Plans):
            ask()  # the moment is new to it
        learned = _scores(policy, witness.keys, site)
        for _ in range(50):
            ask()
        _expect_alike(_scores(policy, witness.keys, site), learned, "after 50 choices")

    def test_it_takes_every_ending(self) -> None:
        """Completed, evicted and removed for every reason; also a job it was never asked about."""
        shadow, _ = self._until_cut()
        policy, site = shadow.policy, shadow.site
        if not isinstance(policy, Learns):
            raise unittest.SkipTest("it does not learn")
        key = policy.group_key(Job(0, JobSpec(), site.now), site)
        ends: list[tuple[str, str]] = [(COMPLETED_RUN, "")]
        ends += product((EVICTED_RUN, REMOVED_RUN), EVICTION_REASONS)
        for number, ((ending, reason), on_policy) in enumerate(product(ends, (True, False))):
            start_s = site.now - 600.0
            run = Outcome(
                2_000_000 + number, key, 0, site.cluster_of(0), start_s, site.now, 600.0,
                ending, reason,
            )  # fmt: skip
            where = f"{ending} {reason}".strip()
            check_rewards(policy.observe(run, site, on_policy), where)
        gone = Outcome(
            3_000_000, (), NOWHERE, NOWHERE, site.now, site.now, 0.0, REMOVED_RUN, "removed"
        )
        check_rewards(policy.observe(gone, site, True), "removed before it ever ran")

    def test_a_restart_changes_nothing(self) -> None:
        """Saved as MessagePack, restored into a fresh policy: it goes on as if uninterrupted."""
        told = seen_from_outside(tiny_campus())
        through, watched = self._until_cut(told)
        saved = through.save()
        decided_n = len(through.rows)
        through.play(after(told, _CUT_S), SPAN_S)

        fresh = self.make(seed=99)
        resumed = self.beside(fresh)
        resumed.restore(saved)
        resumed.play(after(told, _CUT_S), SPAN_S)

        rest = through.rows[decided_n:]
        for one, other in zip(resumed.rows, rest, strict=False):
            expect(one == other, f"after a restart it decided {one} instead of {other}")
        expect(len(resumed.rows) == len(rest), "after a restart it decided more, or less often")
        keys = watched.keys
        _expect_alike(
            _scores(fresh, keys, resumed.site),
            _scores(through.policy, keys, through.site),
            "at the end of a run with a restart",
        )

    def test_clusters_may_be_numbered_anew_after_a_restart(self) -> None:
        """What was learned of a cluster is found again by its name."""
        told = seen_from_outside(tiny_campus())
        shadow, watched = self._until_cut(told)
        fresh = self.make(seed=99)
        renumbered = self.beside(fresh, order=(2, 0, 1))
        renumbered.restore(shadow.save())
        expect(
            shadow.site.cluster_names != renumbered.site.cluster_names,
            "the clusters kept their numbers: nothing was tried",
        )
        _expect_alike(
            _scores(fresh, watched.keys, renumbered.site),
            _scores(shadow.policy, watched.keys, shadow.site),
            "after clusters were numbered anew",
        )
        again = Witness(fresh)
        renumbered.play(after(told, _CUT_S), SPAN_S)
        expect(again.asked > 0, "the policy was not asked again")

    def test_its_speed_is_told(self) -> None:
        """Prints the time of a choice or a plan; no bound, for machines differ."""
        policy = self.make()
        witness = Witness(policy)
        began = time.perf_counter()
        act(tiny_campus(), policy)
        whole_s = time.perf_counter() - began
        mean_us = witness.choosing_s / max(1, witness.asked) * 1e6
        answers = "plans" if plans(policy) else "choices"
        print(  # noqa: T201 - this is what the question is for
            f"{policy.name}: {witness.asked} {answers} of {mean_us:.1f} us each, "
            f"{witness.told} outcomes, {whole_s:.2f} s in all with the witness"
        )

    def _until_cut(self, told: Iterable[Any] | None = None) -> tuple[Shadow, Witness]:
        """The policy in shadow, half way through the tiny campus."""
        policy = self.make()
        witness = Witness(policy)
        shadow = self.beside(policy)
        shadow.play(before(told or seen_from_outside(tiny_campus()), _CUT_S), _CUT_S)
        expect(witness.asked > 0, "the policy was never asked")
        return shadow, witness


def _scores(policy: Policy, keys: Iterable[Hashable], site: Site) -> _Scores:
    return {key: dict(policy.scores(key, site)) for key in keys}


def _expect_alike(got: _Scores, wanted: _Scores, when: str) -> None:
    for key, scores in wanted.items():
        for name, score in scores.items():
            now = got[key].get(name)
            same = now is not None and isclose(now, score, rel_tol=1e-9, abs_tol=1e-12)
            expect(
                same,
                f"{when}: the score of {name!r} for jobs like {key!r} is {now!r} instead of "
                f"{score!r}",
            )
