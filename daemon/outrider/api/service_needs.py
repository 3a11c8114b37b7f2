"""What a service has to be allowed so that an adapter works in it."""

from collections.abc import Mapping

from msgspec import Struct


class ServiceNeeds(Struct, frozen=True, kw_only=True):
    """For ``outrider install-service`` and ``outrider doctor``: systemd keeps all else closed.

    Attributes:
        hosts: whom it connects to, names or addresses, and what each is: "collector".
        files: files, folders or patterns of files that it reads.
        secrets: files that nobody but the service should be able to read.
        token_folders: the same for folders, whose place an environment variable names: the folder,
            and the variable.
        environment: variables that it needs, as they are here.
        notes: what could not be found out, a sentence each.
    """

    hosts: Mapping[str, str] = {}
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    token_folders: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
