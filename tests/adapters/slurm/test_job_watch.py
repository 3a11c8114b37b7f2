"""Events of two looks at the queue, in cases that a real Slurm cannot be made to show."""

from typing import Any

from outrider.api import NamedEvent, UndoLog, events
from outrider_adapters.slurm.eligibility import Eligibility
from outrider_adapters.slurm.job_watch import JobWatch
from tests.adapters.slurm.rows import line
from tests.adapters.slurm.test_nodes import node


class Looks:
    """Watch, and looks at queues made by hand.

    Attributes:
        gone: ids of jobs that the accounting was asked for.
    """

    def __init__(self) -> None:
        self.eligibility = Eligibility()
        self.watch = JobWatch("c", self.eligibility, UndoLog())
        self.gone: list[str] = []
        self.now_s = 2_000.0

    def look(self, *lines: str, excluded: str = "", gapless: bool = True) -> list[tuple[str, ...]]:
        """Look ten seconds later, and return kind, job and extra of the events."""
        self.now_s += 10
        reported = self.watch.look(
            lines, {"7": excluded}, self.now_s, self._ends, leaves_out_ended=False, gapless=gapless
        )
        assert all(time_s <= self.now_s for time_s, *_ in reported)
        return [_shown(event) for event in reported]

    def _ends(self, jobs: list[str]) -> list[NamedEvent]:
        self.gone += jobs
        return [(self.now_s, events.REMOVED, self.watch.name_of(job), "unknown") for job in jobs]


def _shown(event: NamedEvent) -> tuple[str, ...]:
    _, kind, job, extra = event
    plain: list[Any] = [extra] if isinstance(extra, str) else []
    return (events.KIND_NAMES[kind], job.removeprefix("c:"), *plain)


RUNS = {"State": "RUNNING", "StartTime": "1990", "EndTime": "5590", "NodeList": "n1"}


def test_what_does_not_change_tells_nothing() -> None:
    looks = Looks()
    assert looks.look(line()) == [("submitted", "7")]
    assert looks.look(line()) == []


def test_a_task_that_leaves_its_array_unseen_was_cancelled() -> None:
    looks = Looks()
    looks.look(line(JobArrayID="7_[1-3%1]"))
    assert looks.look(line(JobArrayID="7_[1,3%1]")) == [("removed", "7_2", "removed")]
    assert not looks.gone


def test_after_a_gap_the_accounting_is_asked_for_those_that_left() -> None:
    looks = Looks()
    looks.look(line(JobArrayID="7_[1-2]"))
    reported = looks.look(gapless=False)
    assert reported == [("removed", "7_1", "unknown"), ("removed", "7_2", "unknown")]
    assert looks.gone == ["7_1", "7_2"]


def test_a_run_that_left_unseen_is_asked_for_even_without_a_gap() -> None:
    looks = Looks()
    looks.look(line(**RUNS))
    looks.look()
    assert looks.gone == ["7"]


def test_nothing_is_forgotten_where_the_accounting_fails() -> None:
    looks = Looks()
    looks.look(line(**RUNS), line(JobArrayID="8"))

    def fails(_: list[str]) -> list[NamedEvent]:
        raise RuntimeError

    for _ in range(2):
        try:
            looks.watch.look([], {}, 2_020.0, fails, leaves_out_ended=False, gapless=True)
        except RuntimeError:
            pass
        else:
            raise AssertionError("the failure is the caller's to tell")
    assert sorted(looks.look()) == [("removed", "7", "unknown"), ("removed", "8", "removed")]


def test_a_number_that_a_controller_gives_out_again_is_another_job() -> None:
    looks = Looks()
    looks.look(line(**RUNS))
    again = line(SubmitTime="2010", EligibleTime="2010")
    assert looks.look(again) == [("removed", "7", "unknown"), ("submitted", "7")]


def test_a_job_is_queued_again_after_its_end() -> None:
    looks = Looks()
    looks.look(line(**RUNS | {"State": "COMPLETED", "EndTime": "1995"}))
    again = line(SubmitTime="2010", EligibleTime="2010", RestartCnt="1")
    assert looks.look(again) == [("submitted", "7")]


def test_a_job_that_is_cleared_to_be_queued_again_tells_nothing_yet() -> None:
    looks = Looks()
    looks.look(line(**RUNS))
    clearing = RUNS | {"State": "COMPLETING", "StartTime": "2015", "RestartCnt": "1"}
    assert looks.look(line(**clearing)) == []
    queued = line(SubmitTime="2016", EligibleTime="2136", RestartCnt="1", Reason="BeginTime")
    assert looks.look(queued) == [("evicted", "7", "unknown"), ("held", "7", "BeginTime")]


