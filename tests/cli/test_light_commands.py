"""A command imports what it needs when it runs; its help, and asking a daemon, need little."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from outrider.cli.root import outrider as root
from tests.cli.running import WITHIN_S
from tests.cli.running import outrider as run_outrider
from tests.cli.test_asking import NOBODY, Stranger, serving
from tests.service.web.small_answers import STATUS

HEAVY = {
    "numpy", "numba", "scipy", "pandas", "sqlalchemy", "msgspec", "aiohttp", "asyncio", "rich",
    "structlog", "prometheus_client", "sqlite3", "outrider_policies", "outrider_adapters",
}  # fmt: skip
"""Modules that take tens of milliseconds to import."""
NEEDED_TO_ASK = {"http", "ssl", "tomllib"}
"""Modules that only a running command needs."""
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
    assert modules & (HEAVY | NEEDED_TO_ASK) == set()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The configuration of a daemon that is not running, with plugins whose settings are wrong."""
    file = tmp_path / "outrider.toml"
    file.write_text(
        f'state_dir = "{tmp_path / "state"}"\nlisten = "127.0.0.1:9"\nsocket = "{tmp_path / "s"}"\n'
        "[adapters.logtail]\nno_such_setting = 1\n[policies.no_such_policy]\n"
    )
    return file


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("jobs",),
        ("machines",),
        ("users",),
        ("mode",),
        ("promote",),
    ],
)
def test_a_configuration_says_whom_to_ask_without_its_plugins(
    words: tuple[str, ...], config: Path
) -> None:
    code, modules = imported(*words, "--config", str(config))
    assert code == 3
    assert modules & (HEAVY - {"msgspec"}) == set()


def test_explain_looks_into_the_ledger_without_the_plugins(config: Path) -> None:
    code, modules = imported("explain", "1.0", "--config", str(config))
    assert code == 3
    assert modules & {"outrider_policies", "outrider_adapters"} == set()


@pytest.mark.parametrize(
    "words", [("status",), ("jobs",), ("explain", "1.0"), ("mode",), ("token",)]
)
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("listen = 9690", ["line 1", "listen", "9690"]),
        ("listn = 'a:1'", ["line 1", "listn", "listen"]),
        ("timezone = 'Mars/Olympus'", ["line 1", "timezone", "Mars/Olympus", "Europe/Berlin"]),
        ("[clusters.lab]\nopen = 'nights'", ["clusters.lab", "open", "nights"]),
        ("mode = ", ["not valid TOML"]),
    ],
)
def test_a_broken_file_is_told_as_ever(
    words: tuple[str, ...], text: str, told: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "outrider.toml"
    file.write_text(text)
    done = run_outrider(*words, "--config", file)
    assert done.code == 2
    for word in (str(file), *told):
        assert word in done.err
    assert run_outrider("check-config", file).err == done.err


@pytest.mark.parametrize(
    "words", [("status",), ("jobs",), ("machines",), ("users",), ("explain", "1.0")]
)
def test_asking_a_daemon_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    code, modules = imported(*words, "--url", NOBODY)
    assert code == 3
    assert modules & HEAVY == set()


def test_the_status_is_shown_without_the_engine() -> None:
    class Told(Stranger):
        says = json.dumps(STATUS).encode()

    with serving(Told) as url:
        code, modules = imported("status", "--url", url)
    assert code == 0
    assert modules & HEAVY == set()
