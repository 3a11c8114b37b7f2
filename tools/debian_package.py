"""Debian package from a folder of wheels: `python -m tools.debian_package WHEELHOUSE FOLDER`.

`tools.wheelhouse` makes the folder of wheels. Its packages are installed as a virtual environment
in /usr/lib/outrider that uses Debian's own Python, so the package is for that minor version of
Python and this architecture. It needs dpkg-deb, and no debhelper.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Final

from packaging.utils import parse_wheel_filename

from tools.lock import LICENCES, REPOSITORY
from tools.wheelhouse import EXTRAS, REQUIREMENTS, Target, pins_for

SOURCE: Final = REPOSITORY / "packaging"
HOME: Final = "usr/lib/outrider"
"""Path of the virtual environment, below the root."""
SMALL: Final = ("-Zxz",)
QUICK: Final = ("-Zgzip", "-z1")
SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
_KEPT: Final = re.compile(r"outrider|python[\d.]*")
"""Commands that stay in the environment; those of other packages are removed."""
_GLIBC: Final = re.compile(r"manylinux_2_(\d+)_")
_ALIASES: Final = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}
_SCRIPTS: Final = ("postinst", "prerm", "postrm")


def needed_glibc(wheels: list[Path]) -> int:
    """Return the minor version of glibc 2 that all of these wheels run with."""
    needed = [0]
    for wheel in wheels:
        platform = wheel.stem.rsplit("-", 1)[1]
        found = [int(one) for one in _GLIBC.findall(platform)]
        found += [minor for alias, minor in _ALIASES.items() if f"{alias}_" in platform]
        needed.append(min(found, default=0))
    return max(needed)


def dependencies(python: str, wheels: list[Path]) -> str:
    """Return the field `Depends`: compiled packages need one minor version of Python."""
    major, minor = map(int, python.split("."))
    return (
        f"python3 (>= {python}), python3 (<< {major}.{minor + 1}), "
        f"libc6 (>= 2.{needed_glibc(wheels)}), libgcc-s1, libstdc++6"
    )


def extras_in(wheels: list[Path], python: str) -> list[str]:
    """Return the extras whose packages are all among the wheels."""
    there = {parse_wheel_filename(wheel.name)[0] for wheel in wheels}
    target = Target.here()._replace(python=python)
    return [
        extra
        for extra in EXTRAS
        if {pin.partition("==")[0] for pin in pins_for(target, [extra])} <= there
    ]


def stage(wheelhouse: Path, root: Path, python: Path) -> None:
    """Write the package's file tree below a root.

    Args:
        wheelhouse: the folder of wheels.
        root: an empty folder, not the place where the package will be installed.
        python: full path of Debian's own Python.

    Raises:
        subprocess.CalledProcessError: venv or pip failed, and printed the cause.
    """
    _environment(wheelhouse, root, python)
    link = root / "usr/bin/outrider"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../lib/{HOME.rpartition('/')[2]}/bin/outrider")
    units = root / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in sorted((REPOSITORY / "systemd").glob("outrider*.*")):
        if unit.is_file() and unit.suffix in (".service", ".socket", ".timer"):
            # The helper is a module in the environment, not in the system's Python.
            text = unit.read_text(encoding="utf-8")
            text = text.replace("ExecStart=/usr/bin/python3 ", f"ExecStart=/{HOME}/bin/python ")
            (units / unit.name).write_text(text, encoding="utf-8")
    places = {
        REPOSITORY / "systemd/sysusers.d/outrider.conf": "usr/lib/sysusers.d/outrider.conf",
        SOURCE / "outrider.toml": "etc/outrider/outrider.toml",
        SOURCE / "debian/copyright": "usr/share/doc/outrider/copyright",
        REPOSITORY
        / "systemd/outrider.toml.example": "usr/share/doc/outrider/outrider.toml.example",
        REPOSITORY / "README.md": "usr/share/doc/outrider/README.md",
        LICENCES: "usr/share/doc/outrider/licences.md",
    }
    for source, place in places.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, root / place)
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or (
                path.stat().st_mode & stat.S_IXUSR and ".so" not in path.suffixes
            )
            path.chmod(0o755 if runs else 0o644)


def _environment(wheelhouse: Path, root: Path, python: Path) -> None:
    home = root / HOME
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    command: list[str | Path] = [
        sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--quiet",
        "--no-deps", "--no-compile", "--requirement", wheelhouse / REQUIREMENTS,
    ]  # fmt: skip
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    for file in (home / "bin").iterdir():
        if not _KEPT.fullmatch(file.name):
            file.unlink()
    # These two files contain the path at which they were written.
    for file in (home / "bin/outrider", home / "pyvenv.cfg"):
        text = file.read_text(encoding="utf-8").replace(str(home), f"/{HOME}")
        file.write_text(text, encoding="utf-8")
    for cache in list(home.rglob("__pycache__")):
        shutil.rmtree(cache)


def control_files(root: Path, wheelhouse: Path, python: str, architecture: str) -> None:
    """Write the folder DEBIAN next to the staged tree."""
    wheels = sorted(wheelhouse.glob("*.whl"))
    version = next(
        parse_wheel_filename(w.name)[1] for w in wheels if w.name.startswith("outrider-")
    )
    _write_changelog(root, f"{version}-1")
    files = list(_files(root))
    folder = root / "DEBIAN"
    folder.mkdir(mode=0o755)
    control = (
        (SOURCE / "debian/control.in")
        .read_text(encoding="utf-8")
        .format(
            version=f"{version}-1",
            maintainer=maintainer(),
            architecture=architecture,
            installed_kib=sum(-(-file.stat().st_size // 1024) for file in files),
            depends=dependencies(python, wheels),
            extras=", ".join(extras_in(wheels, python)) or "none",
        )
    )
    (folder / "control").write_text(control, encoding="utf-8")
    (folder / "conffiles").write_text("/etc/outrider/outrider.toml\n", encoding="utf-8")
    sums = (  # of all files but the configuration, as dpkg requires
        f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(root)}\n"  # noqa: S324
        for file in files
        if not file.is_relative_to(root / "etc")
    )
    (folder / "md5sums").write_text("".join(sums), encoding="utf-8")
    for name in _SCRIPTS:
        shutil.copyfile(SOURCE / "debian" / name, folder / name)
        (folder / name).chmod(0o755)


def maintainer() -> str:
    """Return the package's maintainer, from the variables that Debian's tools use."""
    name = os.environ.get("DEBFULLNAME", "The Outrider authors")
    return f"{name} <{os.environ.get('DEBEMAIL', 'outrider@localhost')}>"


def _write_changelog(root: Path, version: str) -> None:
    """Write the one entry that Debian requires; the project's changelog has the changes."""
    changed = REPOSITORY / "CHANGELOG.md"
    when = formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", changed.stat().st_mtime)))
    text = (
        f"outrider ({version}) unstable; urgency=medium\n\n"
        f"  * See {changed.name} in the sources for the changes.\n\n"
        f" -- {maintainer()}  {when}\n"
    )
    file = root / "usr/share/doc/outrider/changelog.Debian.gz"
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    file.chmod(0o644)


