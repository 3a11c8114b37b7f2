"""Conformance suite of levers: the tests that every lever has to pass."""

from collections.abc import Callable
from typing import Any

import msgspec

from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow
from outrider.testing.conformance import check_lease, check_lever_declaration, expect, run_all_tests

_MOST_OF_LEASE = 0.75


class LeverHarness:
    """Batch system with a job in its queue, and a lever on it."""

    def lever(self) -> Lever:
        """Return a lever; each time a new one, as after a restart of the daemon."""
        raise NotImplementedError

    def decision(self) -> DecisionRow:
        """Return a decision for the job that the lever can apply."""
        raise NotImplementedError

    def seen(self) -> Any:
        """Return what the batch system would do with its jobs now, as comparable data.

        The result describes effects, not stored notes: an expired note that the batch system
        ignores is not part of it.
        """
        raise NotImplementedError

    @property
    def gone(self) -> str:
        """Name of a job that has left the queue."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Let time pass in the batch system; for a real one: sleep."""
        raise NotImplementedError

    def close(self) -> None:
        """Remove everything that was created. Called after each test."""


class LeverConformance:
    """Contract of every lever, as tests. Subclass it, name it ``Test...``, and add a harness."""

    def harness(self) -> LeverHarness:
        """Return a new batch system. Called once for each test."""
        raise NotImplementedError

    def test_it_says_what_it_is(self) -> None:
        """Check the name, the description, the actions, and how long a change lasts."""

        def ask(harness: LeverHarness) -> None:
            lever = harness.lever()
            check_lever_declaration(type(lever))
            check_lease(lever)
            lever.close()

        self._run(ask)

    def test_a_change_lasts_for_its_lease_and_lapses_by_itself(self) -> None:
        """Nothing is called after `apply`, as if the daemon had been killed."""

        def ask(harness: LeverHarness) -> None:
            before, changed = _applied(harness)
            lease_s = harness.lever().lease_s
            harness.wait(_MOST_OF_LEASE * lease_s)
            expect(harness.seen() == changed, f"the change did not last for {lease_s:g} s")
            harness.wait((1.0 - _MOST_OF_LEASE) * lease_s)
            _expect_as_before(harness, before, f"{lease_s:g} s after apply")

        self._run(ask)

    def test_applying_it_again_renews_the_lease(self) -> None:
        """The same decision a second time changes nothing else, and restarts the lease."""

        def ask(harness: LeverHarness) -> None:
            before, changed = _applied(harness)
            lease_s = harness.lever().lease_s
            harness.wait(_MOST_OF_LEASE * lease_s)
            _apply(harness)
            expect(harness.seen() == changed, f"applied twice: {harness.seen()!r}")
            harness.wait(_MOST_OF_LEASE * lease_s)
            expect(harness.seen() == changed, "the second apply did not renew the lease")
            harness.wait((1.0 - _MOST_OF_LEASE) * lease_s)
            _expect_as_before(harness, before, f"{lease_s:g} s after the second apply")

        self._run(ask)

    def test_withdrawing_gives_back_what_was(self) -> None:
        """Revert immediately, also by a lever after a restart; a second time changes nothing."""

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
        """Revert everything, also by a new lever after a restart; the second time it returns 0."""

        def ask(harness: LeverHarness) -> None:
            before, _ = _applied(harness)
            for n, when in ((1, "after withdraw_all"), (0, "after a second withdraw_all")):
                lever = harness.lever()
                withdrawn = lever.withdraw_all()
                lever.close()
                _expect_as_before(harness, before, when)
                expect(withdrawn == n, f"withdraw_all returned {withdrawn!r}; expected {n}")

        self._run(ask)

    def test_a_job_that_is_not_there_spoils_nothing_for_the_others(self) -> None:
        """Refuse a job that has left while its decision was on its way, and apply the others."""

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
        make_harness: returns a new harness for each test.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every failed test, with the cause.
    """
    suite = LeverConformance()
    vars(suite)["harness"] = make_harness
    return run_all_tests(suite)


def _applied(harness: LeverHarness) -> tuple[Any, Any]:
    """Return what is seen before and after the decision is applied."""
    before = harness.seen()
    _apply(harness)
    changed = harness.seen()
    expect(changed != before, f"apply changed nothing: {before!r} before and after")
    return before, changed


def _apply(harness: LeverHarness) -> None:
    """Apply the decision, by a separate lever."""
    lever = harness.lever()
    refused = lever.apply([harness.decision()])
    lever.close()
    expect(not refused, f"apply reported a refusal: {dict(refused)!r}")


def _withdraw(harness: LeverHarness) -> None:
    """Revert the decision, by a separate lever."""
    lever = harness.lever()
    refused = lever.withdraw([harness.decision().job])
    lever.close()
    expect(not refused, f"withdraw reported a refusal: {dict(refused)!r}")


def _expect_as_before(harness: LeverHarness, before: Any, when: str) -> None:
    now = harness.seen()
    expect(now == before, f"{when} the batch system shows {now!r} instead of {before!r}")
