"""Identify log files: distinguish a log from its successor, its copy and other files."""

import errno
import glob
import os
import re
import resource
import stat
import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

_ANCHOR_BYTES: Final = 1024
_WHOLE_HEAD_BYTES: Final = 2048
_WAYS: Final = ((True, False), (True, True), (False, False), (False, True))
"""Order of the search for a file: whether by its inode, and whether among rotated files."""
_MIN_GAP_BYTES: Final = 1 << 16
_DESCRIPTORS_RATIO: Final = 8
_LEAST_OPEN: Final = 8
_CHANGING = re.compile(rb"[^\n]*Global JobLog:[^\n]*")  # HTCondor rewrites this as it rotates
_KINDS: Final = {
    stat.S_IFDIR: "directory",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}
_ROTATED = re.compile(r"\.(?:old|\d{1,4}|\d{8}(?:T\d{6})?)|-\d{8}(?:-?\d{6})?")
_ROTATED_END = re.compile(r"(?:\.old|[.T-]\d{1,14})\Z")


class Place(msgspec.Struct):
    """Position in a file, found again even if the file was renamed.

    Attributes:
        device, inode: identity of the file.
        offset: first byte not yet consumed.
        anchor: fingerprint of the bytes just before. The first bytes of a log would not do:
            HTCondor changes them later, and they do not show that a file was truncated.
        modified_ns: when the file was last seen to change.
    """

    device: int
    inode: int
    offset: int = 0
    anchor: str = ""
    modified_ns: int = 0

    def is_same_file(self, status: os.stat_result) -> bool:
        """Return whether device and inode are the same; an inode may be reused."""
        return (status.st_dev, status.st_ino) == (self.device, self.inode)


class OpenFile:
    """A file open for reading, and the place in it."""

    def __init__(self, descriptor: int, place: Place) -> None:
        self.descriptor = descriptor
        self.place = place

    def status(self) -> os.stat_result:
        """Return the current status of the file."""
        return os.fstat(self.descriptor)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file."""
        return os.pread(self.descriptor, size, 0)

    def read(self, size: int) -> bytes:
        """Return the bytes that follow the place."""
        return os.pread(self.descriptor, size, self.place.offset)

    def advance(self, size: int) -> None:
        """Move the place behind consumed bytes."""
        self.place.offset += size
        self.place.anchor = fingerprint(self.descriptor, self.place.offset)

    def holds_its_place(self) -> bool:
        """Return whether the bytes before the place are still those that were consumed."""
        if self.status().st_size < self.place.offset:
            return False
        return fingerprint(self.descriptor, self.place.offset) == self.place.anchor

    def gap(self, within: int, end: int) -> tuple[int, int] | None:
        """Return the next large hole of a sparse file: its first byte, and the byte after it.

        Args:
            within: it begins among this many bytes that follow the place.
            end: end of the range to read.
        """
        status = self.status()
        if status.st_blocks * 512 >= status.st_size:
            return None
        start = stop = self.place.offset
        while stop < min(end, self.place.offset + within):
            try:
                start = os.lseek(self.descriptor, stop, os.SEEK_HOLE)
                stop = min(end, os.lseek(self.descriptor, start, os.SEEK_DATA))
            except OSError as error:
                if error.errno != errno.ENXIO:  # the file system knows of no holes
                    return None
                stop = end  # no data follows
            if start >= self.place.offset + within:
                return None
            if stop - start >= _MIN_GAP_BYTES:
                return start, stop
        return None

    def close(self) -> None:
        """Close the file descriptor."""
        os.close(self.descriptor)


def place_at_start(descriptor: int) -> Place:
    """Return the first byte of an open file."""
    status = os.fstat(descriptor)
    return Place(status.st_dev, status.st_ino, modified_ns=status.st_mtime_ns)


def find(place: Place, path: Path) -> OpenFile | None:
    """Return the file with the consumed bytes of a log, under its own or a rotated name.

    The file of that inode comes first. If its content is not what was consumed, any file with that
    content is accepted, such as a copy.

    Raises:
        OSError: see `open_file`.
    """
    siblings: list[Path] | None = None  # the folder is listed only if it must be: it may be long
    for by_inode, rotated in _WAYS if place.offset else _WAYS[:2]:
        if rotated and siblings is None:
            siblings = [sibling for sibling, _ in rotated_files(path)]
        for candidate in (siblings or ()) if rotated else (path,):
            descriptor = open_file(candidate)
            if descriptor is None:
                continue
            here = place_at_start(descriptor)
            here.offset, here.anchor = place.offset, place.anchor
            file = OpenFile(descriptor, here)
            same = (here.device, here.inode) == (place.device, place.inode)
            if (same or not by_inode) and file.holds_its_place():
                return file
            file.close()
    return None


def fingerprint(descriptor: int, offset: int) -> str:
    """Return a fingerprint of the bytes just before an offset; empty at a file's beginning."""
    if offset == 0:
        return ""
    start = offset - _ANCHOR_BYTES if offset > _WHOLE_HEAD_BYTES else 0
    before = _CHANGING.sub(b"", os.pread(descriptor, offset - start, start))
    return blake2b(before, digest_size=8).hexdigest()


