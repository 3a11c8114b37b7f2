"""A command imports what it needs when it runs; its help, and asking a daemon, need little."""

import json
import subprocess
import sys

import click
import pytest

from outrider.cli.root import outrider as root
from tests.cli.running import WITHIN_S
from tests.cli.test_asking import NOBODY

HEAVY = {
    "numpy", "numba", "scipy", "pandas", "sqlalchemy", "msgspec", "aiohttp", "asyncio", "rich",
    "structlog", "prometheus_client", "sqlite3", "outrider_policies", "outrider_adapters",
}  # fmt: skip
"""What takes tens of milliseconds to import."""
_IMPORTED = """
import contextlib, io, json, sys
from outrider.cli.entry import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, [name for name in sys.modules if "." not in name]]))
"""


def imported(*words: str) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and which top modules it imported."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *words],
        capture_output=True, text=True, timeout=WITHIN_S, check=True,
    )  # fmt: skip
    code, modules = json.loads(done.stdout)
    return code, set(modules)


def test_the_measure_sees_what_is_heavy() -> None:
    code, modules = imported("plugins")
    assert code == 0
    assert {"numpy", "msgspec"} <= modules


@pytest.mark.parametrize("name", root.list_commands(click.Context(root)))
def test_the_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    code, modules = imported(name, "--help")
    assert code == 0
    assert modules & HEAVY == set()


@pytest.mark.parametrize(
    "words", [("status",), ("jobs",), ("machines",), ("users",), ("explain", "1.0")]
)
def test_asking_a_daemon_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    code, modules = imported(*words, "--url", NOBODY)
    assert code == 3
    assert modules & HEAVY == set()