def _files(root: Path) -> Iterator[Path]:
    yield from sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def make(
    wheelhouse: Path, out: Path, python: Path = SYSTEM_PYTHON, packed: Sequence[str] = SMALL
) -> Path:
    """Write the package into a folder, and return its path.

    Args:
        wheelhouse: the folder of wheels.
        out: output folder, created if missing.
        python: Debian's own Python.
        packed: compression options of dpkg-deb.

    Raises:
        FileNotFoundError: wheels, dpkg-deb or Debian's Python are missing.
        subprocess.CalledProcessError: a program failed, and printed the cause.
    """
    if not (wheelhouse / REQUIREMENTS).is_file():
        raise FileNotFoundError(f"{wheelhouse} contains no wheels; run `make wheelhouse`")
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    minor = _output_of(python, "-c", asked)
    architecture = _output_of("dpkg", "--print-architecture")
    exact = python.with_name(f"python{minor}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        stage(wheelhouse, root, exact)
        control_files(root, wheelhouse, minor, architecture)
        build: list[str | Path] = ["dpkg-deb", "--root-owner-group", *packed, "--build", root, out]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    version = next(w for w in wheelhouse.glob("outrider-*.whl")).name.split("-")[1]
    return out / f"outrider_{version}-1_{architecture}.deb"


def _output_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Make the package that the command line requests."""
    parser = argparse.ArgumentParser(prog="python -m tools.debian_package", description=__doc__)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, default=SYSTEM_PYTHON, help="%(default)s")
    arguments = parser.parse_args()
    try:
        made = make(arguments.wheelhouse, arguments.folder, arguments.python)
    except FileNotFoundError as error:
        sys.exit(f"Debian package: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"Debian package: {error.cmd[0]} failed with exit code {error.returncode}")
    print(f"  {made}: {made.stat().st_size / 1e6:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
