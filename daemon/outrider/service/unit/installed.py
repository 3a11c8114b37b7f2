"""The installed unit: its configuration, the addresses it may reach, the files it may read."""

import grp
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import Final, NamedTuple

_PLACES: Final = (
    "etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system",
    "usr/lib/systemd/system", "lib/systemd/system",
)  # fmt: skip
"""Unit folders in systemd's search order: the first unit counts, and the drop-ins of all."""
_NAME: Final = "outrider.service"
_WHOLE: Final = ("ExecStart", "PrivateTmp", "DynamicUser", "MemoryMax")
"""Settings whose last value counts."""
_SIZE: Final = re.compile(r"(\d{1,15})([KMGT]?)B?")
_READ: Final = (*_WHOLE, "IPAddressAllow", "IPAddressDeny")


class InstalledUnit(NamedTuple):
    """Facts of a unit and its drop-ins, as systemd merges them.

    Attributes:
        path: path of the unit.
        config: the configuration that it runs; None if its command names none.
        allowed: the rules of ``IPAddressAllow=``.
        denies: true if there are rules of ``IPAddressDeny=``.
        own_tmp: true if it has a ``/tmp`` of its own.
        memory_max: bytes of ``MemoryMax=``; None: no limit, or not a number of bytes.
    """

    path: Path
    config: Path | None
    allowed: list[str]
    denies: bool
    own_tmp: bool
    memory_max: int | None


def installed_unit(root: Path = Path("/")) -> InstalledUnit | None:
    """Return the daemon's unit that is installed below a root; None: none is found."""
    path = next((p for place in _PLACES if (p := root / place / _NAME).is_file()), None)
    if path is None:
        return None
    lists: dict[str, list[str]] = {name: [] for name in _READ}
    for file in [path, *_drop_ins(root)]:
        for key, value in _settings(file):
            if key not in lists:
                continue
            if value:
                lists[key] += [value] if key in _WHOLE else value.split()
            else:
                lists[key].clear()
    return InstalledUnit(
        path,
        _config_of(lists["ExecStart"]),
        lists["IPAddressAllow"],
        bool(lists["IPAddressDeny"]),
        any(lists[name][-1:] == ["yes"] for name in ("PrivateTmp", "DynamicUser")),
        _bytes_of(lists["MemoryMax"]),
    )


def _bytes_of(sizes: list[str]) -> int | None:
    """Return the last size in bytes: ``512M``; None where there is none, or it is a ratio."""
    found = _SIZE.fullmatch(sizes[-1]) if sizes else None
    return None if found is None else int(found[1]) << (10 * " KMGT".index(found[2] or " "))


def is_enabled(unit: str, root: Path = Path("/")) -> bool:
    """Return True if a timer or a socket is enabled, as by ``systemctl enable``."""
    wanting = (folder for place in _PLACES for folder in (root / place).glob("*.wants"))
    return any((folder / unit).is_symlink() for folder in wanting)


def _drop_ins(root: Path) -> list[Path]:
    """Return the active drop-ins in order: the first of a name hides those in later folders."""
    found: dict[str, Path] = {}
    for place in _PLACES:
        folder = root / place / f"{_NAME}.d"
        for file in folder.glob("*.conf") if folder.is_dir() else ():
            found.setdefault(file.name, file)
    return [found[name] for name in sorted(found)]


