"""Which machine a run is on, from the names and addresses in a log."""

import re
from typing import Final

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""

_SLOT = re.compile(r"(?:slot|vm|backfill)\d+(?:_\d+)*@")
_ADDRESS = re.compile(r"<(?:\[([^\]]*)\]|([^:?>]*))(?::\d*)?(?:\?([^>]*))?>")
_MADE_UP_SOCKET = re.compile(r"(?:[a-z]+_)?\d+_[0-9a-f]+(?:_\d+)?|startd|schedd")


def machine_of_slot(name: str) -> str:
    """The machine of a slot.

    >>> machine_of_slot("slot1_2@m1@node7")
    'm1@node7'
    """
    slot = _SLOT.match(name)
    return name[slot.end() :] if slot else name


def machine_of_run(slot_name: str, address: str) -> str:
    """The machine of a run that no job ad tells more about.

    Several startds on one host go by the names of their sockets; a name that HTCondor makes up
    for a socket says nothing.

    Args:
        slot_name: as in ``SlotName``, or empty.
        address: a sinful string such as ``<10.0.0.1:9618?alias=node7&sock=startd_1_2ab>``, or
            whatever stands in its place, or empty.

    Returns:
        the machine as HTCondor's ``RemoteHost`` would name it, as far as that can be told: by
        slot name, else alias, else IP; `UNKNOWN_HOST` where the record is silent.

    >>> machine_of_run("", "<10.0.0.1:9618?addrs=10.0.0.1-9618>")
    '10.0.0.1'
    """
    match = _ADDRESS.match(address)
    bracketed, plain, query = match.groups() if match else (None, None, None)
    facts = dict(part.partition("=")[::2] for part in (query or "").split("&"))
    host = machine_of_slot(slot_name.strip()) or facts.get("alias", "") or bracketed or plain
    if not host:
        return address.strip() or UNKNOWN_HOST if match is None else UNKNOWN_HOST
    socket = facts.get("sock", "")
    if socket and "@" not in host and not _MADE_UP_SOCKET.fullmatch(socket):
        return f"{socket}@{host}"
    return host


def slot_of(name: str) -> str:
    """The slot's own part of a slot's name; empty where there is none.

    >>> slot_of("slot1_2@m1@node7"), slot_of("node7")
    ('slot1_2', '')
    """
    slot = _SLOT.match(name)
    return name[: slot.end() - 1] if slot else ""


def schedd_of(address: str) -> str:
    """The schedd at an address, as far as an address tells; empty if it names no host.

    By default a schedd has the full name of its host, which is the alias of its address. One
    that was given a local name (``SCHEDD.B``) listens at a socket of that name. Ports and
    sockets that change with every start say nothing.

    >>> schedd_of("<10.0.0.5:9618?addrs=10.0.0.5-9618&alias=ap1.example.org&sock=schedd_1_43af>")
    'ap1.example.org'
    """
    machine = machine_of_run("", address)
    return "" if machine == UNKNOWN_HOST else machine
