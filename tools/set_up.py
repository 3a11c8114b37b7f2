"""Set-up or upgrade of the virtual environment: `python tools/set_up.py FOLDER [EXTRA...]`.

An existing environment is upgraded in place, which takes seconds. It is created again if an upgrade
would leave errors: if it belongs to another Python, or contains a requirement that pyproject.toml
no longer has (an import of it would work here and fail on all other machines). Packages that only
other packages needed may stay, since the project does not import them.

Packages are those of `locks/`, by version and hash.

It uses only the standard library, because it runs before anything is installed.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
RECORD: Final = "installed-for.json"
"""File in the environment with the extras and requirements it was installed for."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION: Final = "import sys; print('%d.%d' % sys.version_info[:2])"


def requirement_names(project: dict[str, Any], extras: Collection[str]) -> set[str]:
    """Return the names of packages that a ``[project]`` table requires, with these extras.

    Raises:
        KeyError: there is no such extra.
    """
    asked = [*project["dependencies"]]
    for extra in extras:
        asked += project["optional-dependencies"][extra]
    found = (_NAME.match(requirement) for requirement in asked)
    return {re.sub(r"[-_.]+", "-", name[0]).lower() for name in found if name}


def reason_to_recreate(folder: Path, project: dict[str, Any]) -> str | None:
    """Return why an upgrade is not enough, to follow "created again: "; None if it is."""
    python = folder / "bin" / "python"
    if not python.exists():
        return "it does not exist yet"
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "the record of its installation is missing or unreadable"
    asked = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=False)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if asked.stdout.strip() != version:
        return f"it does not run Python {version}"
    extras = set(record["extras"]) & set(project["optional-dependencies"])
    gone = set(record["requirements"]) - requirement_names(project, extras)
    return f"{', '.join(sorted(gone))} is no longer required" if gone else None


def set_up(folder: Path, extras: Collection[str]) -> None:
    """Create or upgrade the environment, with the project (editable) and these extras.

    Raises:
        subprocess.CalledProcessError: venv or pip failed, and printed the cause.
        FileNotFoundError: an extra has no lock.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    why = reason_to_recreate(folder, project)
    if why is not None:
        print(f"  {folder} is created again: {why}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    _record(folder, project, extras, recreated=why is not None)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--no-deps"]
    # Byte-compiling everything takes longer than the rest; Python compiles modules on import.
    environment = {**os.environ, "PIP_COMPILE": "no", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for locks in lock_files(extras):
        files = [word for file in locks for word in ("--requirement", str(file))]
        subprocess.run([*pip, "--require-hashes", *files], check=True, env=environment)
    # The build requirements are in the locks too, so only locked packages are downloaded.
    itself = ["--no-build-isolation", "--editable", str(REPOSITORY)]
    subprocess.run([*pip, *itself], check=True, env=environment)


def lock_files(extras: Collection[str]) -> list[list[Path]]:
    """Return the locks to install, one list per call of pip; `dev` includes `runtime`.

    Raises:
        FileNotFoundError: an extra has no lock.
    """
    parts = sorted(set(extras) - {"dev"})
    base = ["dev"] if "dev" in extras else ["runtime", "checkout"]
    files = [[REPOSITORY / "locks" / f"{part}.txt" for part in group] for group in (base, parts)]
    for file in (file for group in files for file in group if not file.is_file()):
        raise FileNotFoundError(f"{file.name}: no such lock; `make lock` writes the locks")
    return [group for group in files if group]


def _record(
    folder: Path, project: dict[str, Any], extras: Collection[str], recreated: bool
) -> None:
    """Record the requirements before the installation, which may fail half-way."""
    file = folder / RECORD
    had = set() if recreated else set(json.loads(file.read_text(encoding="utf-8"))["extras"])
    held = (had & set(project["optional-dependencies"])) | set(extras)
    record = {"extras": sorted(held), "requirements": sorted(requirement_names(project, held))}
    file.write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    try:
        set_up(Path(sys.argv[1]), sys.argv[2:])
    except FileNotFoundError as error:
        sys.exit(f"set-up failed: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up failed: {' '.join(map(str, error.cmd))}: exit code {error.returncode}")
