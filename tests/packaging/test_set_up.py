"""Conditions under which `make` upgrades the virtual environment or creates a new one."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.set_up import RECORD, reason_to_recreate, requirement_names

PROJECT: dict[str, Any] = {
    "dependencies": ["aiohttp>=3.10", 'asyncinotify>=4.2; sys_platform == "linux"'],
    "optional-dependencies": {"dev": ["prometheus_client>=0.20", "aiohttp[speedups]>=3.10"]},
}


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment as `make demo` leaves it, as far as is looked at."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    record(tmp_path, [], "aiohttp", "asyncinotify")
    return tmp_path


def record(venv: Path, extras: list[str], *requirements: str) -> None:
    (venv / RECORD).write_text(json.dumps({"extras": extras, "requirements": requirements}))


def test_requirements_are_known_by_the_names_that_pip_compares() -> None:
    assert requirement_names(PROJECT, []) == {"aiohttp", "asyncinotify"}
    assert requirement_names(PROJECT, ["dev"]) == {"aiohttp", "asyncinotify", "prometheus-client"}


def test_an_environment_is_kept_where_only_something_new_is_asked_for(venv: Path) -> None:
    record(venv, [], "aiohttp")
    assert reason_to_recreate(venv, PROJECT) is None


def test_a_requirement_that_nobody_asks_for_any_more_does_not_linger(venv: Path) -> None:
    record(venv, [], "aiohttp", "asyncinotify", "flask")
    assert reason_to_recreate(venv, PROJECT) == "flask is no longer required"


def test_one_that_only_development_needs_now_does_not_linger_beside_the_demo(venv: Path) -> None:
    record(venv, [], "aiohttp", "asyncinotify", "prometheus-client")
    assert reason_to_recreate(venv, PROJECT) == "prometheus-client is no longer required"
    record(venv, ["dev"], "aiohttp", "asyncinotify", "prometheus-client")
    assert reason_to_recreate(venv, PROJECT) is None


def test_an_extra_that_is_gone_takes_its_requirements_with_it(venv: Path) -> None:
    record(venv, ["docs"], "aiohttp", "asyncinotify", "sphinx")
    assert reason_to_recreate(venv, PROJECT) == "sphinx is no longer required"


def test_an_environment_of_another_or_no_python_is_made_anew(venv: Path) -> None:
    python = venv / "bin" / "python"
    python.unlink()
    assert reason_to_recreate(venv, PROJECT) == "it does not exist yet"
    python.write_text("#!/bin/sh\necho 3.9\n")
    python.chmod(0o755)
    assert "does not run Python 3." in (reason_to_recreate(venv, PROJECT) or "")


def test_an_environment_that_nobody_described_is_made_anew(venv: Path) -> None:
    (venv / RECORD).write_text("{")
    assert "missing or unreadable" in (reason_to_recreate(venv, PROJECT) or "")
