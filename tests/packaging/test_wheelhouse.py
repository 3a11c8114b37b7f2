"""The folder of wheels: what goes into it, for which host, and that pip takes nothing else."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.lock import project
from tools.wheelhouse import EXTRAS, REQUIREMENTS, Target, make, pins_for, requirements_of

HERE = Target.here()
EL9 = Target("3.11", 34, "x86_64")


def named(pins: dict[str, list[str]]) -> set[str]:
    return {pin.partition("==")[0] for pin in pins}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_extra_of_a_site_is_pinned_by_hash_beside_what_all_need(python: str) -> None:
    target = EL9._replace(python=python)
    alone, everything = pins_for(target, []), pins_for(target, EXTRAS)
    assert {"aiohttp", "numpy", "scikit-learn", "scipy"} <= named(alone)
    assert named(everything) - named(alone) >= {
        "amqtt",
        "numba",
        "htcondor",
        "duckdb",
        "distributed",
    }
    assert all(everything.values())
    assert len(named(everything)) == len(everything), "a package in two versions"


def test_its_extras_are_extras_of_the_project() -> None:
    assert set(EXTRAS) <= project()["optional-dependencies"].keys()
    with pytest.raises(ValueError, match="no extra 'dev'"):
        pins_for(HERE, ["dev"])


def test_versions_are_those_for_the_hosts_python() -> None:
    assert named(pins_for(EL9, [])) - named(pins_for(EL9._replace(python="3.13"), [])) == {
        "typing-extensions"
    }


def test_wheels_for_another_host_need_no_newer_glibc_than_it_has() -> None:
    words = EL9.pip_options
    platforms = [words[i + 1] for i, word in enumerate(words) if word == "--platform"]
    assert {"manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64"} <= {
        *platforms
    }
    assert "manylinux_2_35_x86_64" not in platforms
    assert words[:2] == ["--python-version", "3.11"]
    assert HERE.pip_options == []


def test_a_file_that_the_locks_do_not_name_is_refused_and_so_is_a_gap(tmp_path: Path) -> None:
    wheel = tmp_path / "six-1.17.0-py2.py3-none-any.whl"
    wheel.write_bytes(b"not what the lock names")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(ValueError, match=r"six-1\.17\.0"):
        requirements_of([wheel], {"six==1.17.0": ["0" * 64]}, HERE)
    with pytest.raises(ValueError, match="no wheel of click"):
        requirements_of([wheel], {"six==1.17.0": [right], "click==8": []}, HERE)
    text = requirements_of([wheel], {"six==1.17.0": ["0" * 64, right]}, HERE)
    assert text.splitlines()[-1] == f"six==1.17.0 --hash=sha256:{right}"


def test_a_folder_with_something_else_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(ValueError, match="contains something else"):
        make(tmp_path, HERE, [])
    assert (tmp_path / "thesis.tex").read_text() == "all of it"


def test_pip_installs_from_the_folder_alone_and_refuses_a_changed_wheel(
    repository: Path, tmp_path: Path
) -> None:
    """Outrider's own wheel; what it depends on is left out here, for the test needs no network."""
    folder = tmp_path / "wheels"
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder)]
    subprocess.run([*build, str(repository)], check=True, capture_output=True, timeout=240)
    (wheel,) = folder.glob("*.whl")
    (folder / REQUIREMENTS).write_text(requirements_of([wheel], {}, HERE))

    def pip(target: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tmp_path / target),
            "--requirement", str(folder / REQUIREMENTS),
        ]  # fmt: skip
        return subprocess.run(
            command, cwd="/", capture_output=True, text=True, timeout=240, check=False,
            env={**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/"},
        )  # fmt: skip

    taken = pip("right")
    assert taken.returncode == 0, taken.stderr
    assert (tmp_path / "right/outrider/__init__.py").is_file()
    with wheel.open("ab") as file:
        file.write(b"\0")
    refused = pip("wrong")
    assert refused.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stdout + refused.stderr
