"""Start-up time of `outrider` commands compared with `python -c pass`, in turns.

    python bench/cli.py [--turns 5] [--json]

It measures each command's `--help`, and lists from a daemon that answers immediately. `seconds` is
the best wall time of the turns, `cpu_s` the best CPU time, which other work on the machine disturbs
less. Exit code 1 if the slowest command misses the budget of 250 ms wall time.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from threading import Thread

import click
from calibration import calibration_s
from options import parsed

from outrider.cli.root import outrider

BUDGET_S = 0.25
COMMAND = str(Path(sys.executable).with_name("outrider"))
PASS = (sys.executable, "-c", "pass")


class Daemon(BaseHTTPRequestHandler):
    """HTTP server that answers lists as an empty daemon does."""

    def do_GET(self) -> None:
        """Answer with an empty page of jobs or machines."""
        field = self.path.partition("?")[0].rpartition("/")[2]
        answer = {
            "mode": "shadow", "now_s": 0.0, field: [], "total": 0, "next": None,
            "expected_starts": None,
        }  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        """Write no access log."""


@contextmanager
def daemon() -> Iterator[str]:
    """Run a daemon that answers immediately, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Daemon) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def once_s(words: Sequence[str]) -> tuple[float, float]:
    """Return wall and CPU seconds until a process has ended successfully."""
    before, start_s = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    took_s, after = time.perf_counter() - start_s, getrusage(RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(url: str, most: int | None) -> dict[str, list[str]]:
    """Return the measured commands by name."""
    names = outrider.list_commands(click.Context(outrider))[:most]
    helps = {f"{name} --help": [COMMAND, name, "--help"] for name in names}
    lists = {name: [COMMAND, name, "--url", url] for name in ("jobs", "machines", "users")}
    return {"--version": [COMMAND, "--version"], "--help": [COMMAND, "--help"], **helps, **lists}


def measure(turns: int, most: int | None) -> dict[str, dict[str, float]]:
    """Measure each command and `python -c pass`, in turns."""
    with daemon() as url:
        measured = {"pass": list(PASS), **commands(url, most)}
        best = dict.fromkeys(measured, (float("inf"), float("inf")))
        for _ in range(turns):
            for name, words in measured.items():
                took_s, used_s = once_s(words)
                best[name] = (min(best[name][0], took_s), min(best[name][1], used_s))
    pass_s, pass_cpu_s = best["pass"]
    return {
        name: {
            "seconds": round(took_s, 4), "ratio": round(took_s / pass_s, 2),
            "cpu_s": round(used_s, 4), "cpu_ratio": round(used_s / pass_cpu_s, 2),
        }
        for name, (took_s, used_s) in best.items()
    }  # fmt: skip


def main() -> int:
    """Measure, print, and return 1 if the budget was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5, help="number of turns; the best counts")
    parser.add_argument(
        "--most", type=int, default=None, help="number of commands whose help is measured"
    )
    given = parsed(parser, turns=1, most=2)
    results = measure(given.turns, given.most)
    slowest = max(results, key=lambda name: results[name]["seconds"])
    found = {
        "results": results, "slowest": slowest, "slowest_s": results[slowest]["seconds"],
        "budget_s": BUDGET_S, "calibration_s": round(calibration_s(), 4),
    }  # fmt: skip
    if given.json:
        print(json.dumps(found))
    else:
        for name, figures in sorted(results.items(), key=lambda row: -row[1]["seconds"]):
            print(f"{name:24}", *(f"{what} {value}" for what, value in figures.items()), sep="  ")
        print(f"slowest: {slowest}, {results[slowest]['seconds']} s; calibration_s "
              f"{found['calibration_s']}")  # fmt: skip
    return 0 if results[slowest]["seconds"] < BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
