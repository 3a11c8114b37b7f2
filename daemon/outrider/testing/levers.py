"""The conformance suite of levers."""

from collections.abc import Callable
from typing import Any

from outrider.api.lever import Lever
from outrider.model.decisions import DecisionRow
from outrider.testing.conformance import expect, run_all_tests
from outrider.testing.lever_declarations import check_lever_declaration

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
        self._run(lambda harness: check_lever_declaration(type(harness.lever())))

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
            harness.lever().apply(harness.decision())
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
                harness.lever().withdraw(harness.decision().job)
                _expect_as_before(harness, before, "after withdraw")

        self._run(ask)

    def test_withdrawing_where_nothing_was_changed_changes_nothing(self) -> None:
        """A withdrawal may come for a job that the lever never changed."""

        def ask(harness: LeverHarness) -> None:
            before = harness.seen()
            harness.lever().withdraw(harness.decision().job)
            _expect_as_before(harness, before, "after withdraw alone")

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
    harness.lever().apply(harness.decision())
    changed = harness.seen()
    expect(changed != before, f"apply changed nothing: {before!r} before and after")
    return before, changed


def _expect_as_before(harness: LeverHarness, before: Any, when: str) -> None:
    now = harness.seen()
    expect(now == before, f"{when} the batch system shows {now!r} instead of {before!r}")
