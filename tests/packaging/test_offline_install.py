"""An install without an index: on a clean Debian without network, and what EL9 would need."""

import re
import zipfile
from pathlib import Path

import pytest
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from tests.packaging.clean_root import CleanRoot
from tests.packaging.conftest import RootOf
from tests.packaging.first_steps import FIRST_STEPS
from tools.wheelhouse import EXTRAS, Target, make

EL9 = Target("3.11", 34, "x86_64")
EL9_LIBRARIES = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}
"""The newest versions of symbols that glibc 2.34 and the libstdc++ of GCC 11 have."""
_VERSION = re.compile(rb"\0(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)(?=\0)")


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_clean_debian_without_network_installs_and_runs_it(root_of: RootOf, wheels: Path) -> None:
    said = installed_and_run(root_of("python3", "python3-venv"), wheels)
    assert "the demo answers" in said
    assert "==> /etc/systemd/system/outrider.service" in said


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_changed_wheel_is_refused_there_too(root_of: RootOf, wheels: Path) -> None:
    root = root_of("python3", "python3-venv")
    root.takes(wheels, "/media/wheelhouse")
    (wheel,) = (root.folder / "media/wheelhouse").glob("numpy-*.whl")
    with wheel.open("ab") as file:
        file.write(b"\0")
    done = root.tries(
        "python3 -m venv /opt/outrider\n"
        "/opt/outrider/bin/pip install -r /media/wheelhouse/requirements.txt",
        within_s=600,
    )
    assert done.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stdout + done.stderr
    assert not (root.folder / "opt/outrider/bin/outrider").exists()


def installed_and_run(root: CleanRoot, wheelhouse: Path) -> str:
    """Output of a clean Debian 12 (Python 3.11) that installs a folder and runs it."""
    root.takes(wheelhouse, "/media/wheelhouse")
    return root.runs(
        """
        python3 -m venv /opt/outrider
        /opt/outrider/bin/pip install --no-index --find-links /media/wheelhouse \\
            --require-hashes -r /media/wheelhouse/requirements.txt
        PATH=/opt/outrider/bin:$PATH PYTHON=python3
        """
        + FIRST_STEPS
        + "/opt/outrider/bin/python -c 'import amqtt, numba, htcondor2, duckdb, matplotlib, dask'\n"
        + "outrider install-service --config /tmp/outrider.toml --dry-run | head -3\n",
        within_s=900,
    )


def fits(wheel: Path, target: Target) -> bool:
    """Return whether pip of the host would take the wheel."""
    python = tuple(map(int, target.python.split(".")))
    words = target.pip_options
    platforms = [words[i + 1] for i, word in enumerate(words) if word == "--platform"]
    takes = {*cpython_tags(python, platforms=platforms)}
    takes |= {*compatible_tags(python, f"cp{python[0]}{python[1]}", platforms)}
    return not takes.isdisjoint(parse_wheel_filename(wheel.name)[3])


def too_new(wheel: Path) -> list[str]:
    """Compiled files of a wheel that ask for a symbol newer than EL9 has."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name) if ".so" in Path(name).name else b""
            if not data.startswith(b"\x7fELF"):
                continue
            for library, version in _VERSION.findall(data):
                number = tuple(map(int, version.decode().split(".")))
                if number > EL9_LIBRARIES[library.decode()]:
                    found.append(f"{wheel.name}: {name}: {library.decode()}_{version.decode()}")
    return found


def test_a_file_that_asks_for_a_newer_glibc_would_be_noticed(tmp_path: Path) -> None:
    wheel = tmp_path / "made-1-cp311-cp311-manylinux_2_36_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made.so", b"\x7fELF..\0GLIBC_2.34\0GLIBC_2.36\0GLIBCXX_3.4.29\0")
    assert not fits(wheel, EL9)
    assert [line.rpartition(" ")[2] for line in too_new(wheel)] == ["GLIBC_2.36"]


@pytest.mark.long
@pytest.mark.timeout(2700)
def test_the_wheels_for_el9_fit_its_python_and_its_libraries_and_run_under_a_python_like_it(
    root_of: RootOf, tmp_path: Path
) -> None:
    """No root of EL9 can be had here. Its Python, 3.11, is that of Debian 12, on a newer glibc."""
    folder = tmp_path / "wheelhouse"
    make(folder, EL9, EXTRAS)
    found = list(folder.glob("*.whl"))
    assert len(found) > 70
    assert [wheel.name for wheel in found if not fits(wheel, EL9)] == []
    assert [line for wheel in found for line in too_new(wheel)] == []
    assert "the demo answers" in installed_and_run(root_of("python3", "python3-venv"), folder)
