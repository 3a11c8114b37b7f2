"""``outrider demo``: the daemon in shadow beside a simulated campus, ready in seconds."""

import os
import signal
import tempfile
import threading

from outrider.service.config import check_config
from outrider.service.daemon import run

_HEAD_START_S = 14 * 86_400.0
"""The first screen shows two weeks of a campus, not an empty queue."""


def run_demo(
    *, port: int, machines: int, weeks: float, speed: float, seed: int, for_s: float | None
) -> int:
    """Run the daemon beside a generated campus until it is stopped; returns the exit code.

    Args:
        port: of the status page on 127.0.0.1; 0 takes a free one.
        machines: of the campus.
        weeks: length of the campus.
        speed: virtual seconds a real second.
        seed: of the campus.
        for_s: stop by itself after so many seconds, or None.
    """
    with tempfile.TemporaryDirectory(prefix="outrider-demo-") as folder:
        loaded = check_config(
            {
                "mode": "shadow",
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
                "policies": {"bandit": {}, "lowest_watts": {}},
            },
            "demo",
        )
        if for_s is not None:
            timer = threading.Timer(for_s, os.kill, (os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()
        return run(loaded, announce=_announce)


def _announce(url: str) -> None:
    print(url, flush=True)  # noqa: T201 - what the command is for: others wait for this line