def _settings(file: Path) -> Iterator[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            yield key.strip(), value.strip()


def _config_of(commands: list[str]) -> Path | None:
    try:
        words = shlex.split(commands[-1]) if commands else []
    except ValueError:
        return None
    after = words.index("--config") + 1 if "--config" in words else len(words)
    return Path(words[after]) if after < len(words) else None


# -- memory ----------------------------------------------------------------------------------------
# Memory of the daemon at the limit on jobs of `engine.ingest.bounded_names`.

MEMORY_MAX: Final = 1_536 << 20
"""``MemoryMax=`` of the shipped unit, in bytes.

More than twice `_BASE_BYTES` and `_JOB_BYTES` for each of 200,000 jobs: ended jobs, machines and a
scrape come to these. With every bound full together it is too little (docs/robustness.md)."""
_BASE_BYTES: Final = 150 << 20
_JOB_BYTES: Final = 2_000
"""Bytes of a waiting job with two policies, and its part of a snapshot while that is made."""


def jobs_within(memory_max: int) -> int:
    """Return how many waiting jobs a limit leaves room for on a site of few machines."""
    return max(0, memory_max - _BASE_BYTES) // _JOB_BYTES


# -- readable --------------------------------------------------------------------------------------
# Access of the service's user to files: the groups it needs, and the folders that the unit hides.

HOMES: Final = ("/home", "/root", "/run/user")
"""Folders that ``ProtectHome=`` hides."""
TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 - compared; no files are created there
"""Folders that ``PrivateTmp=`` hides."""


class Reading(NamedTuple):
    """Requirements for a service to read files.

    Attributes:
        groups: names of groups that it has to be in.
        hidden: folders, or single files, that the unit would hide.
        unreadable: files that it cannot read with any group, with the reason.
    """

    groups: list[str]
    hidden: list[str]
    unreadable: list[tuple[str, str]]


def reading_of(patterns: Iterable[str], uid: int | None = None) -> Reading:
    """Return the requirements to read existing files, or else their folders.

    Args:
        patterns: absolute paths of files and folders, or patterns of them.
        uid: id of the user; None: a user that owns no files.
    """
    groups: dict[str, None] = {}
    hidden: dict[str, None] = {}
    unreadable: dict[str, str] = {}
    for pattern in patterns:
        for path in _named(pattern):
            place = _hidden(path)
            if place is not None:
                hidden[str(place)] = None
            for part in _parts(path, place):
                needed = _needed(part, uid, is_last=part == path)
                if isinstance(needed, str):
                    groups[needed] = None
                elif needed is not None:
                    unreadable[str(path)] = needed.why
                    break
    return Reading(list(groups), list(hidden), list(unreadable.items()))


class _Refused(NamedTuple):
    why: str


def _named(pattern: str) -> Iterator[Path]:
    """Yield the paths that match a pattern; if none exists yet, the nearest existing folder."""
    found = sorted(glob(pattern)) if has_magic(pattern) else [pattern]  # noqa: PTH207 - absolute
    for name in found or [pattern]:
        path = Path(name)
        while not os.path.lexists(path) and path != path.parent:
            path = path.parent
        yield path


def _parts(path: Path, bound: Path | None) -> Iterator[Path]:
    """Yield the folders on the way to a path and the path, from `bound` on if set."""
    parts = [*reversed(path.parents), path]
    yield from parts if bound is None else parts[parts.index(bound) :]


def _needed(path: Path, uid: int | None, *, is_last: bool) -> str | _Refused | None:
    """Return the group that may read a path; None: all may; or the reason why no group may."""
    try:
        status = path.stat()
    except OSError as error:
        return _Refused(f"{path}: {error.strerror}")
    folder = stat.S_ISDIR(status.st_mode)
    wanted = 0o1 if folder and not is_last else 0o5 if folder else 0o4
    if status.st_mode & wanted == wanted:
        return None
    if uid is not None and status.st_uid == uid and (status.st_mode >> 6) & wanted == wanted:
        return None
    if status.st_gid != 0 and (status.st_mode >> 3) & wanted == wanted:
        try:
            return grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            return _Refused(f"{path} is for group {status.st_gid}, which has no name")
    return _Refused(f"{path} has mode {stat.S_IMODE(status.st_mode):o}, owner {status.st_uid}")


def _hidden(path: Path) -> Path | None:
    """Return the folder to bind to make a hidden path visible: a file's folder, as logs rotate."""
    if not any(path.is_relative_to(place) for place in (*HOMES, *TEMPORARY)):
        return None
    return path if path.is_dir() else path.parent
