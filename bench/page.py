"""Cost of the page for the daemon: a hundred browsers, and the table of 100,000 jobs.

    python bench/page.py [--jobs 100000] [--browsers 100] [--seconds 30] [--small] [--json]

A real daemon (``outrider run``, the bandit in shadow) reads an event log with this many waiting
jobs. Browsers send the page's requests: the status every two seconds, the lists every ten. Pages of
the table are requested in turns over HTTP, with and without filters, unsorted and sorted. Linux
only: CPU is read from ``/proc``. Budgets: a tenth of a core for all browsers, in addition to the
daemon alone; 100 ms for a page of the table.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import aiohttp
from calibration import calibration_s
from options import parsed

from daemon import Daemon, running, wait_for_jobs, write_known_jobs

BUDGETS: Final = {"browsers_cpu_ratio": 0.1, "page_ms": 100.0}
SNAPSHOT_EVERY_S: Final = 300.0
"""Default snapshot interval, so that snapshots do not distort the browsers' cost."""
STATUS_EVERY_S: Final = 2.0
LISTS: Final = (
    "/api/v1/jobs?candidates=true&limit=4&state=queued",
    "/api/v1/use?window=24h",
)
EVERY_POLLS: Final = 5
PAGES: Final = {
    "first": "/api/v1/jobs?candidates=true&limit={few}&state=queued",
    "middle": "/api/v1/jobs?candidates=true&limit={few}&state=queued&after={middle}",
    "by_user": "/api/v1/jobs?candidates=true&limit={few}&state=queued&user=nobody",
    "longest_wait": "/api/v1/jobs?candidates=true&limit={few}&state=queued&sort=-waiting_s",
    "by_group": "/api/v1/jobs?limit={few}&group=nowhere&sort=-lost_s",
    "by_reason_and_age": "/api/v1/jobs?limit={few}&reason=machine&waiting_over_s=60&sort=-cpus",
    "of_200": "/api/v1/jobs?limit={many}",
    "users": "/api/v1/users?limit={many}",
}


async def browse(client: aiohttp.ClientSession, late_s: float, until_s: float) -> int:
    """Send the requests of one page until a time; return the number of rounds."""
    await asyncio.sleep(late_s)
    n = 0
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        asked = ("/api/v1/status", *(LISTS if n % EVERY_POLLS == 0 else ()))
        for path in asked:
            async with client.get(path) as answer:
                answer.raise_for_status()
                await answer.read()
        n += 1
        await asyncio.sleep(max(0.0, STATUS_EVERY_S - (time.monotonic() - began_s)))
    return n


async def browsers_cpu(daemon: Daemon, browsers: int, seconds: float) -> dict[str, float]:
    """Return the share of a core that browsers cost, in addition to the daemon alone."""
    before_s = daemon.cpu_s()
    await asyncio.sleep(seconds)
    alone_s = daemon.cpu_s() - before_s
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://{daemon.address}", connector=connector) as client:
        before_s, began_s = daemon.cpu_s(), time.monotonic()
        until_s = began_s + seconds
        looking = [browse(client, STATUS_EVERY_S * n / browsers, until_s) for n in range(browsers)]
        answers = sum(await asyncio.gather(*looking))
        took_s = time.monotonic() - began_s
        watched_s = daemon.cpu_s() - before_s
    return {
        "alone_cpu_ratio": alone_s / seconds,
        "browsers_cpu_ratio": watched_s / took_s - alone_s / seconds,
        "answers_per_s": answers / took_s,
    }


def pages_ms(daemon: Daemon, jobs: int, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each kind of page, on the client's clock.

    Each has another length, because the daemon shares the answers of identical requests.
    """
    spent: dict[str, list[float]] = {}
    for n in range(rounds):
        for name, path in PAGES.items():
            asked = path.format(middle=jobs // 2, few=25 + n, many=200 + n)
            began_s = time.perf_counter()
            daemon.get(asked)
            spent.setdefault(name, []).append(1e3 * (time.perf_counter() - began_s))
    return {name: round(statistics.median(took), 1) for name, took in spent.items()}


def measure(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Return all figures of the bench."""
    write_known_jobs(folder / "events.log", given.jobs)
    with running(folder, SNAPSHOT_EVERY_S) as daemon:
        wait_for_jobs(daemon, given.jobs)
        pages = pages_ms(daemon, given.jobs, given.rounds)
        cpu = asyncio.run(browsers_cpu(daemon, given.browsers, given.seconds))
    over = [name for name, ms in pages.items() if ms > BUDGETS["page_ms"]]
    if cpu["browsers_cpu_ratio"] > BUDGETS["browsers_cpu_ratio"]:
        over.append("browsers_cpu_ratio")
    return {
        "jobs": given.jobs, "browsers": given.browsers, "pages_ms": pages,
        **{name: round(figure, 4) for name, figure in cpu.items()}, "over_budget": over,
        "budgets": BUDGETS, "calibration_s": round(calibration_s(), 4),
    }  # fmt: skip


def main() -> int:
    """Measure, print, and return 1 if a budget was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--browsers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=9)
    given = parsed(parser, jobs=200, browsers=3, seconds=1.0, rounds=1)
    with tempfile.TemporaryDirectory() as name:
        found = measure(Path(name), given)
    print(json.dumps(found, indent=None if given.json else 1))
    return 1 if found["over_budget"] and not given.small else 0


if __name__ == "__main__":
    sys.exit(main())
