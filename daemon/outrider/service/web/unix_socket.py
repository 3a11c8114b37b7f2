"""The Unix socket of the daemon: in the state directory for its user, else for the whole host."""

import contextlib
import errno
import grp
import os
import socket
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from outrider.model.errors import ConfigurationError
from outrider.service.host.private_folder import LONGEST_ADDRESS, socket_address

_FOR_ALL: Final = 0o666
_FOR_GROUP: Final = 0o660
_FOR_US: Final = 0o600
_BACKLOG: Final = 100

log = structlog.get_logger()


class Listening(NamedTuple):
    """A socket that clients can connect to.

    Attributes:
        socket: the bound and listening socket.
        gid: group whose members see users' names; None: only root and the daemon's own user do.
        admin_gid: group whose members may also send commands; None: there is no such group.
        path: its absolute path; None: unknown.
        others: all users of this host may connect.
    """

    socket: socket.socket
    gid: int | None
    admin_gid: int | None = None
    path: Path | None = None
    others: bool = False


@contextmanager
def listening_at(
    path: Path, group: str | None, admins: str | None = None, *, others: bool = False
) -> Iterator[Listening]:
    """Listen at a path as long as the context is open, mode 0660 for the group.

    If there is no group, or the daemon may not give a file to it, the mode is 0600. A socket that a
    killed daemon left is replaced. A socket on which a process listens is not, nor is any other
    file.

    Args:
        path: path of the socket.
        group: group whose members see users' names; None: there is none.
        admins: group whose members may also send commands, through an access control list.
        others: all users may connect, mode 0666; `Access` decides what each of them sees.

    Raises:
        ConfigurationError: it cannot be created; the message names the path and the cause.
    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with ExitStack() as stack:
        stack.callback(server.close)
        try:
            address = stack.enter_context(socket_address(path))
            _remove_stale(path, address)
            before = os.umask(0o177)  # no other user may connect before the group is set
            try:
                server.bind(address)
            finally:
                os.umask(before)
            made = path.lstat()
            gid = None if group is None else _give_to_group(path, made.st_gid, group)
            path.chmod(_FOR_ALL if others else _FOR_US if gid is None else _FOR_GROUP)
            admin_gid = _let_admins_in(path, gid, admins, others)
            server.listen(_BACKLOG)
            log.info(
                "socket_opened", path=str(path), group=None if gid is None else group,
                admins=None if admin_gid is None else admins,
            )  # fmt: skip
        except OSError as error:
            raise _cannot(path, error.strerror or str(error)) from error
        try:
            yield Listening(server, gid, admin_gid, path.absolute(), others)
        finally:
            with contextlib.suppress(OSError):
                if (path.lstat().st_dev, path.lstat().st_ino) == (made.st_dev, made.st_ino):
                    path.unlink()


def _remove_stale(path: Path, address: str) -> None:
    """Remove the socket of a killed daemon. Raises `ConfigurationError` if the path is in use."""
    if len(os.fsencode(address)) > LONGEST_ADDRESS:
        raise _cannot(path, f"longer than {LONGEST_ADDRESS} bytes")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot(path, error.strerror or str(error)) from error
    if not stat.S_ISSOCK(mode):
        raise _cannot(path, "the path is another file, not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        refused = probe.connect_ex(address)
    if refused != errno.ECONNREFUSED:
        raise _cannot(path, "another process listens there")
    try:
        path.unlink()
    except OSError as error:
        raise _cannot(
            path, f"the socket of an earlier daemon cannot be removed: {error}"
        ) from error


def _give_to_group(path: Path, owner_gid: int, group: str) -> int | None:
    """Give a file to a group and return its id; None, with a log entry, if that fails."""
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError:
        log.info("socket_group_ignored", path=str(path), reason=f"there is no group {group!r}")
        return None
    if gid == owner_gid:
        return gid
    try:
        os.chown(path, -1, gid, follow_symlinks=False)
    except OSError as error:
        log.warning(
            "socket_group_ignored", path=str(path), error=f"{group}: {error.strerror}",
            hint="run the daemon with this group",
        )  # fmt: skip
        return None
    return gid


def _let_admins_in(path: Path, gid: int | None, admins: str | None, others: bool) -> int | None:
    """Let the members of another group connect too; return its id, or None without the group."""
    if admins is None:
        return None
    try:
        admin_gid = grp.getgrnam(admins).gr_gid
    except KeyError:
        return None  # only root and the daemon's own user may send commands
    if others or admin_gid == gid:
        return admin_gid
    try:
        let_groups_in(path, [admin_gid] if gid is None else [gid, admin_gid])
    except OSError as error:
        log.warning(
            "socket_admins_ignored", path=str(path), error=f"{admins}: {error.strerror}",
            hint="make its members members of socket_group, too",
        )  # fmt: skip
    return admin_gid


def _cannot(path: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f'"socket" = "{path}": cannot listen there: {why}; expected an unused path in a '
        "folder that the daemon may write"
    )


# -- group access ----------------------------------------------------------------------------------
# Access for the members of several groups to a socket: its mode can name only one group.
#
# A file's access control list (POSIX, as ``setfacl`` writes it) can name more. The owner may set
# it, even if the owner is not a member.

_LIST: Final = "system.posix_acl_access"
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_OWNER, _OWNING_GROUP, _GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x08, 0x10, 0x20
_READ_WRITE: Final = 6
_NO_ID: Final = 0xFFFFFFFF


def let_groups_in(path: Path, gids: Iterable[int]) -> None:
    """Let only the owner and members of these groups read and write a file.

    Raises:
        OSError: the file system has no such lists, or the file has another owner.
    """
    entries = [
        (_OWNER, _READ_WRITE, _NO_ID),
        (_OWNING_GROUP, 0, _NO_ID),
        *((_GROUP, _READ_WRITE, gid) for gid in sorted(set(gids))),
        (_MASK, _READ_WRITE, _NO_ID),
        (_OTHERS, 0, _NO_ID),
    ]
    packed = b"".join(_ENTRY.pack(*entry) for entry in entries)
    os.setxattr(path, _LIST, _VERSION + packed)
