"""Tests of the example packages: built, installed, found and used, as in the tutorial."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outrider.formats.campus.files import write_campus
from outrider.plugins.finding import ADAPTERS, find
from outrider.testing.campuses import tiny_campus

EXAMPLES = ("adapter-csv-watch", "policy-coolest-room", "reader-desk-log")
OUTRIDER = (sys.executable, "-c", "from outrider.cli.entry import main; raise SystemExit(main())")

needs_installed_product = pytest.mark.skipif(
    "logtail" not in find(ADAPTERS),
    reason="outrider is not installed here, only on the path: pip install -e .",
)


class Installed:
    """Examples in a separate folder, next to the product that the tests themselves use."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.sources = folder / "sources"
        here = [
            str(Path(part).resolve())
            for part in os.environ.get("PYTHONPATH", "").split(":")
            if part
        ]
        self.env = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(self.site), *here]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
        }

    def install(self, source: Path) -> None:
        copy = self.sources / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        self.run(
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--no-build-isolation", "--disable-pip-version-check", "--target", self.site, copy,
        )  # fmt: skip

    def run(self, *command: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.sources.parent,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=240.0,
            check=False,
        )
        assert done.returncode == code, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout if code == 0 else done.stdout + done.stderr

    def outrider(self, *words: str | Path, code: int = 0) -> str:
        return self.run(*OUTRIDER, *words, code=code)


SKIPPED = {"policy-coolest-room": 1}
"""Tests of the suite that do not apply: the policy does not predict."""


@pytest.fixture(scope="module")
def installed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the example packages into a separate folder."""
    examples = Installed(tmp_path_factory.mktemp("examples"))
    for name in EXAMPLES:
        examples.install(repository / "examples" / name)
    return examples


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_fits_on_one_screen(repository: Path, example: str) -> None:
    (module,) = (repository / "examples" / example).glob("outrider_*/__init__.py")
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_examples_own_tests_pass_where_it_is_installed(
    installed: Installed, example: str
) -> None:
    output = installed.run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", installed.sources / example
    )
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None
    assert int(passed[1]) >= 12
    skipped = re.search(r"(\d+) skipped", output)
    assert skipped is None or int(skipped[1]) == SKIPPED[example], output


def test_the_policy_is_found_by_its_name_and_replayed(installed: Installed, tmp_path: Path) -> None:
    write_campus(tiny_campus(), tmp_path)

    def replay(*options: str) -> dict[str, Any]:
        words: tuple[str | Path, ...] = (
            "replay",
            tmp_path,
            "--policy",
            "coolest_room",
            "--json",
            *options,
        )
        (run,) = json.loads(installed.outrider(*words))["runs"]
        found: dict[str, Any] = run
        return found

    run = replay()
    assert run["policy"] == "coolest_room"
    assert run["settings"]["half_life_s"] == 7200.0
    assert run["jobs"]["submitted"] == 150
    assert run["jobs"]["completed"] > 100
    assert replay()["ledger_sha256"] == run["ledger_sha256"]
    other = replay("--preset", "coolest_room=thick_walls", "--seed", "1")
    assert other["settings"]["half_life_s"] == 43_200.0
    assert other["ledger_sha256"] != run["ledger_sha256"]


def test_all_are_listed_among_the_plugins(installed: Installed) -> None:
    listed = json.loads(installed.outrider("plugins", "--json"))
    plugins = {p["name"]: p for group in listed.values() for p in group}
    for name, distribution in (
        ("csv_watch", "outrider-csv-watch"),
        ("coolest_room", "outrider-coolest-room"),
        ("desk-log", "outrider-desk-log"),
    ):
        assert plugins[name]["state"] == "ok"
        assert plugins[name]["distribution"] == distribution
        assert name == "desk-log" or [s["name"] for s in plugins[name]["settings"]]


def test_the_reader_is_used_by_ingest_which_finds_it_by_the_file(
    installed: Installed, tmp_path: Path
) -> None:
    log = tmp_path / "desk.log"
    log.write_text("1795231020 submit 17 ann 2\n1795231025 start 17 pc-4\n1795231049 done 17\n")
    ingested = json.loads(installed.outrider("ingest", log, "--json"))
    assert ingested["format"] == "desk-log"
    assert ingested["events"] == {"submitted": 1, "started": 1, "completed": 1}
    assert ingested["goodput_s"] == 2 * 24


def test_the_lever_keeps_its_contract(repository: Path) -> None:
    folder = repository / "examples" / "lever"
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder))
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=120.0,
        check=False,
    )  # fmt: skip
    assert "7 passed" in done.stdout, done.stdout + done.stderr


@needs_installed_product
def test_a_configuration_may_name_them(installed: Installed, tmp_path: Path) -> None:
    config = tmp_path / "outrider.toml"
    config.write_text(
        'state_dir = "state"\n[adapters.csv_watch]\npath = "events.csv"\n[policies.coolest_room]\n'
    )
    installed.outrider("check-config", config)
    config.write_text(config.read_text().replace("path =", "paths ="))
    assert 'did you mean "path"?' in installed.outrider("check-config", config, code=2)
