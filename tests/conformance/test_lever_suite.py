"""Tests of the lever suite: it passes a sound lever and catches every breach of contract."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from outrider.api import DecisionRow, Lever
from outrider.testing import LeverHarness, NotConforming, check_lever


class Queue:
    """Batch system with marks that expire."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.jobs = {"1", "2"}
        self.marks: dict[str, float] = {}


class Sound(Lever):
    """Lever that marks a job for a minute."""

    name = "mark"
    description = "marks a job"
    actions: ClassVar[tuple[str, ...]] = ("start",)
    lease_s = 60.0
    adapter: Queue

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        refused = {}
        for decision in decisions:
            if decision.job in self.adapter.jobs:
                self.mark(decision.job)
            else:
                refused[decision.job] = "it has left"
        return refused

    def mark(self, job: str) -> None:
        self.adapter.marks[job] = self.adapter.now_s + self.lease_s

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        for job in jobs:
            self.adapter.marks.pop(job, None)
        return {}

    def withdraw_all(self) -> int:
        mine = [job for job, until_s in self.adapter.marks.items() if until_s < float("inf")]
        self.withdraw(mine)
        return len(mine)


class DoesNothing(Sound):
    def mark(self, job: str) -> None:
        """Do nothing, against the contract."""


class NeverLapses(Sound):
    def mark(self, job: str) -> None:
        self.adapter.marks[job] = float("inf")


class LapsesEarly(Sound):
    def mark(self, job: str) -> None:
        self.adapter.marks[job] = self.adapter.now_s + 30.0


class DoesNotRenew(Sound):
    def mark(self, job: str) -> None:
        self.adapter.marks.setdefault(job, self.adapter.now_s + self.lease_s)


class WithdrawsOnlyItsOwn(Sound):
    def __init__(self, adapter: Queue) -> None:
        super().__init__(adapter)
        self.mine: set[str] = set()

    def mark(self, job: str) -> None:
        super().mark(job)
        self.mine.add(job)

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        return super().withdraw([job for job in jobs if job in self.mine])


class WithdrawsEverything(Sound):
    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        self.adapter.marks.clear()
        return {}


class FailsWhereNothingIs(Sound):
    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        for job in jobs:
            del self.adapter.marks[job]
        return {}


class RemembersWhatItChanged(Sound):
    def withdraw_all(self) -> int:
        return 0


class SpoiledByOne(Sound):
    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        if any(decision.job not in self.adapter.jobs for decision in decisions):
            return {decision.job: "one has left" for decision in decisions}
        return super().apply(decisions)


class KeepsRefusalsToItself(Sound):
    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        super().apply(decisions)
        return {}


class CarriesNothing(Sound):
    actions = ()


class QueueHarness(LeverHarness):
    """Harness of a queue in which another user marked job 1."""

    def __init__(self, kind: type[Sound]) -> None:
        self.kind = kind
        self.queue = Queue()
        self.queue.marks["1"] = float("inf")

    def lever(self) -> Lever:
        return self.kind(self.queue)

    def decision(self) -> DecisionRow:
        return DecisionRow(0.0, "2", "start", "m1", 1, "best", "fifo", "active", gate="act")

    def seen(self) -> list[str]:
        return [job for job, until_s in self.queue.marks.items() if self.queue.now_s < until_s]

    gone = "9"

    def wait(self, seconds: float) -> None:
        self.queue.now_s += seconds


def test_a_sound_lever_passes_everything() -> None:
    answers = check_lever(lambda: QueueHarness(Sound))
    assert set(answers.values()) == {"passed"}
    assert len(answers) == 7


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (DoesNothing, "apply changed nothing"),
        (NeverLapses, r"60 s after apply the batch system shows \['1', '2'\] instead of \['1'\]"),
        (LapsesEarly, "the change did not last for 60 s"),
        (DoesNotRenew, "the second apply did not renew the lease"),
        (WithdrawsOnlyItsOwn, r"after withdraw the batch system shows \['1', '2'\]"),
        (WithdrawsEverything, r"after withdraw alone the batch system shows \[\]"),
        (FailsWhereNothingIs, "KeyError: '2'"),
        (RemembersWhatItChanged, "after withdraw_all the batch system shows"),
        (SpoiledByOne, "apply with a job that is gone changed nothing"),
        (KeepsRefusalsToItself, r"refused: \{\}"),
        (CarriesNothing, r"CarriesNothing.actions is \(\): expected a tuple"),
    ],
)
def test_a_broken_lever_gets_its_breach_reported(kind: type[Sound], message: str) -> None:
    with pytest.raises(NotConforming, match=message):
        check_lever(lambda: QueueHarness(kind))
