"""An MQTT broker inside the demo's process; a site runs a real one."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from outrider.model.errors import ConfigurationError, PeerError

_WITHIN_S: Final = 10.0
_CLOSES_WITHIN_S: Final = 2.0
_LISTENER: Final = "default"


@contextmanager
def demo_broker() -> Iterator[int]:
    """Run a broker without passwords on a free port of 127.0.0.1, in its own thread.

    Yields:
        The port.

    Raises:
        ConfigurationError: amqtt is not installed.
        PeerError: it did not start.
    """
    try:
        from amqtt.broker import Broker
    except ImportError as error:
        raise ConfigurationError(
            "--mqtt: the demo's broker is not installed; use pip install 'outrider[broker]'"
        ) from error
    logging.getLogger("amqtt").setLevel(logging.ERROR)  # it logs every client that connects
    logging.getLogger("transitions").setLevel(logging.ERROR)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="demo-broker", daemon=True)
    thread.start()
    try:
        broker = _in(loop, _start(Broker))
        try:
            yield _port(broker)
        finally:
            with suppress(PeerError):  # may hang while clients are connected; ends with the process
                _in(loop, broker.shutdown(), _CLOSES_WITHIN_S)
    finally:
        with suppress(PeerError):
            _in(loop, _cancel_all(), _CLOSES_WITHIN_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_WITHIN_S)
        loop.close()


async def _start(kind: Any) -> Any:
    """Return a started broker; created inside its event loop, to which it binds itself."""
    broker = kind(
        {
            "listeners": {_LISTENER: {"type": "tcp", "bind": "127.0.0.1:0"}},
            "plugins": {
                "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}
            },
        }
    )
    await broker.start()
    return broker


async def _cancel_all() -> None:
    """Cancel the tasks that still run in this loop, or Python would warn about them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _port(broker: Any) -> int:
    [listening] = broker._servers[_LISTENER].instance.sockets
    return int(listening.getsockname()[1])


def _in(loop: asyncio.AbstractEventLoop, coroutine: Any, within_s: float = _WITHIN_S) -> Any:
    """Return the result of a coroutine that runs in another thread's loop."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(within_s)
    except Exception as error:
        raise PeerError(f"the demo's MQTT broker: {error!r}") from error
