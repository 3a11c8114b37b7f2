"""Conformance suite of policies: the tests that every policy has to pass."""

import unittest
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise, product
from math import inf, isclose, sqrt
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from outrider.api.capabilities import Decides, Learns, Plans
from outrider.api.policy import Policy
from outrider.engine.state.site import Site
from outrider.formats.workload import Workload
from outrider.model.decisions import (
    COMPLETED_RUN,
    EVICTED_RUN,
    IMPOSSIBLE,
    NOWHERE,
    REMOVED_RUN,
    START,
    Decision,
    Outcome,
)
from outrider.model.events import EVICTION_REASONS
from outrider.model.jobs import Job, JobSpec
from outrider.model.machines import MachineSpec, Resources
from outrider.model.modes import DISCIPLINES, Discipline
from outrider.replay.grid_run import GridRun
from outrider.testing.campuses import SPAN_S
from outrider.testing.conformance import expect, run_all_tests
from outrider.testing.decision_tests import DecisionTests
from outrider.testing.fixtures import (
    Row,
    Shadow,
    evaluation,
    events_after,
    events_until,
    plans,
)
from outrider.testing.instrumented_policy import InstrumentedPolicy, check_rewards
from outrider.testing.policy_under_test import PolicyUnderTest, tiny_campus_events

# -- propensity tests ------------------------------------------------------------------------------
# Tests of propensities: they are true probabilities, since later estimates divide by them.

_CHOICES_N: Final = 400
_SIGMAS: Final = 5.0
_SAME: Final = 1e-9
_MOMENTS_S: Final = (0.5 * 3600.0, 32.5 * 3600.0, 50.5 * 3600.0)
"""Moments with a free machine in every cluster of the tiny campus. The last two follow about a
hundred outcomes.
"""


class PropensityTests(PolicyUnderTest):
    """Tests of the propensities that a policy reports."""

    def test_propensities_are_the_frequencies_of_its_choices(self) -> None:
        """Ask often in one situation: frequencies match propensities, which sum to at most 1."""
        if plans(self.make()):
            raise unittest.SkipTest("it plans whole passes: it never chooses a place for one job")
        events = tiny_campus_events()
        policy = self.make()
        shadow = self.in_shadow(policy)
        for before_s, moment_s in pairwise((-inf, *_MOMENTS_S)):
            shadow.play(events_until(events_after(events, before_s), moment_s), moment_s)
            expect(
                min(shadow.site.free_n) > 0, f"a room is full at {moment_s:g} s: use another moment"
            )
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
        for place, reported in claims.items():
            expect(
                max(reported) - min(reported) <= _SAME,
                f"{where}: {names[place]} was chosen with propensity {min(reported):g} and with "
                f"{max(reported):g} in the same situation",
            )
            often, claim = len(reported) / _CHOICES_N, reported[0]
            slack = _SIGMAS * sqrt(claim * (1.0 - claim) / _CHOICES_N) + 1.0 / _CHOICES_N
            expect(
                abs(often - claim) <= slack,
                f"{where}: {names[place]} was chosen in {often:.1%} of {_CHOICES_N} choices, "
                f"but with propensity {claim:g}; it must be the cluster's, not the machine's",
            )
        total = sum(reported[0] for reported in claims.values())
        expect(
            total <= 1.0 + 1e-6,
            f"{where}: propensities of what it chose sum to {total:g}, more than 1",
        )


# -- placement tests -------------------------------------------------------------------------------
# Tests of placement: only possible starts, also for jobs that do not fit every machine.

MACHINES: Final = {
    "narrow-0": MachineSpec("narrow", 1, 40.0, resources=Resources(memory_mib=2_000)),
    "narrow-1": MachineSpec("narrow", 1, 40.0),
    "broad-0": MachineSpec("broad", 8, 300.0, resources=Resources(memory_mib=16_000, gpus=0)),
    "broad-1": MachineSpec("broad", 8, 300.0, resources=Resources(memory_mib=16_000)),
    "gpu-0": MachineSpec("gpu", 4, 600.0, resources=Resources(memory_mib=32_000, gpus=2)),
    "licensed-0": MachineSpec("licensed", 4, 90.0, resources=Resources(named=(("licence", 1.0),))),
}
"""Machines of several sizes; undeclared resources are not checked."""

CLASSES: Final = {"on_broad": (2, 3), "nowhere": ()}

