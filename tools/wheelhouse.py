"""Wheels for an install without an index: `python -m tools.wheelhouse FOLDER [EXTRA...]`.

The folder contains Outrider's own wheel, the packages of `locks/runtime.txt` and of the requested
extras, and a `requirements.txt` that lists each by version and hash and forbids any index. The host
only needs `pip install -r FOLDER/requirements.txt`. Without options the wheels are for the Python
that runs this; `--python 3.11 --glibc 2.34` is for a host of another release.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from tools.lock import LOCKS, REPOSITORY

EXTRAS: Final = ("broker", "forecast", "htcondor", "reports", "sweeps")
"""Extras of pyproject.toml that a site may want; each has a lock."""
REQUIREMENTS: Final = "requirements.txt"
_HEAD: Final = """\
# Outrider and all its dependencies, for {target}.
# Offline: pip install -r {file}, in a separate environment. Hashes of
# dependencies are those of Outrider's locks.
--no-index
--find-links .
--only-binary :all:
--require-hashes
"""
_PIN: Final = re.compile(
    r"^(?P<pin>[A-Za-z0-9._-]+==[^\\\n]+?)\s*\\\n(?P<hashes>(?:\s+--hash=.*\n?)+)", re.MULTILINE
)
_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_OLDEST_GLIBC: Final = 5
"""The minor version of the oldest glibc (2.5) that any wheel is made for."""


class Target(NamedTuple):
    """The host for which wheels are collected.

    Attributes:
        python: its version of Python, such as ``3.11``.
        glibc: its minor version of glibc 2, such as 34; None: this host's.
        machine: its architecture, such as ``x86_64``.
    """

    python: str
    glibc: int | None
    machine: str

    @classmethod
    def here(cls) -> "Target":
        """Return this host with the running Python as the target."""
        return cls("{}.{}".format(*sys.version_info[:2]), None, platform.machine())

    def __str__(self) -> str:
        """Return the target's description for people."""
        glibc = "this host's glibc" if self.glibc is None else f"glibc 2.{self.glibc} or newer"
        return f"Python {self.python}, {self.machine}, {glibc}"

    @property
    def markers(self) -> dict[str, str]:
        """Values of the environment markers for the target."""
        return {
            "python_version": self.python, "python_full_version": f"{self.python}.0",
            "sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
            "platform_machine": self.machine, "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }  # fmt: skip

    @property
    def pip_options(self) -> list[str]:
        """Options that make pip download for the target instead of the running Python."""
        if self.glibc is None:
            return []
        tags = [f"manylinux_2_{minor}" for minor in range(self.glibc, _OLDEST_GLIBC - 1, -1)]
        tags += ["manylinux2014"]  # older names of 2_17, 2_12 and 2_5
        tags += ["manylinux2010", "manylinux1"] if "86" in self.machine else []
        platforms = [word for tag in tags for word in ("--platform", f"{tag}_{self.machine}")]
        return ["--python-version", self.python, "--implementation", "cp", *platforms]


def pins_for(target: Target, extras: Collection[str]) -> dict[str, list[str]]:
    """Return the file hashes of all packages for a host, by ``name==version``, from the locks.

    Raises:
        ValueError: there is no such extra, or two locks do not agree.
    """
    found: dict[str, tuple[str, list[str]]] = {}
    for part in ("runtime", *extras):
        if part != "runtime" and part not in EXTRAS:
            raise ValueError(f"no extra {part!r}; there are {', '.join(EXTRAS)}")
        for pin in _PIN.finditer((LOCKS / f"{part}.txt").read_text(encoding="utf-8")):
            wanted = Requirement(pin["pin"])
            if wanted.marker is None or wanted.marker.evaluate(target.markers):
                name = canonicalize_name(wanted.name)
                signed = f"{name}{wanted.specifier}"
                if found.get(name, (signed,))[0] != signed:
                    raise ValueError(f"locks disagree: {found[name][0]}, and {signed} of {part}")
                found[name] = signed, _HASH.findall(pin["hashes"])
    return dict(sorted(found.values()))


def requirements_of(wheels: Collection[Path], pins: Mapping[str, list[str]], target: Target) -> str:
    """Return the text of `requirements.txt`: each wheel with version and hash.

    Raises:
        ValueError: a wheel is not in the locks, or one is missing.
    """
    lines, missing = [_HEAD.format(target=target, file=REQUIREMENTS)], set(pins)
    for wheel in sorted(wheels):
        name, version, _, _ = parse_wheel_filename(wheel.name)
        signed = f"{name}=={version}"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if name != "outrider":
            if digest not in pins.get(signed, ()):
                raise ValueError(f"{wheel.name} is not a file in the locks")
            missing.discard(signed)
        lines.append(f"{signed} --hash=sha256:{digest}\n")
    if missing:
        raise ValueError(f"no wheel of {', '.join(sorted(missing))}")
    return "".join(lines)


def make(folder: Path, target: Target, extras: Collection[str]) -> None:
    """Replace a folder by a new wheelhouse; leave it unchanged on failure.

    Raises:
        ValueError: see `pins_for` and `requirements_of`; or the folder contains something else.
        subprocess.CalledProcessError: pip failed, and printed the cause.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / REQUIREMENTS).exists():
        raise ValueError(f"{folder} contains something else; use an empty or new folder")
    pins = pins_for(target, extras)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".wheelhouse-") as name:
        part = Path(name) / "wheels"
        wanted = Path(name) / "wanted.txt"
        wanted.write_text(
            "".join(
                " ".join([signed, *(f"--hash=sha256:{one}" for one in hashes)]) + "\n"
                for signed, hashes in pins.items()
            ),
            encoding="utf-8",
        )
        _pip(
            "download", "--require-hashes", "--only-binary", ":all:", "--requirement", wanted,
            "--dest", part, *target.pip_options,
        )  # fmt: skip
        # Its build requirements are locked (checkout.txt) and installed; no more is downloaded.
        _pip("wheel", "--no-build-isolation", "--wheel-dir", part, REPOSITORY)
        text = requirements_of(list(part.glob("*.whl")), pins, target)
        (part / REQUIREMENTS).write_text(text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)


def _pip(command: str, *words: str | Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *words],
        check=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )


def main() -> None:
    """Make the folder that the command line requests."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheelhouse", description=__doc__)
    here = Target.here()
    parser.add_argument("folder", type=Path)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=", ".join(EXTRAS))
    parser.add_argument("--python", default=here.python, help="of the host (%(default)s)")
    parser.add_argument("--glibc", help="of the host, such as 2.34 (default: this host's)")
    parser.add_argument("--machine", default=here.machine, help="of the host (%(default)s)")
    arguments = parser.parse_args()
    glibc = re.fullmatch(r"2\.(\d+)", arguments.glibc or "")
    other = (arguments.python, arguments.machine) != (here.python, here.machine)
    if (arguments.glibc is not None or other) and glibc is None:
        parser.error("wheels for another host need its glibc; use --glibc, such as 2.34")
    target = Target(arguments.python, int(glibc[1]) if glibc else None, arguments.machine)
    try:
        make(arguments.folder, target, dict.fromkeys(arguments.extras))
    except ValueError as error:
        sys.exit(f"wheelhouse: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"wheelhouse: pip failed with exit code {error.returncode}")
    count = len(list(arguments.folder.glob("*.whl")))
    print(f"  {arguments.folder}: {count} wheels for {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
