"""What a service has to be allowed so that an adapter works in it."""

from collections.abc import Mapping

from msgspec import Struct


class HelperUnit(Struct, frozen=True, kw_only=True):
    """A service of another user's that works for the daemon, begun by its socket.

    Both units, ``NAME.socket`` and ``NAME.service``, came with this Outrider.

    Attributes:
        name: of both units.
        words: what Python runs after ``-m``: a module's name, and what it is told.
        user: whom it runs as.
        socket: path of the socket.
    """

    name: str
    words: tuple[str, ...]
    user: str
    socket: str


class ServiceNeeds(Struct, frozen=True, kw_only=True):
    """For ``outrider install-service`` and ``outrider doctor``: systemd keeps all else closed.

    Attributes:
        hosts: whom it connects to, names or addresses, and what each is: "collector".
        files: files, folders or patterns of files that it reads.
        secrets: files that nobody but the service should be able to read.
        token_folders: the same for folders, whose place an environment variable names: the folder,
            and the variable.
        environment: variables that it needs, as they are here.
        helpers: units that have to be there beside the daemon's.
        changes_last: whether a lever changes what does not lapse by itself (`Lever.lasts`).
        notes: what could not be found out, a sentence each.
    """

    hosts: Mapping[str, str] = {}
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    token_folders: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    helpers: tuple[HelperUnit, ...] = ()
    changes_last: bool = False
    notes: tuple[str, ...] = ()
