"""Batches of job updates: equal ones together, and at a limited rate."""

import re
from collections.abc import Sequence

import pytest

from outrider_adapters.noted_changes import GivenUpError, Pace
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.job_updates import ENDED, Edit, JobUpdates

LATER = Edit(begin_s=1_000)


class Desk:
    """Recorder of updates, with a separate clock on which they take no time."""

    def __init__(self, per_s: float = 100.0) -> None:
        self.now_s = 0.0
        self.taken: list[tuple[float, Edit, list[str]]] = []
        self.says: dict[str, str] = {}
        self.forbidden = ""
        pace = Pace(per_s, lambda: self.now_s, self._wait)
        self.updates = JobUpdates(self, pace, lambda: self.forbidden)
        self.ends_at_s = float("inf")

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        self.taken.append((self.now_s, edit, list(jobs)))
        for job in jobs:
            if job in self.says:
                raise CommandError(self.says[job])

    def renew_fence(self, number: int, until_s: int) -> None:
        raise NotImplementedError

    def _wait(self, seconds: float) -> bool:
        self.now_s += seconds
        return self.now_s >= self.ends_at_s


def jobs(n: int) -> list[str]:
    return [str(number) for number in range(1, n + 1)]


def test_within_any_second_there_are_no_more_than_was_said() -> None:
    desk = Desk(per_s=100.0)
    assert desk.updates.make(dict.fromkeys(jobs(1_000), LATER)) == ""
    assert [job for _, _, some in desk.taken for job in some] == jobs(1_000)
    for at_s, _, _ in desk.taken:
        within = (len(some) for s, _, some in desk.taken if at_s <= s < at_s + 0.999)
        assert sum(within) <= 100
    assert 9.0 <= desk.now_s <= 10.0
    desk.updates.make({"1001": LATER})
    assert desk.taken[-1][0] >= 10.0 - 0.5, "the next call waits for the last one's turn"


def test_alike_edits_share_a_command_and_tasks_of_an_array_a_word() -> None:
    desk = Desk()
    both = Edit(begin_s=1_000, site_factor=5)
    desk.updates.make({"7": LATER, "8_1": both, "8_2": both, "9": LATER, "8_3": both})
    assert [(edit, some) for _, edit, some in desk.taken] == [
        (LATER, ["7", "9"]),
        (both, ["8_[1-3]"]),
    ]
    assert both.words() == ["StartTime=uts1000", "SiteFactor=5"]


@pytest.mark.parametrize(
    "silence",
    [
        "scontrol did not answer within 10 s",
        "scontrol: slurm_update error: Unable to contact slurm controller (receive failure)",
        "scontrol: Unexpected message received for job 1",
        "scontrol: slurm_update error: Zero Bytes were transmitted or received",
        "scontrol: slurm_update error: Socket timed out on send/recv operation",
    ],
)
def test_a_refusal_of_one_holds_nobody_up_and_silence_ends_it(silence: str) -> None:
    desk = Desk(per_s=4.0)
    desk.says = {"1": "scontrol: Invalid job id specified for job 1"}
    assert desk.updates.make(dict.fromkeys(jobs(6), LATER)) == desk.says["1"]
    assert len(desk.taken) == 3
    desk.says = {"1": silence}
    with pytest.raises(GivenUpError, match=re.escape(silence)):
        desk.updates.make(dict.fromkeys(jobs(6), LATER))
    assert len(desk.taken) == 4, "nobody is asked who does not answer"


def test_a_daemon_that_ends_gives_up_what_it_changes_and_not_what_it_takes_back() -> None:
    desk = Desk(per_s=4.0)
    desk.ends_at_s = 0.5
    with pytest.raises(GivenUpError, match=ENDED):
        desk.updates.make(dict.fromkeys(jobs(6), LATER))
    assert len(desk.taken) == 1
    assert desk.updates.make(dict.fromkeys(jobs(6), LATER), reverts=True) == ""
    assert len(desk.taken) == 1 + 3


def test_what_is_forbidden_meanwhile_is_not_done() -> None:
    desk = Desk()
    desk.forbidden = "the fence has lapsed"
    with pytest.raises(GivenUpError, match="the fence has lapsed"):
        desk.updates.make({"1": LATER})
    assert not desk.taken
    assert desk.updates.make({"1": LATER}, reverts=True) == ""