def is_rotated_name(name: str, live: str) -> bool:
    """Return whether this is a name that a rotation would give to the live file."""
    return name.startswith(live) and _ROTATED.fullmatch(name, len(live)) is not None


def rotated_files(path: Path) -> list[tuple[Path, os.stat_result]]:
    """Return the rotated files of a log in its folder, the oldest first."""
    found = []
    for name in _names_in(path.parent):
        if is_rotated_name(name, path.name):
            sibling = path.with_name(name)
            status = status_of(sibling)
            if status is not None and stat.S_ISREG(status.st_mode):
                found.append((sibling, status))
    return sorted(found, key=lambda entry: entry[1].st_mtime_ns)


def status_of(path: Path) -> os.stat_result | None:
    """Return the status of a file, or None if it is not there."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def open_file(path: Path) -> int | None:
    """Return a descriptor for reading, or None if the file is not there.

    Only a regular file is opened: opening a FIFO may wait for a writer indefinitely, and opening a
    device may have side effects. The file type is checked before and, since it may have been
    replaced, again afterwards.

    Raises:
        OSError: it cannot be read, or is no regular file; the message says which.
    """
    status = status_of(path)
    if status is None:
        return None
    _refuse_irregular(status, path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        _refuse_irregular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_irregular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
    raise OSError(number, f"Is a {kind}, not a file", str(path))


def _names_in(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return


# -- matches -------------------------------------------------------------------------------------
# Files that match a pattern.


def newest_in_turn(files: Mapping[str, os.stat_result], most: int) -> Iterator[str]:
    """Yield the newest files of every owner in turn, so that no user displaces another's."""
    by_owner: defaultdict[int, deque[str]] = defaultdict(deque)
    for path in sorted(files, key=lambda path: (-files[path].st_mtime_ns, path)):
        by_owner[files[path].st_uid].append(path)
    while by_owner and most > 0:
        for owner, paths in [*by_owner.items()][:most]:
            most -= 1
            yield paths.popleft()
            if not paths:
                del by_owner[owner]


def files_of(pattern: str) -> tuple[dict[str, os.stat_result], float]:
    """Return the regular files that match a pattern, and the CPU seconds that this took."""
    began_s = time.thread_time()
    found = {}
    for path in sorted(glob.glob(pattern)):  # noqa: PTH207  # absolute patterns, too
        try:
            status = os.stat(path)  # noqa: PTH116  # thousands of them
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found[path] = status
    return found, time.thread_time() - began_s


def is_left_of_another(path: str, lives: Collection[str]) -> bool:
    """Return whether this is a rotated file of a log that is followed."""
    if _ROTATED_END.search(path) is None:  # thousands of names are looked at
        return False
    return any(
        is_rotated_name(path, live) for live in (path[:end] for end in _cuts(path)) if live in lives
    )


def _cuts(path: str) -> list[int]:
    """Return where a suffix of a rotation might begin."""
    return [index for index, letter in enumerate(path) if letter in ".-" and index]


def most_open(most: int) -> int:
    """Return how many logs may be open: at most so many, and a part of this process's limit."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return most
    return max(_LEAST_OPEN, min(most, descriptors // _DESCRIPTORS_RATIO))
