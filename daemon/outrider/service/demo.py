"""``outrider demo``: the daemon in shadow beside a simulated campus, ready in seconds."""

import os
import signal
import tempfile
import threading
from contextlib import ExitStack
from typing import Any

from outrider.service.app import run
from outrider.service.config.loaded import check_config
from outrider.service.demo_broker import demo_broker

_HEAD_START_S = 14 * 86_400.0
"""The first screen shows two weeks of a campus, not an empty queue."""


def run_demo(
    *,
    port: int,
    machines: int,
    weeks: float,
    speed: float,
    seed: int,
    for_s: float | None,
    mqtt: bool = False,
) -> int:
    """Run the daemon beside a generated campus until it is stopped; returns the exit code.

    Args:
        port: of the status page on 127.0.0.1; 0 takes a free one.
        machines: of the campus.
        weeks: length of the campus.
        speed: virtual seconds a real second.
        seed: of the campus.
        for_s: stop by itself after so many seconds, or None.
        mqtt: publish to a broker inside this process, on a free port of 127.0.0.1.

    Raises:
        ConfigurationError: `mqtt`, and the extra `broker` is not installed.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="outrider-demo-"))
        publish: dict[str, Any] = {}
        if mqtt:
            broker_port = stack.enter_context(demo_broker())
            publish["mqtt"] = {"host": "127.0.0.1", "port": broker_port, "site": "demo"}
        loaded = check_config(
            publish
            | {
                "mode": "shadow",
                "reboot": "03:00",
                "state_dir": folder,
                "listen": f"127.0.0.1:{port}",
                "adapters": {
                    "campus": {
                        "type": "simulated",
                        "machines": machines,
                        "weeks": weeks,
                        "speed": speed,
                        "seed": seed,
                        "head_start_s": _HEAD_START_S,
                    }
                },
                "policies": {"bandit": {}, "survival": {}, "lowest_watts": {}},
            },
            "demo",
        )
        if for_s is not None:
            timer = threading.Timer(for_s, os.kill, (os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()

        def announce(url: str) -> None:
            _print(url)
            if (settings := loaded.config.mqtt) is not None:
                _print(f"mqtt://{settings.address} topics {settings.base}/#")

        return run(loaded, announce)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the command is for: others wait for these lines
