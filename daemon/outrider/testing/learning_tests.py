"""Tests of policies: learning from outcomes only, snapshots without loss, and speed."""

import unittest
from collections.abc import Hashable, Iterable
from itertools import product
from math import isclose
from typing import Final, NamedTuple

from outrider.api.capabilities import Learns, Plans
from outrider.api.policy import Policy
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import Job, JobSpec
from outrider.model.outcomes import COMPLETED_RUN, EVICTED_RUN, REMOVED_RUN, Outcome
from outrider.testing.campuses import SPAN_S
from outrider.testing.conformance import expect
from outrider.testing.fixtures import (
    Row,
    Shadow,
    evaluation,
    events_after,
    events_until,
    plans,
)
from outrider.testing.instrumented_policy import InstrumentedPolicy, check_rewards
from outrider.testing.policy_under_test import PolicyUnderTest, events_beside_tiny_campus

_CUT_S: Final = 38.5 * 3600.0
_Scores = dict[Hashable, dict[str, float]]


class SavedRun(NamedTuple):
    """A run that was saved at the cut and went on.

    Attributes:
        snapshot: as the daemon writes it.
        cluster_names: in the order of their numbers.
        scores_at_cut, scores_at_end: scores by group key.
        rows_after: decisions after the cut.
    """

    snapshot: bytes
    cluster_names: list[str]
    scores_at_cut: _Scores
    rows_after: list[Row]
    scores_at_end: _Scores


class LearningTests(PolicyUnderTest):
    """Tests of learning, snapshots and speed."""

    def test_being_asked_teaches_nothing(self) -> None:
        """Choices without outcomes change no score.

        A policy that plans may learn from the state of the site, but once at each moment: not
        from further calls.
        """
        shadow, instrumented = self._run_to_cut()
        policy, site = shadow.policy, shadow.site
        expect(site.free_total > 0, "no machine is free at the cut: nothing to ask")
        job = Job(1_000_000, JobSpec(user="ann"), site.now - 60.0)

        def ask() -> None:
            if isinstance(policy, Plans):
                if instrumented.queue is not None:
                    policy.plan(instrumented.queue, site)
            else:
                policy.choose(job, evaluation(policy, job, site), site, True)

        if isinstance(policy, Plans):
            ask()  # it may learn once from this moment
        learned = _scores(policy, instrumented.keys, site)
        for _ in range(50):
            ask()
        _expect_alike(_scores(policy, instrumented.keys, site), learned, "after 50 choices")

    def test_it_takes_every_ending(self) -> None:
        """Completed, evicted and removed for every reason; also a job it was never asked about."""
        policy = self.make()
        if not isinstance(policy, Learns):
            raise unittest.SkipTest("it does not learn")
        site = self._run_to_cut(policy)[0].site
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
        saved = self._saved_run()
        fresh = self.make(seed=99)
        resumed = self.in_shadow(fresh)
        resumed.restore(saved.snapshot)
        resumed.play(events_after(events_beside_tiny_campus(), _CUT_S), SPAN_S)

        for one, other in zip(resumed.rows, saved.rows_after, strict=False):
            expect(one == other, f"after a restart it decided {one} instead of {other}")
        expect(
            len(resumed.rows) == len(saved.rows_after),
            "after a restart it decided more, or less often",
        )
        _expect_alike(
            _scores(fresh, saved.scores_at_end, resumed.site),
            saved.scores_at_end,
            "at the end of a run with a restart",
        )

    def test_clusters_may_be_numbered_anew_after_a_restart(self) -> None:
        """What was learned of a cluster is found again by its name."""
        saved = self._saved_run()
        fresh = self.make(seed=99)
        renumbered = self.in_shadow(fresh, order=(2, 0, 1))
        renumbered.restore(saved.snapshot)
        expect(
            saved.cluster_names != renumbered.site.cluster_names,
            "the clusters kept their numbers: nothing was tried",
        )
        _expect_alike(
            _scores(fresh, saved.scores_at_cut, renumbered.site),
            saved.scores_at_cut,
            "after clusters were numbered anew",
        )
        again = InstrumentedPolicy(fresh)
        renumbered.play(events_after(events_beside_tiny_campus(), _CUT_S), SPAN_S)
        expect(again.calls_n > 0, "the policy was not asked again")

    def test_its_speed_is_told(self) -> None:
        """Prints the time of a choice or a plan; no bound, for machines differ."""
        counts, wall_s, _ = self.instrumented_run()
        mean_us = counts.deciding_s / max(1, counts.calls_n) * 1e6
        answers = "plans" if plans(counts.policy) else "choices"
        print(  # noqa: T201 - this is the purpose of the test
            f"{counts.policy.name}: {counts.calls_n} {answers} of {mean_us:.1f} us each, "
            f"{counts.outcomes_n} outcomes, {wall_s:.2f} s in all with instrumentation"
        )

    def _run_to_cut(self, made: Policy | None = None) -> tuple[Shadow, InstrumentedPolicy]:
        """Return a policy in shadow at the cut of the tiny campus: a new one, or one just made."""
        policy = self.make() if made is None else made
        instrumented = InstrumentedPolicy(policy)
        shadow = self.in_shadow(policy)
        shadow.play(events_until(events_beside_tiny_campus(), _CUT_S), _CUT_S)
        expect(instrumented.calls_n > 0, "the policy was never asked")
        return shadow, instrumented

    def _saved_run(self) -> SavedRun:
        """Return a run that was saved at the cut and went on: one for all tests of a suite."""
        suite = type(self)
        if suite not in _saved_runs:
            shadow, instrumented = self._run_to_cut()
            policy, site = shadow.policy, shadow.site
            snapshot, decided_n = shadow.save(), len(shadow.rows)
            cluster_names = list(site.cluster_names)
            at_cut = _scores(policy, instrumented.keys, site)
            shadow.play(events_after(events_beside_tiny_campus(), _CUT_S), SPAN_S)
            at_end = _scores(policy, instrumented.keys, site)
            _saved_runs[suite] = SavedRun(
                snapshot, cluster_names, at_cut, shadow.rows[decided_n:], at_end
            )
        return _saved_runs[suite]


_saved_runs: dict[type[LearningTests], SavedRun] = {}


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