KINDS: Final = {
    "plain": JobSpec(user="ann", estimate_s=600.0),
    "of 4 CPUs": JobSpec(user="bob", cpus=4, estimate_s=900.0),
    "of 6 CPUs": JobSpec(user="eve", cpus=6, estimate_s=300.0),
    "of much memory": JobSpec(user="ann", resources=Resources(memory_mib=9_000), estimate_s=800.0),
    "of a GPU": JobSpec(user="bob", resources=Resources(memory_mib=100, gpus=1), estimate_s=700.0),
    "of a licence": JobSpec(user="eve", resources=Resources(named=(("licence", 1.0),))),
    "only for broad machines": JobSpec(user="ann", eligible="on_broad", estimate_s=400.0),
    "wide and only for broad machines": JobSpec(user="bob", cpus=3, eligible="on_broad"),
    "of 64 CPUs": JobSpec(user="eve", cpus=64, estimate_s=60.0),
    "eligible nowhere": JobSpec(user="eve", eligible="nowhere", estimate_s=60.0),
}
"""Kinds of jobs by their requests, under a readable name."""

IMPOSSIBLE_KINDS: Final = ("of 64 CPUs", "eligible nowhere")
_JOBS_PER_KIND: Final = 8
_LENGTHS_S: Final = (500.0, 1_300.0, 200.0, 2_100.0)
_UNTIL_S: Final = 40_000.0


def crowded_workload() -> Workload:
    """Return jobs of all kinds, several at each moment, named ``KIND, no. N``."""
    rows = [
        (60.0 + 150.0 * n, f"{kind}, no. {n}", spec, _LENGTHS_S[(n + at) % len(_LENGTHS_S)])
        for n in range(_JOBS_PER_KIND)
        for at, (kind, spec) in enumerate(KINDS.items())
    ]
    specs = [spec for _, _, spec, _ in rows]
    unknown = np.full(len(rows), np.nan)
    return Workload(
        name="jobs of all kinds",
        job_names=[name for _, name, _, _ in rows],
        submit_s=np.array([submit_s for submit_s, _, _, _ in rows]),
        run_s=np.array([run_s for _, _, _, run_s in rows]),
        cpus=np.array([spec.cpus for spec in specs]),
        requested_s=unknown,
        wait_s=unknown,
        estimate_s=np.array([spec.estimate_s or np.nan for spec in specs]),
        user=[spec.user for spec in specs],
        vo=[spec.vo for spec in specs],
        job_class=[spec.job_class for spec in specs],
        machine_names=list(MACHINES),
        machines=list(MACHINES.values()),
        resources=[spec.resources for spec in specs],
        eligible=[spec.eligible for spec in specs],
        classes=CLASSES,
    )


class PlacementTests(PolicyUnderTest):
    """Tests of the machines that a policy chooses."""

    def test_it_asks_only_for_machines_on_which_the_job_may_start(self) -> None:
        """Place wide, memory-bound, GPU-bound and ineligible jobs on machines of several sizes."""
        does_plan = self.policy.decides is Decides.PLAN  # then no job waits for another
        for discipline in DISCIPLINES[:1] if does_plan else DISCIPLINES:
            self._ask(discipline)

    def _ask(self, discipline: Discipline) -> None:
        started: set[str] = set()
        reasons: dict[str, str] = {}

        def keep(decision: Decision) -> None:
            job = workload.job_names[decision.job]
            reasons[job] = decision.reason
            if decision.action == START:
                started.add(job.partition(", no.")[0])

        workload = crowded_workload()
        GridRun(
            workload, [self.make()], keep, _UNTIL_S, discipline=discipline
        ).run()  # raises PolicyError with the job, the machine and what was left there
        expect("plain" in started, f"no plain job was ever started under {discipline}")
        if self.policy.decides is Decides.PLAN:
            return  # it may give a job fewer CPUs than requested
        for job, reason in reasons.items():
            if job.partition(", no.")[0] in IMPOSSIBLE_KINDS:
                expect(
                    reason == IMPOSSIBLE,
                    f"{job} fits on no machine: expected {IMPOSSIBLE!r}, not {reason!r}",
                )


# -- learning tests --------------------------------------------------------------------------------
# Tests of learning from outcomes only, snapshots without loss, and speed.

_CUT_S: Final = 38.5 * 3600.0
_Scores = dict[Hashable, dict[str, float]]


