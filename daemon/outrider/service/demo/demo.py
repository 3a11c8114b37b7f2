"""``outrider demo``: the daemon in shadow mode with a simulated campus, ready in seconds."""

import datetime as dt
import os
import signal
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from outrider.model import events
from outrider.model.settings import toml_text
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun, keep_nothing
from outrider.service.config.loaded import load_config
from outrider.service.demo.demo_broker import demo_broker
from outrider.service.process.app import run
from outrider.simulation.generators.campus import generate_campus

_DAY_S = 86_400.0
_PAST = 5 / 8
"""Ratio of the campus's weeks that are past when the page opens: the twin needs some."""
_START = dt.date(2010, 2, 1)
"""A Monday, the first of a term."""
_CLUSTERS = 6
_WHAT_TO_SEE = """\
On the page, from top to bottom:
  the headline: wasted CPU time, and (after two minutes) what other policies would have saved
  "Why is my job waiting?": choose one of the jobs below it
  "Jobs": the expected start of each, with its 80 % interval
  "Policies": what each policy would do, and what it has learned
An hour of the campus takes a minute. Stop with Ctrl-C; nothing is left."""
_DAYS = (0, 1, 2, 3, 4, 7, 8, 9, 10, 11)
_HOURS = range(12, 18)
_ASK_TWIN_S = 120.0
_REPLICATES = 5
"""Few replicates, so that the twin's first result is there within a minute or two."""
_STARTS_EVERY_S = 2.0
_CANDIDATES_EVERY_S = 15.0
"""Short, because hours of the campus pass in a minute and expected starts become old soon."""


def run_demo(
    *,
    port: int,
    machines: int,
    weeks: float,
    speed: float,
    seed: int,
    for_s: float | None,
    mqtt: bool = False,
    verbose: bool = False,
) -> int:
    """Run the daemon with a generated campus until it is stopped; return the exit code.

    Args:
        port: port of the status page on 127.0.0.1; 0 takes a free one.
        machines: number of machines of the campus.
        weeks: length of the campus.
        speed: virtual seconds per real second.
        seed: random seed of the campus.
        for_s: stop after so many seconds; None: run until it is stopped.
        mqtt: publish to a broker inside this process, on a free port of 127.0.0.1.
        verbose: write log lines of all levels; else only errors.

    Raises:
        ConfigurationError: `mqtt` is set, but the extra `broker` is not installed.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="outrider-demo-"))
        publish: dict[str, Any] = {}
        if mqtt:
            broker_port = stack.enter_context(demo_broker())
            publish["mqtt"] = {"host": "127.0.0.1", "port": broker_port, "site": "demo"}
        given = publish | {
            "mode": "shadow",
            "reboot": "03:00",
            "state_dir": f"{folder}/state",
            "listen": f"127.0.0.1:{port}",
            "adapters": {
                "campus": {
                    "type": "simulated",
                    "machines": machines,
                    "clusters": _CLUSTERS,
                    "start": _START.isoformat(),
                    "weeks": weeks,
                    "speed": speed,
                    "seed": seed,
                    "head_start_s": busy_afternoon_s(machines, weeks, seed),
                }
            },
            "twin": {
                "every_s": _ASK_TWIN_S,
                "replicates": _REPLICATES,
                "starts_every_s": _STARTS_EVERY_S,
                "candidates_every_s": _CANDIDATES_EVERY_S,
                "candidates_budget_s": _CANDIDATES_EVERY_S / 2,
            },
            "policies": {"bandit": {}, "survival": {}, "lowest_watts": {}},
        }
        config = Path(folder) / "outrider.toml"
        config.write_text(_toml(given), encoding="utf-8")
        loaded = load_config(config)
        if for_s is not None:
            timer = threading.Timer(for_s, os.kill, (os.getpid(), signal.SIGTERM))
            timer.daemon = True
            timer.start()

        def announce(url: str) -> None:
            _print(f"Open {url}")
            if (settings := loaded.config.mqtt) is not None:
                _print(f"mqtt://{settings.address} topics {settings.base}/#")
            _print(_WHAT_TO_SEE)

        return run(loaded, announce, log_level="info" if verbose else "error")


def busy_afternoon_s(machines: int, weeks: float, seed: int) -> float:
    """Return when the demo begins: the afternoon hour at which most jobs wait, soon after the past.

    Args:
        machines: number of machines of the campus.
        weeks: length of the campus.
        seed: random seed of the campus and of the policy that starts jobs there.

    Returns:
        Seconds from the beginning of the campus; if no job waits, the end of the past.
    """
    campus = generate_campus(seed, weeks=weeks, machines=machines, clusters=_CLUSTERS, start=_START)
    past_s = int(weeks * _PAST) * 7 * _DAY_S
    hours_s = [past_s + day * _DAY_S + hour * 3_600.0 for day in _DAYS for hour in _HOURS]
    incumbent = make_policy("random_match", {}, seed, "demo")
    run = CampusRun(campus, [incumbent], keep_nothing, hours_s[-1], exact=False)
    waiting, most, begin_s = set[int](), 0, past_s
    for time_s, kind, job, _ in run.stream():
        while hours_s and hours_s[0] < time_s:
            hour_s = hours_s.pop(0)
            if len(waiting) > most:
                most, begin_s = len(waiting), hour_s
        if kind in (events.SUBMITTED, events.EVICTED):
            waiting.add(job)
        elif kind in (events.STARTED, events.REMOVED):
            waiting.discard(job)
    return begin_s


def _toml(given: dict[str, Any]) -> str:
    """Return a configuration as TOML text: the separate twin process reads the file."""
    return "".join(f"{key} = {toml_text(value)}\n" for key, value in given.items())


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the command's output: scripts wait for these lines
