"""Make the virtual environment, or bring it up to date: `python tools/set_up.py FOLDER [EXTRA...]`.

An environment that is there is upgraded in place, which takes seconds. It is made anew when that
would leave something wrong behind: when it belongs to another Python, or holds a requirement that
pyproject.toml asked for earlier and does not any more (an import of it would work here and fail on
everybody else's machine). What a package of others stopped to need may stay; it is not imported.

Packages are those of `locks/`, by version and hash.

It needs nothing but the standard library, for it runs before anything is installed.
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
"""In the environment: the extras and the names of the requirements it was installed for."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION: Final = "import sys; print('%d.%d' % sys.version_info[:2])"


def requirement_names(project: dict[str, Any], extras: Collection[str]) -> set[str]:
    """Names of the packages that a ``[project]`` table asks for, with these extras.

    Raises:
        KeyError: it has no such extra.
    """
    asked = [*project["dependencies"]]
    for extra in extras:
        asked += project["optional-dependencies"][extra]
    found = (_NAME.match(requirement) for requirement in asked)
    return {re.sub(r"[-_.]+", "-", name[0]).lower() for name in found if name}


def reason_to_make_anew(folder: Path, project: dict[str, Any]) -> str | None:
    """Why an upgrade would not do, in words that end "made anew: ..."; None where it does."""
    python = folder / "bin" / "python"
    if not python.exists():
        return "there is none yet"
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "nobody wrote down what it was installed for"
    asked = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=False)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if asked.stdout.strip() != version:
        return f"it does not run Python {version}"
    extras = set(record["extras"]) & set(project["optional-dependencies"])
    gone = set(record["requirements"]) - requirement_names(project, extras)
    return f"nothing asks for {', '.join(sorted(gone))} any more" if gone else None


def set_up(folder: Path, extras: Collection[str]) -> None:
    """Make or upgrade the environment, with the project and these extras in it, editable.

    Raises:
        subprocess.CalledProcessError: venv or pip failed; it has said why.
        FileNotFoundError: an extra has no lock.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    why = reason_to_make_anew(folder, project)
    if why is not None:
        print(f"  {folder} is made anew: {why}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    _record(folder, project, extras, anew=why is not None)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--no-deps"]
    # Byte-compiling all of it takes longer than the rest; Python compiles what it imports.
    environment = {**os.environ, "PIP_COMPILE": "no", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for locks in lock_files(extras):
        files = [word for file in locks for word in ("--requirement", str(file))]
        subprocess.run([*pip, "--require-hashes", *files], check=True, env=environment)
    # What builds it stands in the locks too, so nothing is fetched that no lock names.
    itself = ["--no-build-isolation", "--editable", str(REPOSITORY)]
    subprocess.run([*pip, *itself], check=True, env=environment)


def lock_files(extras: Collection[str]) -> list[list[Path]]:
    """The locks to install, one list a call of pip: `dev` holds what the others would bring.

    Raises:
        FileNotFoundError: an extra has no lock.
    """
    parts = sorted(set(extras) - {"dev"})
    base = ["dev"] if "dev" in extras else ["runtime", "checkout"]
    files = [[REPOSITORY / "locks" / f"{part}.txt" for part in group] for group in (base, parts)]
    for file in (file for group in files for file in group if not file.is_file()):
        raise FileNotFoundError(f"{file.name}: no such lock; `make lock` writes those there are")
    return [group for group in files if group]


def _record(folder: Path, project: dict[str, Any], extras: Collection[str], anew: bool) -> None:
    """Note what is asked for; before it is installed, for half an installation is one too."""
    file = folder / RECORD
    had = set() if anew else set(json.loads(file.read_text(encoding="utf-8"))["extras"])
    held = (had & set(project["optional-dependencies"])) | set(extras)
    record = {"extras": sorted(held), "requirements": sorted(requirement_names(project, held))}
    file.write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    try:
        set_up(Path(sys.argv[1]), sys.argv[2:])
    except FileNotFoundError as error:
        sys.exit(f"set-up failed: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up failed: {' '.join(map(str, error.cmd))} ended with {error.returncode}")
