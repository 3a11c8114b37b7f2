"""Clients with the same request share an expensive answer until something changes."""

import gzip

from outrider.service.daemon.daemon_view import MAX_ANSWERS, SharedAnswers


class Clock:
    """Seconds that pass while something is made."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Making:
    """An answer that costs a tenth of a second."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.made_n = clock, 0

    async def __call__(self) -> bytes:
        self.clock.now_s += 0.1
        self.made_n += 1
        return b"%d" % self.made_n * 1000


async def test_who_asks_the_same_shares_an_answer_and_who_asks_something_else_does_not() -> None:
    clock = Clock()
    answers, make = SharedAnswers(clock, clock), Making(clock)
    first = await answers.of(("/api/v1/jobs", True), make)
    assert await answers.of(("/api/v1/jobs", True), make) is first
    other = await answers.of(("/api/v1/jobs", False), make)
    assert other.body != first.body
    clock.now_s += 2.0
    assert (await answers.of(("/api/v1/jobs", True), make)).body == b"3" * 1000


async def test_it_is_compressed_once() -> None:
    clock = Clock()
    answer = await SharedAnswers(clock, clock).of("status", Making(clock))
    assert gzip.decompress(answer.packed()) == answer.body
    assert answer.packed() is answer.packed()


async def test_after_a_change_by_hand_it_is_made_anew() -> None:
    clock = Clock()
    answers, make = SharedAnswers(clock, clock), Making(clock)
    first = await answers.of("status", make)
    answers.forget()
    assert await answers.of("status", make) is not first


async def test_few_questions_are_remembered() -> None:
    clock = Clock()
    answers, make = SharedAnswers(clock, clock), Making(clock)
    for n in range(MAX_ANSWERS + 1):
        await answers.of(n, make)
    clock.now_s -= 0.1 * (MAX_ANSWERS + 1)  # so that none is too old
    await answers.of(MAX_ANSWERS, make)
    assert make.made_n == MAX_ANSWERS + 1
    await answers.of(0, make)
    assert make.made_n == MAX_ANSWERS + 2