def test_a_job_whose_node_does_not_boot_has_not_run() -> None:
    configuring = RUNS | {"State": "CONFIGURING"}
    again = line(SubmitTime="2016", EligibleTime="2136", RestartCnt="1", Reason="BeginTime")
    for state, between, reason in (
        ("IDLE+CLOUD+POWERED_DOWN", [], "failed_start"),
        ("MIXED+NOT_RESPONDING+POWERING_UP", [], "failed_start"),
        ("IDLE+CLOUD+POWERED_DOWN", [line(**RUNS)], "unknown"),  # it has booted
        ("ALLOCATED", [], "unknown"),  # a prolog
    ):
        looks = Looks()
        looks.eligibility.know({"n1": node(state)}, {}, {})
        assert looks.look(line(**configuring))[-1] == ("started", "7")
        for one in between:
            assert looks.look(one) == []
        saved = looks.watch.save()
        looks.watch.restore(saved)
        assert looks.look(again)[0] == ("evicted", "7", reason), state


def test_a_lost_run_of_a_job_that_is_not_queued_again_is_an_eviction() -> None:
    for state, reason in (("NODE_FAIL", "unknown"), ("PREEMPTED", "preempted")):
        looks = Looks()
        looks.look(line(**RUNS))
        lost = line(**RUNS | {"State": state, "EndTime": "2005"})
        assert looks.look(lost) == [("evicted", "7", reason), ("removed", "7", reason)]


def test_ends_that_nobody_wanted_have_their_reason() -> None:
    for state, reason in (
        ("TIMEOUT", "killed"),
        ("OUT_OF_MEMORY", "killed"),
        ("CANCELLED", "removed"),
    ):
        looks = Looks()
        looks.look(line(**RUNS))
        assert looks.look(line(**RUNS | {"State": state, "EndTime": "2005"})) == [
            ("removed", "7", reason)
        ]
    never_ran = Looks()
    assert never_ran.look(line(State="FAILED", StartTime="1990", EndTime="1990")) == [
        ("submitted", "7"), ("removed", "7", "failed_start"),
    ]  # fmt: skip


def test_held_until_it_is_eligible_though_its_row_stays_the_same() -> None:
    looks = Looks()
    later = line(EligibleTime="2025", Reason="BeginTime")
    assert looks.look(later) == [("submitted", "7"), ("held", "7", "BeginTime")]
    assert looks.look(later) == []
    in_line = line(EligibleTime="2025", Reason="Resources")
    assert looks.look(in_line) == [("released", "7")]


def test_limits_keep_a_job_back_and_priority_does_not() -> None:
    looks = Looks()
    assert looks.look(line(Reason="Priority")) == [("submitted", "7")]
    assert looks.look(line(Reason="QOSMaxJobsPerUserLimit")) == [
        ("held", "7", "QOSMaxJobsPerUserLimit")
    ]
    assert looks.look(line(Reason="Resources")) == [("released", "7")]
    assert looks.look(line(Reason="AssocGrpCpuLimit")) == [("held", "7", "AssocGrpCpuLimit")]
    assert looks.look(line(**RUNS)) == [("released", "7"), ("started", "7")]


def test_nodes_that_a_user_excludes_make_another_class() -> None:
    looks = Looks()
    looks.look(line())
    reported = looks.look(line(), excluded="n[1-2]")
    assert reported == [("changed", "7")]


def test_a_row_that_cannot_be_read_is_counted_and_the_others_are_told() -> None:
    looks = Looks()
    assert looks.look("broken", line(), line(JobArrayID="9_[x]")) == [("submitted", "7")]
    assert looks.watch.rejected == {"row": 2}


def test_many_tasks_are_one_row_and_one_specification() -> None:
    looks = Looks()
    reported = looks.look(line(JobArrayID="7_[1-5000]"))
    assert len(reported) == 5_000
    assert looks.look(line(JobArrayID="7_[2-5000]"), line(JobArrayID="7_1", **RUNS)) == [
        ("started", "7_1")
    ]


def test_a_watch_goes_on_where_another_has_stopped() -> None:
    looks = Looks()
    looks.look(line(**RUNS), line(JobArrayID="8"))
    saved = looks.watch.save()
    again = Looks()
    again.watch.restore(saved)
    ended = line(**RUNS | {"State": "COMPLETED", "EndTime": "2005"})
    assert again.look(ended, line(JobArrayID="8")) == [("completed", "7")]


def test_the_plan_holds_jobs_that_wait_and_of_an_array_its_next_task() -> None:
    looks = Looks()
    looks.look(
        line(StartTime="5000", Reason="Resources"),
        line(JobArrayID="8_[2-9]", StartTime="6000", Reason="Priority"),
        line(JobArrayID="9", Reason="Priority"),
        line(JobArrayID="10", StartTime="7000", EligibleTime="7000", Reason="BeginTime"),
        line(JobArrayID="11", StartTime="7000", Reason="JobHeldUser"),
        line(JobArrayID="12", StartTime="1500", State="RUNNING", NodeList="n1"),
    )
    plan = looks.watch.planned_starts(looks.now_s)
    assert plan.asked_s == looks.now_s
    assert plan.starts_s == {"c:7": 5000.0, "c:8_2": 6000.0}
