"""Digests of traces, which identify the input of a run."""

from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

_OF_A_CAMPUS: Final = (".toml", ".csv", ".csv.gz")


def trace_sha256(path: Path) -> str:
    """Return the SHA-256 of a workload file, or of a campus's files. Raises `OSError`.

    For a campus it is taken over a line ``NAME SHA256`` without its end for each settings file and
    table, in the order of their names.
    """
    return _campus_sha256(path) if path.is_dir() else file_sha256(path)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content. Raises `OSError`."""
    with path.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _campus_sha256(folder: Path) -> str:
    digest = sha256()
    for file in sorted(folder.iterdir()):
        if file.name.endswith(_OF_A_CAMPUS):
            digest.update(f"{file.name} {file_sha256(file)}".encode())
    return digest.hexdigest()
