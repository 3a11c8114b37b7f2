"""The locks: they fit pyproject.toml, pin by hash, name no index, and plain pip accepts them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.lock import (
    EVERYTHING,
    LICENCES,
    LOCKS,
    OLDEST,
    PARTS,
    digest,
    digest_in,
    pins_in,
    project,
    required,
)
from tools.set_up import lock_files

PYTHONS = ("3.11", "3.12", "3.13")


def text_of(part: str) -> str:
    return (LOCKS / f"{part}.txt").read_text(encoding="utf-8")


def linux(python: str) -> dict[str, str]:
    return {
        "python_version": python, "python_full_version": f"{python}.4", "sys_platform": "linux",
        "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64",
        "implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": "",
    }  # fmt: skip


def pinned(part: str, python: str) -> dict[str, str]:
    """Versions by name, as a Python on Linux installs them."""
    found: dict[str, str] = {}
    for pin in map(Requirement, pins_in(text_of(part))):
        if pin.marker is None or pin.marker.evaluate(linux(python)):
            name = canonicalize_name(pin.name)
            assert name not in found, f"{part}: {name} is pinned twice for Python {python}"
            (one,) = pin.specifier
            found[name] = one.version
    return found


@pytest.mark.parametrize("part", PARTS)
def test_a_lock_was_made_from_these_requirements(part: str) -> None:
    made_from = digest_in(text_of(part))
    assert made_from == digest(required(part, project()), OLDEST), (
        f"locks/{part}.txt does not match pyproject.toml: run `make lock` and commit what it writes"
    )


def test_a_changed_requirement_would_be_noticed() -> None:
    own = project()
    own["dependencies"] = [*own["dependencies"], "flask>=3"]
    assert digest(required(EVERYTHING, own), OLDEST) != digest_in(text_of(EVERYTHING))
    assert digest(required("runtime", own), OLDEST) != digest_in(text_of("runtime"))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("part", PARTS)
def test_every_requirement_is_pinned_to_a_version_that_it_allows(part: str, python: str) -> None:
    versions = pinned(part, python)
    for asked in map(Requirement, required(part, project())):
        if asked.marker is None or asked.marker.evaluate(linux(python)):
            name = canonicalize_name(asked.name)
            assert name in versions, f"locks/{part}.txt lacks {name}"
            assert asked.specifier.contains(versions[name]), f"{asked}: {versions[name]}"


@pytest.mark.parametrize("python", PYTHONS)
def test_what_locks_have_in_common_they_pin_alike(python: str) -> None:
    everything = pinned(EVERYTHING, python)
    for part in PARTS:
        for name, version in pinned(part, python).items():
            assert everything.get(name, version) == version, f"{part}: {name}"
    assert pinned("runtime", python).keys() <= everything.keys()
    assert pinned("checkout", python).keys() <= everything.keys()


@pytest.mark.parametrize("part", PARTS)
def test_every_pin_has_hashes_and_no_line_names_an_index(part: str) -> None:
    text = text_of(part)
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
    assert len(blocks) == len(pins_in(text)) > 0
    for block in blocks:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|--trusted-host|@ ", text)


def test_the_installed_packages_need_nothing_that_the_lock_lacks() -> None:
    """Followed through their own metadata, from what the project asks for, on this Python."""
    from importlib.metadata import PackageNotFoundError, requires

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions, seen = pinned("runtime", python), set()
    waiting = [(name, "") for name in map(_name, required("runtime", project()))]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        assert name in versions, f"locks/runtime.txt lacks {name}"
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")
        for need in map(Requirement, needs):
            environment = linux(python) | {"extra": extra}
            if need.marker is None or need.marker.evaluate(environment):
                waiting += [(_name(str(need)), one) for one in (need.extras or {""})]


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def test_plain_pip_takes_the_lock_and_refuses_a_file_of_another_hash(tmp_path: Path) -> None:
    """Against an index of one folder, for the test needs no network."""
    (wheels := tmp_path / "wheels").mkdir()
    (source := tmp_path / "lone").mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "lone"\nversion = "1"\n'
    )
    (source / "lone.py").write_text("")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", str(wheels)]
    subprocess.run([*build, str(source)], check=True, capture_output=True, timeout=240)
    (wheel,) = wheels.glob("*.whl")
    hashed = subprocess.run(
        [sys.executable, "-m", "pip", "hash", str(wheel)],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout.split()[-1]  # fmt: skip

    def pip(right: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "lock.txt").write_text(f"lone==1 \\\n    {right}\n")
        return subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes",
                "--no-index", "--find-links", str(wheels), "--target", str(tmp_path / right[-8:]),
                "-r", str(tmp_path / "lock.txt"),
            ],
            capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    assert pip(hashed).returncode == 0
    refused = pip(f"--hash=sha256:{'0' * 64}")
    assert refused.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stdout + refused.stderr


def test_set_up_installs_from_locks_alone() -> None:
    names = [[file.name for file in group] for group in lock_files(["dev"])]
    assert names == [["dev.txt"]]
    names = [[file.name for file in group] for group in lock_files([])]
    assert names == [["runtime.txt", "checkout.txt"]]
    with pytest.raises(FileNotFoundError, match="make lock"):
        lock_files(["a-new-extra"])


def test_every_package_of_a_site_is_listed_with_its_licence() -> None:
    page = LICENCES.read_text(encoding="utf-8")
    rows = {
        row[0].lower().replace("_", "-"): row
        for row in re.findall(r"\| (\S+) \| (\S+) \| (.+) \|", page)
    }
    for name, version in pinned("runtime", "3.11").items():
        assert name in rows, f"locks/licences.md lacks {name}: run `make lock`"
        if sys.version_info[:2] == (3, 11):
            assert rows[name][1] == version
        assert rows[name][2] != "not declared", f"{name} declares no licence"
