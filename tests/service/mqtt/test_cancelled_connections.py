"""A task that is cancelled at the very moment at which the broker answers."""

import asyncio

import aiomqtt
import pytest

from outrider.api.mqtt_client import CancellableClient


async def test_a_cancellation_that_comes_together_with_the_answer_is_not_lost() -> None:
    """``asyncio.wait_for`` of Python 3.11 returns the answer then, and the task goes on."""
    client = CancellableClient("localhost")
    answer = asyncio.get_running_loop().create_future()
    went_on = False

    async def ask() -> None:
        nonlocal went_on
        await client._wait_for(answer, None)
        went_on = True
        await asyncio.Event().wait()

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    answer.set_result("connected")
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5.0)
    assert done, "it goes on for ever"
    assert task.cancelled()
    assert not went_on


async def test_an_answer_is_awaited_for_as_long_as_was_said_and_no_longer() -> None:
    client = CancellableClient("localhost", timeout=0.05)
    with pytest.raises(aiomqtt.MqttError, match="timed out"):
        await client._wait_for(asyncio.Event().wait(), None)
    with pytest.raises(aiomqtt.MqttError, match="timed out"):
        await client._wait_for(asyncio.Event().wait(), 0.01)
    assert await client._wait_for(asyncio.sleep(0.1, "late"), float("inf")) == "late"
