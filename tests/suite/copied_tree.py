"""A copy of this checkout: what git knows or would know of it, without caches and environments."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parents[2]
ROOTS: Final = ("daemon", "adapters", "policies", "lab", ".")
"""Package folders of the copy; with these on PYTHONPATH any environment imports it."""


def copy_tree(to: Path) -> Path:
    """Copy the files of this checkout below `to`, uncommitted changes included; return `to`."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TREE, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        if (TREE / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, to / name)
    return to


def python_path(tree: Path) -> str:
    """Return the PYTHONPATH of a copy."""
    return ":".join(str((tree / root).resolve()) for root in ROOTS)
