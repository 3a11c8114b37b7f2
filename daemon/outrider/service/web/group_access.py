"""Letting the members of several groups connect to a socket: its mode has room for one alone.

A file's access control list (POSIX, as ``setfacl`` writes it) has room for more. It is the owner's
to set, whether or not the owner is a member.
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_LIST: Final = "system.posix_acl_access"
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_OWNER, _OWNING_GROUP, _GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x08, 0x10, 0x20
_READ_WRITE: Final = 6
_NOBODY: Final = 0xFFFFFFFF


def let_groups_in(path: Path, gids: Iterable[int]) -> None:
    """Let owner and members of these groups read and write a file, and nobody else.

    Raises:
        OSError: the file system has no such lists, or it is not our file.
    """
    entries = [
        (_OWNER, _READ_WRITE, _NOBODY),
        (_OWNING_GROUP, 0, _NOBODY),
        *((_GROUP, _READ_WRITE, gid) for gid in sorted(set(gids))),
        (_MASK, _READ_WRITE, _NOBODY),
        (_OTHERS, 0, _NOBODY),
    ]
    packed = b"".join(_ENTRY.pack(*entry) for entry in entries)
    os.setxattr(path, _LIST, _VERSION + packed)
