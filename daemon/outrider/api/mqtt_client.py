"""MQTT client for tasks that are cancelled; imported only where a connection is made."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import aiomqtt

T = TypeVar("T")


class CancellableClient(aiomqtt.Client):
    """Client of aiomqtt in which no cancellation is lost.

    It waits for every answer of the broker by ``asyncio.wait_for``, which in Python 3.11 swallows a
    cancellation that comes together with the answer: the task would never end.
    """

    async def _wait_for(self, fut: Awaitable[T], timeout: float | None) -> T:  # noqa: ASYNC109
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                return await fut
        except TimeoutError:
            raise aiomqtt.MqttError("Operation timed out") from None