class SavedRun(NamedTuple):
    """Run that was saved at the cut and continued.

    Attributes:
        snapshot: in the daemon's format.
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
        """Check that choices without outcomes change no score.

        A policy that plans may learn from the state of the site, but once at each moment: not
        from further calls.
        """
        shadow, instrumented = self._run_to_cut()
        policy, site = shadow.policy, shadow.site
        expect(site.free_total > 0, "no machine is free at the cut: no choice is possible")
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
        _expect_equal_scores(_scores(policy, instrumented.keys, site), learned, "after 50 choices")

    def test_it_takes_every_ending(self) -> None:
        """Observe completions, evictions and removals for every reason; also of an unknown job."""
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
        """Restore a snapshot into a fresh policy: it continues as if uninterrupted."""
        saved = self._saved_run()
        fresh = self.make(seed=99)
        resumed = self.in_shadow(fresh)
        resumed.restore(saved.snapshot)
        resumed.play(events_after(tiny_campus_events(), _CUT_S), SPAN_S)

        for one, other in zip(resumed.rows, saved.rows_after, strict=False):
            expect(one == other, f"after a restart it decided {one} instead of {other}")
        expect(
            len(resumed.rows) == len(saved.rows_after),
            "after a restart it decided more often, or less often",
        )
        _expect_equal_scores(
            _scores(fresh, saved.scores_at_end, resumed.site),
            saved.scores_at_end,
            "at the end of a run with a restart",
        )

    def test_clusters_may_be_renumbered_after_a_restart(self) -> None:
        """Find what was learned of a cluster by its name."""
        saved = self._saved_run()
        fresh = self.make(seed=99)
        renumbered = self.in_shadow(fresh, order=(2, 0, 1))
        renumbered.restore(saved.snapshot)
        expect(
            saved.cluster_names != renumbered.site.cluster_names,
            "the clusters kept their numbers: nothing was tested",
        )
        _expect_equal_scores(
            _scores(fresh, saved.scores_at_cut, renumbered.site),
            saved.scores_at_cut,
            "after clusters were renumbered",
        )
        again = InstrumentedPolicy(fresh)
        renumbered.play(events_after(tiny_campus_events(), _CUT_S), SPAN_S)
        expect(again.calls_n > 0, "the policy was not asked again")

    def test_its_speed_is_printed(self) -> None:
        """Print the time of a choice or a plan; without a bound, since machines differ."""
        counts, wall_s, _ = self.instrumented_run()
        mean_us = counts.deciding_s / max(1, counts.calls_n) * 1e6
        answers = "plans" if plans(counts.policy) else "choices"
        print(  # noqa: T201 - this is the purpose of the test
            f"{counts.policy.name}: {counts.calls_n} {answers} of {mean_us:.1f} us each, "
            f"{counts.outcomes_n} outcomes, {wall_s:.2f} s in all with instrumentation"
        )

    def _run_to_cut(self, made: Policy | None = None) -> tuple[Shadow, InstrumentedPolicy]:
        """Return a policy in shadow at the cut of the tiny campus, a new one by default."""
        policy = self.make() if made is None else made
        instrumented = InstrumentedPolicy(policy)
        shadow = self.in_shadow(policy)
        shadow.play(events_until(tiny_campus_events(), _CUT_S), _CUT_S)
        expect(instrumented.calls_n > 0, "the policy was never asked")
        return shadow, instrumented

    def _saved_run(self) -> SavedRun:
        """Return a run that was saved at the cut and continued; it is shared by a suite's tests."""
        suite = type(self)
        if suite not in _saved_runs:
            shadow, instrumented = self._run_to_cut()
            policy, site = shadow.policy, shadow.site
            snapshot, decided_n = shadow.save(), len(shadow.rows)
            cluster_names = list(site.cluster_names)
            at_cut = _scores(policy, instrumented.keys, site)
            shadow.play(events_after(tiny_campus_events(), _CUT_S), SPAN_S)
            at_end = _scores(policy, instrumented.keys, site)
            _saved_runs[suite] = SavedRun(
                snapshot, cluster_names, at_cut, shadow.rows[decided_n:], at_end
            )
        return _saved_runs[suite]


_saved_runs: dict[type[LearningTests], SavedRun] = {}


def _scores(policy: Policy, keys: Iterable[Hashable], site: Site) -> _Scores:
    return {key: dict(policy.scores(key, site)) for key in keys}


def _expect_equal_scores(got: _Scores, wanted: _Scores, when: str) -> None:
    for key, scores in wanted.items():
        for name, score in scores.items():
            now = got[key].get(name)
            same = now is not None and isclose(now, score, rel_tol=1e-9, abs_tol=1e-12)
            expect(
                same,
                f"{when}: the score of {name!r} for jobs like {key!r} is {now!r} instead of "
                f"{score!r}",
            )


# -- policies --------------------------------------------------------------------------------------


class PolicyConformance(DecisionTests, PlacementTests, PropensityTests, LearningTests):
    """Contract of every policy, as tests. Subclass it, name it ``Test...`` and set the policy.

    ::

        class TestCoolestRoom(PolicyConformance):
            policy = CoolestRoom

    Class variables:
        policy: the class under test.
        settings: settings to build it with, besides its defaults.
    """


def check_policy(
    policy_type: type[Policy], settings: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Run all tests on a policy.

    Args:
        policy_type: the class under test.
        settings: settings to build it with, besides its defaults.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every failed test, with the cause.
    """
    suite = type(
        policy_type.__name__,
        (PolicyConformance,),
        {"policy": policy_type, "settings": dict(settings or {})},
    )
    return run_all_tests(suite())
