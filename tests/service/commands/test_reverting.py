"""Taking back what was changed, by several levers: those that fail or hang, and the others."""

import asyncio
import threading

import pytest

from outrider.model.errors import PeerError
from outrider.service.commands.reverting import LeverReverter, Reverted, revert_each, revert_lever
from outrider.service.host.threads import in_own_thread
from tests.acting.levers import Noting


class Book(Noting):
    """A lever that reverts a number of jobs, raises, or waits until released."""

    def __init__(self, name: str, jobs: int | Exception, hangs: bool = False) -> None:
        super().__init__()
        self.name = name  # type: ignore[misc]
        self.jobs = jobs
        self.asked_n = 0
        self.may_go_on = threading.Event()
        if not hangs:
            self.may_go_on.set()

    def withdraw_all(self) -> int:
        self.asked_n += 1
        assert self.may_go_on.wait(10)
        if isinstance(self.jobs, Exception):
            raise self.jobs
        return self.jobs

    def withdraw_stale(self) -> int:
        return 1


async def test_each_lever_says_for_how_many_jobs_or_why_not() -> None:
    books = {"desk": [Book("a", 1_200), Book("b", OSError("gone"))], "other": [Book("a", 0)]}
    found = await LeverReverter(10.0).take(books)
    assert found == [
        Reverted("desk: a", 1_200, ""),
        Reverted("desk: b", None, "OSError: gone"),
        Reverted("other: a", 0, ""),
    ]
    assert [one.sentence for one in found] == [
        "desk: a: reverted for 1,200 jobs", "desk: b: not reverted: OSError: gone",
        "other: a: reverted for 0 jobs",
    ]  # fmt: skip
    assert all(book.closed for of in books.values() for book in of)
    assert await LeverReverter(10.0).take({}) == []


async def test_one_that_hangs_is_not_asked_again_until_it_has_answered() -> None:
    hanging, quick = Book("hanging", 3, hangs=True), Book("quick", 1)
    taking = LeverReverter(0.1)
    levers = {"desk": [hanging, quick]}
    assert await taking.take(levers) == [
        Reverted("desk: hanging", None, "no answer within 0.1 s"),
        Reverted("desk: quick", 1, ""),
    ]
    again = await taking.take(levers)
    assert Reverted("desk: hanging", None, "an earlier call still hangs") in again
    assert (hanging.asked_n, quick.asked_n) == (1, 2)
    hanging.may_go_on.set()
    async with asyncio.timeout(10):
        while not hanging.closed:  # noqa: ASYNC110 - its own thread closes it
            await asyncio.sleep(0.01)
    await taking.take(levers)
    assert hanging.asked_n == 2


def test_one_that_fails_does_not_keep_the_others_from_reverting() -> None:
    books = [Book("a", PeerError("no answer")), Book("b", OSError("gone")), Book("c", 2)]
    found = revert_each({book.name: book for book in books})
    assert found == [
        Reverted("a", None, "no answer"),
        Reverted("b", None, "OSError: gone"),
        Reverted("c", 2, ""),
    ]
    assert all(book.closed for book in books)
    unreached = [Book("a", PeerError("no answer")), Book("b", PeerError("refused"))]
    with pytest.raises(PeerError, match="no answer; refused"):
        revert_each({book.name: book for book in unreached})
    assert revert_each({}) == []


def test_of_what_is_stale_only_that_is_taken_back_and_the_lever_is_closed_anyway() -> None:
    book, broken = Book("a", 5), Book("b", OSError("gone"))
    assert revert_lever(book, stale=True) == 1
    assert revert_lever(book) == 5
    with pytest.raises(OSError, match="gone"):
        revert_lever(broken)
    assert book.closed
    assert broken.closed


async def test_a_call_that_hangs_has_a_thread_that_keeps_no_process_from_ending() -> None:
    asked = threading.Event()
    call = in_own_thread(lambda: asked.wait(10), "asking")
    [thread] = [one for one in threading.enumerate() if one.name == "asking"]
    assert thread.daemon
    call.cancel()  # the caller no longer waits
    asked.set()
    await asyncio.to_thread(thread.join, 10)
    await asyncio.sleep(0)
    assert call.cancelled()
