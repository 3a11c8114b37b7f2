"""The order in which questions are answered: commands and known clients before all others."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from outrider.model.events import REMOVED, SUBMITTED
from outrider.model.jobs import JobSpec, stands_for
from outrider.service.views import explanation
from outrider.service.views.explanation import JobIndex, jobs_meant
from outrider.service.web.endpoint import MOST_AT_A_TIME, QuestionQueue, Questions, metered
from tests.fixtures.cores import T, core_of, tell


def asked(
    queue: QuestionQueue, lane: str, make: Callable[[], Coroutine[Any, Any, str]]
) -> "asyncio.Task[str]":
    """Ask a question in a task of its own."""
    return asyncio.create_task(queue.answer(lane, make))


async def turns(n: int = 20) -> None:
    """Let the event loop run for some iterations."""
    for _ in range(n):
        await asyncio.sleep(0)


class Waiting:
    """Questions that wait until the test lets them end.

    Attributes:
        begun: names of those that have begun.
    """

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    def make(self, name: str) -> Callable[[], Coroutine[Any, Any, str]]:
        async def answer() -> str:
            self.begun.append(name)
            await self.may_end.wait()
            return name

        return answer


async def test_so_many_questions_of_a_kind_are_in_progress_and_no_more() -> None:
    queue, waiting = QuestionQueue(2, rest=0.0), Waiting()
    tasks = [asked(queue, "journal", waiting.make(f"j{n}")) for n in range(50)]
    tasks += [asked(queue, "metrics", waiting.make("m"))]
    await turns()
    assert sorted(waiting.begun) == ["j0", "j1", "m"], "another kind does not wait for them"
    waiting.may_end.set()
    assert await asyncio.gather(*tasks) == [*(f"j{n}" for n in range(50)), "m"]


async def test_a_client_that_leaves_gives_no_other_its_place_until_its_thread_ends() -> None:
    queue, waiting = QuestionQueue(1, rest=0.0), Waiting()
    first, second = (asked(queue, "journal", waiting.make(name)) for name in "ab")
    third = asked(queue, "journal", waiting.make("c"))
    await turns()
    first.cancel()
    second.cancel()
    await turns()
    assert waiting.begun == ["a"], "its thread still reads the journal"
    waiting.may_end.set()
    assert await third == "c"
    assert waiting.begun == ["a", "c"], "who waits and leaves is never answered"


async def test_kinds_take_turns() -> None:
    order: list[str] = []

    def make(name: str) -> Callable[[], Coroutine[Any, Any, str]]:
        async def answer() -> str:
            order.append(name)
            return name

        return answer

    queue = QuestionQueue(1, rest=0.0)
    flood = [asked(queue, "explain", make("explain")) for _ in range(30)]
    flood += [asked(queue, "status", make("status")), asked(queue, "metrics", make("metrics"))]
    await asyncio.gather(*flood)
    assert order.index("status") < 3
    assert order.index("metrics") < 4


async def test_after_work_on_the_event_loop_others_rest_as_long() -> None:
    now_s, spent_s = [0.0], [0.0]

    async def work() -> str:
        spent_s[0] += 5.0
        return "done"

    queue = QuestionQueue(4, 2.0, clock=lambda: now_s[0], cost_s=lambda: spent_s[0])
    assert await asked(queue, "jobs", work) == "done"
    second = asked(queue, "jobs", work)
    await turns()
    assert not second.done()
    assert queue.pause_s == pytest.approx(10.0, abs=0.01)
    now_s[0] = 10.01
    third = asked(queue, "jobs", work)  # a new question looks again
    assert await second == "done"
    third.cancel()


async def test_no_question_begins_while_a_command_is_in_progress() -> None:
    questions, waiting = Questions(), Waiting()
    waiting.may_end.set()

    async def answer() -> web.StreamResponse:
        waiting.begun.append("question")
        return web.Response()

    with questions.held():
        task = asyncio.create_task(questions.answer("jobs", False, answer))
        await turns()
        assert waiting.begun == []
        await questions.answer("jobs", True, answer)
        assert waiting.begun == ["question"], "that of a client with rights"
    await task
    assert MOST_AT_A_TIME == 4


async def test_a_command_that_hangs_holds_questions_for_ten_seconds() -> None:
    now_s = [0.0]
    queue, waiting = QuestionQueue(4, 1.0, clock=lambda: now_s[0]), Waiting()
    waiting.may_end.set()
    with queue.held():
        assert queue.pause_s == 10.0
        now_s[0] = 10.0
        assert await asked(queue, "jobs", waiting.make("a")) == "a"


async def test_each_step_of_a_coroutine_is_measured_and_errors_pass() -> None:
    spent_s = [0.0]
    steps: list[float] = []

    async def work() -> str:
        spent_s[0] += 1.0
        await asyncio.sleep(0)
        spent_s[0] += 2.0
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except TimeoutError:
            spent_s[0] += 4.0
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await metered(work(), steps.append, lambda: spent_s[0])
    assert (steps[0], sum(steps)) == (1.0, 7.0)
    gc.collect()


def test_an_index_answers_for_jobs_that_came_and_left_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(explanation, "_MAX_NEWER", 5)
    core, index = core_of("log"), JobIndex()
    for n in range(40):
        tell(core, "log", [(T + n, SUBMITTED, f"ap{n % 2}#{n}.0", JobSpec())], T + n)
        assert jobs_meant(core, f"{n}.0", index) == [f"ap{n % 2}#{n}.0"]
        assert jobs_meant(core, f"{n}", index) == [f"ap{n % 2}#{n}.0"]
        assert jobs_meant(core, "0.0", index) == ["ap0#0.0"]
        for unknown in (f"{n + 1}.0", "ap0", "ap0#", "x", "", "ap1#0.0"):
            assert jobs_meant(core, unknown, index) == [], unknown
    tell(core, "log", [(T + 50, REMOVED, "ap0#0.0", "removed")], T + 60)
    assert jobs_meant(core, "0.0", index) == []
    assert jobs_meant(core, "39", index) == jobs_meant(core, "39") == ["ap1#39.0"]


def test_a_look_up_does_not_look_at_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    core, index = core_of("log"), JobIndex()
    looked: list[str] = []
    told = [(T, SUBMITTED, f"ap.example#{n}.0", JobSpec()) for n in range(5_000)]
    tell(core, "log", told, T + 60)
    jobs_meant(core, "7.0", index)

    def counted(short: str, name: str) -> bool:
        looked.append(name)
        return stands_for(short, name)

    monkeypatch.setattr(explanation, "stands_for", counted)
    monkeypatch.setattr("outrider.journal.job_lookup.stands_for", counted)
    for short in ("7.0", "ap.example", "nothing", "4999", "99999.0", "ap.example#1"):
        jobs_meant(core, short, index)
    assert len(looked) < 20
