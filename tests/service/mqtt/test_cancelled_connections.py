"""A connection that is given up at the very moment at which the broker answers."""

import asyncio
from contextlib import suppress
from typing import Any

import aiomqtt
import pytest

from outrider.api.broker import BrokerSettings, connected


async def test_a_cancellation_that_was_swallowed_while_connecting_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ``asyncio.wait_for`` of Python 3.11 does where answer and cancellation come together."""

    async def answered(self: aiomqtt.Client) -> aiomqtt.Client:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        return self

    async def left(self: aiomqtt.Client, *raised: Any) -> None:
        pass

    monkeypatch.setattr(aiomqtt.Client, "__aenter__", answered)
    monkeypatch.setattr(aiomqtt.Client, "__aexit__", left)
    talked = False

    async def converse() -> None:
        nonlocal talked
        async with connected(BrokerSettings(), "test"):
            talked = True
            await asyncio.Event().wait()

    task = asyncio.create_task(converse())
    done, _ = await asyncio.wait({task}, timeout=5.0)
    assert done, "it goes on for ever"
    assert task.cancelled()
    assert not talked
