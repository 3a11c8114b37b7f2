"""Tests of policies: declarations, determinism, valid decisions, and no use of the future."""

import random
import unittest
from collections.abc import Iterable
from typing import Any, Final

from outrider.api.capabilities import Predicts
from outrider.api.policy import PolicySettings
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import Job
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import POLICIES
from outrider.testing.campuses import DAY_S, tiny_campus
from outrider.testing.conformance import check_identity, check_settings, expect
from outrider.testing.fixtures import decisions_of, events_until, incumbent, plans
from outrider.testing.instrumented_policy import (
    InstrumentedPolicy,
    check_prediction,
)
from outrider.testing.policy_under_test import PolicyUnderTest, tiny_campus_events

FORK_S: Final = 1.5 * DAY_S


class DecisionTests(PolicyUnderTest):
    """Tests of declarations and decisions."""

    def test_it_says_what_it_is(self) -> None:
        """Class variables exist and have the right types."""
        kind = self.policy
        check_identity(kind, POLICIES)
        words = isinstance(kind.features, tuple) and all(isinstance(w, str) for w in kind.features)
        expect(words, f"features must be a tuple of words: {kind.features!r}")
        expect(isinstance(kind.needs_oracle, bool), "needs_oracle must be True or False")
        made = self.make()
        for name, value in (("reconsider_s", made.reconsider_s), ("max_defer_s", made.max_defer_s)):
            positive = isinstance(value, (int, float)) and value > 0
            expect(
                positive or (value is None and name == "reconsider_s"),
                f"{name} must be seconds above 0: {value!r}",
            )

    def test_every_setting_tells_its_unit_and_purpose(self) -> None:
        """Settings have units in their names, descriptions, and defaults that are allowed."""
        check_settings(self.policy.settings_type, PolicySettings, self.settings)

    def test_every_preset_can_be_built(self) -> None:
        """A preset names known settings and allowed values."""
        for preset, given in self.policy.presets.items():
            check_settings(self.policy.settings_type, PolicySettings, {**self.settings, **given})
            expect(preset.isidentifier(), f"preset {preset!r}: expected one word")

    def test_the_same_seed_gives_the_same_ledger(self) -> None:
        """Use no randomness but the passed generator, no clock, and no state of an earlier run."""
        campus = tiny_campus()
        first = self.plain_run()
        random.seed(2)
        _expect_same(decisions_of(campus, self.make()), first, "a second run with the same seed")
        expect(first != [], "the policy decided nothing at all on a campus of 150 jobs")

    def test_another_policy_in_the_same_run_changes_nothing(self) -> None:
        """Share nothing through the class: a second policy of the same kind changes nothing."""
        campus = tiny_campus()
        twin = self.make(seed=1)
        vars(twin)["name"] = "twin"
        _expect_same(
            decisions_of(campus, self.make(), [incumbent(), twin]),
            self.plain_run(),
            "a run with others in shadow",
        )

    def test_every_choice_is_a_free_machine_or_the_queue(self) -> None:
        """Check choices or plans, scores and rewards in a whole run, for two campuses."""
        for seed in (0, 1):
            counts = self.instrumented_run(seed).counts
            expect(counts.calls_n > 0, "the policy was never predicted")
            expect(counts.moves_n > 0 or not plans(counts.policy), "no plan ever moved a job")

    def test_it_starts_a_job_that_may_not_be_kept(self) -> None:
        """Check that the policy itself obeys ``may_defer=False``, not only the engine's guard."""
        policy = self.make()
        if plans(policy):
            raise unittest.SkipTest("it plans whole passes: it gets no job that must start")
        instrumented = InstrumentedPolicy(policy, insist=True)
        decisions_of(tiny_campus(), policy)
        expect(instrumented.deferred_n == 0, "deferred a job although may_defer is False")

    def test_it_explains_each_job_in_one_sentence(self) -> None:
        """Call `explain` and `scores` for every job, also before anything was learned."""
        unexplained = self.instrumented_run().unexplained
        if unexplained is not None:
            raise unexplained

    def test_it_predicts_what_can_be_and_predicting_changes_nothing(self) -> None:
        """`predict` returns a probability and a length, and may be called at any time."""

        def look(job: Job, site: Site) -> None:
            if not isinstance(policy, Predicts) or not site.free_total:  # full, after a plan
                return
            machine = site.longest_free()
            check_prediction(policy.predict(job, machine, site), f"at {site.now:g} s")

        policy = self.make()
        if not isinstance(policy, Predicts):
            raise unittest.SkipTest("it does not predict")
        campus = tiny_campus()
        InstrumentedPolicy(policy, look=look)
        predicted = decisions_of(campus, policy)
        _expect_same(predicted, self.plain_run(), "a run with predictions")

    def test_it_cannot_see_the_future(self) -> None:
        """Decide two campuses the same until the moment from which they differ."""
        plain = self.plain_run()
        forked = decisions_of(tiny_campus(fork_s=FORK_S), self.make())
        past = _until(plain, FORK_S)
        _expect_same(_until(forked, FORK_S), past, "a campus whose future differs")
        expect(plain != forked, "both campuses were decided the same to the end: no difference?")
        cut = decisions_of(tiny_campus(), self.make(), until_s=FORK_S)
        _expect_same(_until(cut, FORK_S), past, "a run that stops there")

    def test_watts_may_be_unknown(self) -> None:
        """Hide the watts of some machines, and of all."""
        events = events_until(tiny_campus_events(), FORK_S)
        for hidden in (("cellar",), ("attic", "cellar", "library")):
            policy = self.make()
            instrumented = InstrumentedPolicy(policy)
            self.in_shadow(policy).play(_without_watts(events, hidden), FORK_S)
            expect(instrumented.calls_n > 0, "the policy was never predicted")

    def test_machines_and_clusters_may_come_and_go(self) -> None:
        """A new cluster appears, a machine moves into it, a cluster becomes empty."""
        events = tiny_campus_events()
        policy = self.make()
        instrumented = InstrumentedPolicy(policy)
        shadow = self.in_shadow(policy)
        shadow.play(events_until(events, FORK_S), FORK_S)
        calls_n = instrumented.calls_n
        moves: list[NamedEvent] = [
            *((FORK_S, ev.JOINED, f"tower-{n}", MachineSpec(cluster="tower")) for n in range(3)),
            (FORK_S, ev.JOINED, "attic-0", MachineSpec(cluster="tower", active_w=90.0)),
            *((FORK_S, ev.LEFT, f"library-{n}", None) for n in (9, 10, 11)),
        ]
        later = [event for event in events if event[0] > FORK_S]
        shadow.play(moves + [e for e in later if not _is_at_library(e)])
        expect(instrumented.calls_n > calls_n, "the policy was not predicted again")
        expect("tower" in shadow.site.cluster_names, "no cluster appeared")


def _until(rows: Iterable[Any], time_s: float) -> list[Any]:
    return [row for row in rows if row.time_s < time_s]


def _expect_same(got: list[Any], wanted: list[Any], name: str) -> None:
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        expect(one == other, f"{name} differs in decision {number}: {one} instead of {other}")
    expect(len(got) == len(wanted), f"{name} has {len(got)} decisions instead of {len(wanted)}")


def _without_watts(events: Iterable[NamedEvent], clusters: tuple[str, ...]) -> list[NamedEvent]:
    return [
        (time_s, kind, subject, MachineSpec(cluster=extra.cluster))
        if kind == ev.JOINED and extra.cluster in clusters
        else (time_s, kind, subject, extra)
        for time_s, kind, subject, extra in events
    ]


def _is_at_library(event: NamedEvent) -> bool:
    _, kind, subject, extra = event
    machine = extra[0] if kind == ev.STARTED else subject
    return machine.startswith("library-")
