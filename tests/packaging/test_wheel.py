"""Contents of the wheel and the sdist: all that a site needs, and nothing harmful."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import outrider

IMPORT_PACKAGES = {"outrider", "outrider_adapters", "outrider_policies", "outrider_lab"}
SHARE = f"outrider-{outrider.__version__}.data/data/share/outrider"


def run(*command: str | Path, cwd: Path, within_s: float = 240.0) -> str:
    """Run to the end; a failure shows everything that the command said."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
        # The checkout on the path would hide what the wheel lacks.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m build` filled: the wheel is made from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=repository)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The built wheel file."""
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel_files(wheel: Path) -> list[str]:
    """The names of what the wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_and_the_sdist_bear_the_packages_version(dist: Path) -> None:
    version = outrider.__version__
    assert sorted(path.name for path in dist.iterdir()) == [
        f"outrider-{version}-py3-none-any.whl",
        f"outrider-{version}.tar.gz",
    ]


def test_the_wheel_installs_only_outriders_own_packages(wheel_files: list[str]) -> None:
    """`daemon` belongs to python-daemon; `adapters` and `policies` could be anybody's."""
    version = outrider.__version__
    tops = {name.split("/")[0] for name in wheel_files}
    assert tops - IMPORT_PACKAGES == {
        f"outrider-{version}.dist-info",
        f"outrider-{version}.data",
    }
    assert tops >= IMPORT_PACKAGES


def test_the_wheel_carries_every_module_of_the_checkout(
    repository: Path, wheel_files: list[str]
) -> None:
    sources = {
        path.relative_to(root).as_posix()
        for root in (repository / name for name in ("daemon", "adapters", "policies", "lab"))
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources - set(wheel_files) == set()
    assert any(name.endswith("/py.typed") for name in sources), "typed, but no py.typed says so"
    assert any(name.endswith(".html") for name in sources), "no status page"


@pytest.mark.parametrize("folder", ["systemd", "dashboards"])
def test_the_wheel_carries_units_and_dashboards(
    folder: str, repository: Path, wheel_files: list[str]
) -> None:
    shipped = {name for name in wheel_files if name.startswith(f"{SHARE}/{folder}/")}
    files = [path for path in (repository / folder).rglob("*") if path.is_file()]
    assert files, f"nothing in {folder}/"
    assert shipped == {f"{SHARE}/{path.relative_to(repository).as_posix()}" for path in files}


def test_the_sdist_can_be_tested_without_the_checkout(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("Makefile", "LICENSE", "README.md", "tests/conftest.py", "systemd", "tools"):
        assert any(name == needed or name.startswith(f"{needed}/") for name in names), needed
    assert not any(name.startswith((".venv/", ".git/")) for name in names)


def test_plain_pip_makes_a_working_command_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home)
    # compiling what it depends on takes longer than all else, and shows nothing
    pip = (sys.executable, "-m", "pip", "--python", home, "install", "--quiet", "--no-compile")
    run(*pip, wheel, cwd=tmp_path)

    said = run(home / "bin" / "outrider", "--version", cwd=tmp_path)
    assert outrider.__version__ in said
    assert (home / "share" / "outrider" / "systemd" / "outrider.service").is_file()
