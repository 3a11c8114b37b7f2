"""A Debian package out of a folder of wheels: `python -m tools.debian_package WHEELHOUSE FOLDER`.

The folder of wheels is one that `tools.wheelhouse` made. Its packages are installed as a virtual
environment in /usr/lib/outrider, with Debian's own Python, beside which they will run: the package
is for that minor version of Python and this architecture. It needs dpkg-deb, and no debhelper.
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
"""Where the environment lies, below the root."""
SMALL: Final = ("-Zxz",)
QUICK: Final = ("-Zgzip", "-z1")
SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
_KEPT: Final = re.compile(r"outrider|python[\d.]*")
"""Commands that stay in the environment; those of other packages are nobody's here."""
_GLIBC: Final = re.compile(r"manylinux_2_(\d+)_")
_ALIASES: Final = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}
_SCRIPTS: Final = ("postinst", "prerm", "postrm")


def needed_glibc(wheels: list[Path]) -> int:
    """The minor version of glibc 2 that all of these wheels run with."""
    needed = [0]
    for wheel in wheels:
        platform = wheel.stem.rsplit("-", 1)[1]
        found = [int(one) for one in _GLIBC.findall(platform)]
        found += [minor for alias, minor in _ALIASES.items() if f"{alias}_" in platform]
        needed.append(min(found, default=0))
    return max(needed)


def dependencies(python: str, wheels: list[Path]) -> str:
    """The field `Depends`: compiled packages run with one minor version of Python alone."""
    major, minor = map(int, python.split("."))
    return (
        f"python3 (>= {python}), python3 (<< {major}.{minor + 1}), "
        f"libc6 (>= 2.{needed_glibc(wheels)}), libgcc-s1, libstdc++6"
    )


def extras_in(wheels: list[Path], python: str) -> list[str]:
    """The extras whose packages are all there."""
    there = {parse_wheel_filename(wheel.name)[0] for wheel in wheels}
    target = Target.here()._replace(python=python)
    return [
        extra
        for extra in EXTRAS
        if {pin.partition("==")[0] for pin in pins_for(target, [extra])} <= there
    ]


def stage(wheelhouse: Path, root: Path, python: Path) -> None:
    """Lay the whole tree of the package below a root.

    Args:
        wheelhouse: the folder of wheels.
        root: empty; not where the package will be installed.
        python: Debian's own, as its full path.

    Raises:
        subprocess.CalledProcessError: venv or pip failed; it has said why.
    """
    _environment(wheelhouse, root, python)
    link = root / "usr/bin/outrider"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../lib/{HOME.rpartition('/')[2]}/bin/outrider")
    units = root / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in sorted((REPOSITORY / "systemd").glob("outrider*.*")):
        if unit.is_file() and unit.suffix in (".service", ".socket", ".timer"):
            # The helper is a module of the environment's, not of the system's Python.
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
    # Of what was written while it lay elsewhere, these two name the place.
    for file in (home / "bin/outrider", home / "pyvenv.cfg"):
        text = file.read_text(encoding="utf-8").replace(str(home), f"/{HOME}")
        file.write_text(text, encoding="utf-8")
    for cache in list(home.rglob("__pycache__")):
        shutil.rmtree(cache)


def control_files(root: Path, wheelhouse: Path, python: str, architecture: str) -> None:
    """Write the folder DEBIAN beside the staged tree."""
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
    sums = (  # of all but the configuration, as dpkg wants them
        f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.relative_to(root)}\n"  # noqa: S324
        for file in files
        if not file.is_relative_to(root / "etc")
    )
    (folder / "md5sums").write_text("".join(sums), encoding="utf-8")
    for name in _SCRIPTS:
        shutil.copyfile(SOURCE / "debian" / name, folder / name)
        (folder / name).chmod(0o755)


def maintainer() -> str:
    """Who answers for the package: whoever makes it, as Debian's tools are told."""
    name = os.environ.get("DEBFULLNAME", "The Outrider authors")
    return f"{name} <{os.environ.get('DEBEMAIL', 'outrider@localhost')}>"


def _write_changelog(root: Path, version: str) -> None:
    """The one entry that Debian asks for; what has changed stands in the project's own."""
    changed = REPOSITORY / "CHANGELOG.md"
    when = formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", changed.stat().st_mtime)))
    text = (
        f"outrider ({version}) unstable; urgency=medium\n\n"
        f"  * What has changed stands in {changed.name} of the sources.\n\n"
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
    """Write the package into a folder, and say where it is.

    Args:
        wheelhouse: the folder of wheels.
        out: made where it is missing.
        python: Debian's own.
        packed: how dpkg-deb compresses.

    Raises:
        FileNotFoundError: there are no wheels, no dpkg-deb, or no Python of Debian's.
        subprocess.CalledProcessError: a program failed; it has said why.
    """
    if not (wheelhouse / REQUIREMENTS).is_file():
        raise FileNotFoundError(f"{wheelhouse} holds no wheels: make wheelhouse")
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    minor = _said(python, "-c", asked)
    architecture = _said("dpkg", "--print-architecture")
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


def _said(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Make the package that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.debian_package", description=__doc__)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, default=SYSTEM_PYTHON, help="%(default)s")
    told = parser.parse_args()
    try:
        made = make(told.wheelhouse, told.folder, told.python)
    except FileNotFoundError as error:
        sys.exit(f"Debian package: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"Debian package: {error.cmd[0]} ended with {error.returncode}")
    print(f"  {made}: {made.stat().st_size / 1e6:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
