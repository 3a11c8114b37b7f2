"""Cached answers are few, and so are the threads that wait for a hanging disk."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from outrider.service.views.over_time import KeptAnswers, Make


def made_by(make: Make[dict[str, Any]]) -> Callable[[], Any]:
    async def prepare() -> Make[dict[str, Any]]:
        return make

    return prepare


async def test_the_oldest_answers_give_way() -> None:
    kept = KeptAnswers[dict[str, Any]]("few", most=2)
    made: list[str] = []

    async def ask(key: str) -> None:
        def make() -> dict[str, Any]:
            made.append(key)
            return {}

        await kept.of(key, made_by(make))

    for key in "aabcba":
        await ask(key)
    assert made == ["a", "b", "c", "a"]


async def test_where_too_many_are_being_made_others_are_refused() -> None:
    ends = threading.Event()
    kept = KeptAnswers[dict[str, Any]]("hangs", most=2)

    def hang() -> dict[str, Any]:
        ends.wait(60.0)
        return {}

    asked = [asyncio.ensure_future(kept.of(key, made_by(hang))) for key in "ab"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError, match="2 answers are being made already"):
        await kept.of("c", made_by(hang))
    threads = [one for one in threading.enumerate() if one.name == "hangs"]
    ends.set()
    assert len(threads) == 2
    assert await asyncio.gather(*asked) == [{}, {}]
