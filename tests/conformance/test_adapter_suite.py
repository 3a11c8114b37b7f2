"""Tests of the adapter suite: it passes a sound adapter and catches every breach of contract."""

import unittest

import pytest

from outrider.testing import AdapterConformance, AdapterHarness, NotConforming, check_adapter
from tests.conformance import broken_adapters as broken


@pytest.mark.parametrize("kind", [broken.Sound, broken.HasALever])
def test_a_sound_adapter_passes_everything(kind: type[broken.Sound]) -> None:
    answers = check_adapter(lambda: broken.ListHarness(kind))
    assert set(answers.values()) == {"passed"}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (broken.NamesAStateThatIsNone, "state_words contains .'asleep'.; known: held, queued"),
        (broken.HasNoWordForAState, "state_words contains '': expected 1 to 40 letters"),
        (broken.BeginsAnewAtARestart, "resumed after event 3 of 9: event 1 is"),
        (broken.RemembersBetterThanItsCursor, "entered_again: NotConforming: 0 of 3 events came"),
        (broken.SkipsOneAtARestart, "test_it_resumes_from_every_cursor: .* 5 of 6 events came"),
        (broken.TellsTheFirstEventTwice, "test_every_event_comes_once: .*7 events came instead of"),
        (broken.HasACursorOfItsOwn, "the cursor <object .*> is not plain data"),
        (broken.SeesMoreThanItSays, "'started' came, which `sees` lacks"),
        (broken.StartsJobsNowhere, "the extra of 'started' must be .name of the machine, CPUs"),
        (broken.LivesOutsideTime, "the time must be a finite number of seconds"),
        (broken.IsSilentWhenNothingHappens, "0 batches, not 2, within 0.3 s of silence"),
        (broken.Ends, "expected batches without end"),
        (broken.FailsWithoutItsSource, "test_a_source_that_is_gone.*: FileNotFoundError: the list"),
        (broken.NeverAges, "age_s did not grow while the source was away"),
        (broken.TakesBackWhatItSaw, "seen_until_s decreases"),
        (broken.LeavesATask, "tasks that outlive the adapter: forgotten"),
        (broken.LeavesAThread, "threads that outlive the adapter: forgotten-thread"),
        (broken.HasAHiddenLever, "undeclared levers: preempt"),
        (broken.HasTwoLeversForOneAction, '"nudge" and "shove" both execute "start"; expected'),
        (broken.HasALeverThatDoesNotLapse, "nudge.lease_s is inf: expected seconds"),
        (broken.HasALeverForNothing, r"Explodes.actions is \('start', 'explode'\): expected"),
        (broken.NamesItsLevers, "levers must be subclasses of outrider.api.Lever: 'start'"),
        (
            broken.ExplainsInWords,
            "waiting_reason returned 'it is busy', not a WaitingReason or None",
        ),
        (broken.ExplainsEveryJob, "waiting_reason answered for an unknown job"),
        (broken.NeverExplains, "waiting_reason did not answer within"),
        (broken.SeesWhatDoesNotExist, r"sees contains \['exploded'\]; known: asleep, "),
    ],
)
def test_a_broken_adapter_gets_its_breach_reported(kind: type[broken.Sound], message: str) -> None:
    with pytest.raises(NotConforming, match=message):
        check_adapter(lambda: broken.ListHarness(kind))


def test_what_cannot_be_taken_away_is_not_asked_for() -> None:
    class Fixed(broken.ListHarness):
        take_away = AdapterHarness.take_away

    answers = check_adapter(lambda: Fixed(broken.Sound))
    result = answers["test_a_source_that_is_gone_only_grows_old"]
    assert result == "does not apply: this source cannot be taken away"


def test_any_runner_that_knows_test_methods_will_do() -> None:
    class WithUnittest(AdapterConformance, unittest.TestCase):
        def harness(self) -> AdapterHarness:
            return broken.ListHarness(broken.NeverAges)

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(WithUnittest)
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun == 12
    ((case, trace),) = result.failures + result.errors
    assert case.id().endswith("test_a_source_that_is_gone_only_grows_old")
    assert "age_s did not grow" in trace
