"""The conformance suite of levers."""

from collections.abc import Callable
from typing import Any

import msgspec

from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow
from outrider.testing.conformance import check_lease, check_lever_declaration, expect, run_all_tests

_MOST_OF_IT = 0.75


class LeverHarness:
    """A batch system with a job in its queue, and a lever on it."""

    def lever(self) -> Lever:
        """The lever; each time a new one, as after a restart of the daemon."""
        raise NotImplementedError

    def decision(self) -> DecisionRow:
        """A decision that the lever carries out, for the job."""
        raise NotImplementedError

    def seen(self) -> Any:
        """What the batch system would do with its jobs now, as data that can be compared.

        What it goes by, not what is written somewhere: a note that it ignores since its time is
        over is not seen.
        """
        raise NotImplementedError

    @property
    def gone(self) -> str:
        """The name of a job that has left the queue."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Let time pass in the batch system; a real one: sleep."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove everything that was made. Called after each test."""


class LeverConformance:
    """The contract of every lever. Subclass it, name it ``Test...``, and give it a harness."""

    def harness(self) -> LeverHarness:
        """A new batch system. Called once for each test."""
        raise NotImplementedError

    def test_it_says_what_it_is(self) -> None:
        """Name, description, the actions it carries, and for how long a change lasts."""

        def ask(harness: LeverHarness) -> None:
            lever = harness.lever()
            check_lever_declaration(type(lever))
            check_lease(lever)
            lever.close()

        self._run(ask)

    def test_a_change_lasts_for_its_lease_and_lapses_by_itself(self) -> None:
        """Nothing is called any more after `apply`, as if the daemon had been killed."""

        def ask(harness: LeverHarness) -> None:
            before, changed = _applied(harness)
            lease_s = harness.lever().lease_s
            harness.wait(_MOST_OF_IT * lease_s)
            expect(harness.seen() == changed, f"the change did not last for {lease_s:g} s")
            harness.wait((1.0 - _MOST_OF_IT) * lease_s)
            _expect_as_before(harness, before, f"{lease_s:g} s after apply")

        self._run(ask)

    def test_applying_it_again_renews_the_lease(self) -> None:
        """The same decision a second time changes nothing else, and lasts from then."""

        def ask(harness: LeverHarness) -> None:
            before, changed = _applied(harness)
            lease_s = harness.lever().lease_s
            harness.wait(_MOST_OF_IT * lease_s)
            _apply(harness)
            expect(harness.seen() == changed, f"applied twice: {harness.seen()!r}")
            harness.wait(_MOST_OF_IT * lease_s)
            expect(harness.seen() == changed, "the second apply did not renew the lease")
            harness.wait((1.0 - _MOST_OF_IT) * lease_s)
            _expect_as_before(harness, before, f"{lease_s:g} s after the second apply")

        self._run(ask)

    def test_withdrawing_gives_back_what_was(self) -> None:
        """At once, also by a lever made after a restart; a second time changes nothing."""

        def ask(harness: LeverHarness) -> None:
            before, _ = _applied(harness)
            for _ in range(2):
                _withdraw(harness)
                _expect_as_before(harness, before, "after withdraw")

        self._run(ask)

    def test_withdrawing_where_nothing_was_changed_changes_nothing(self) -> None:
        """A withdrawal may come for a job that the lever never changed."""

        def ask(harness: LeverHarness) -> None:
            before = harness.seen()
            _withdraw(harness)
            _expect_as_before(harness, before, "after withdraw alone")

        self._run(ask)

    def test_everything_can_be_withdrawn_at_once(self) -> None:
        """Also by a lever made after a restart, which knows of nothing; and then it says 0."""

        def ask(harness: LeverHarness) -> None:
            before, _ = _applied(harness)
            for n, when in ((1, "after withdraw_all"), (0, "after a second withdraw_all")):
                lever = harness.lever()
                said = lever.withdraw_all()
                lever.close()
                _expect_as_before(harness, before, when)
                expect(said == n, f"withdraw_all says {said!r}; expected {n}")

        self._run(ask)

    def test_a_job_that_is_not_there_spoils_nothing_for_the_others(self) -> None:
        """Jobs leave while decisions are on their way: such a one is refused, the rest is done."""

        def ask(harness: LeverHarness) -> None:
            before = harness.seen()
            decision = harness.decision()
            gone = msgspec.structs.replace(decision, job=harness.gone)
            lever = harness.lever()
            refused = lever.apply([gone, decision])
            lever.close()
            expect(harness.seen() != before, "apply with a job that is gone changed nothing")
            expect(set(refused) == {harness.gone}, f"refused: {dict(refused)!r}")

        self._run(ask)

    def _run(self, ask: Callable[[LeverHarness], None]) -> None:
        harness = self.harness()
        try:
            ask(harness)
        finally:
            harness.close()


def check_lever(make_harness: Callable[[], LeverHarness]) -> dict[str, str]:
    """Run all tests on a lever.

    Args:
        make_harness: makes a new harness for each test.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every test that failed, and why.
    """
    suite = LeverConformance()
    vars(suite)["harness"] = make_harness
    return run_all_tests(suite)


def _applied(harness: LeverHarness) -> tuple[Any, Any]:
    """What is seen before and after the decision is applied."""
    before = harness.seen()
    _apply(harness)
    changed = harness.seen()
    expect(changed != before, f"apply changed nothing: {before!r} before and after")
    return before, changed


def _apply(harness: LeverHarness) -> None:
    """Carry the decision out, by a lever of its own."""
    lever = harness.lever()
    refused = lever.apply([harness.decision()])
    lever.close()
    expect(not refused, f"apply says that it was refused: {dict(refused)!r}")


def _withdraw(harness: LeverHarness) -> None:
    """Take it back, by a lever of its own."""
    lever = harness.lever()
    refused = lever.withdraw([harness.decision().job])
    lever.close()
    expect(not refused, f"withdraw says that it was refused: {dict(refused)!r}")


def _expect_as_before(harness: LeverHarness, before: Any, when: str) -> None:
    now = harness.seen()
    expect(now == before, f"{when} the batch system shows {now!r} instead of {before!r}")
