"""Causes of failed calls to a pool, each with one fix, from HTCondor's own messages.

The bindings raise the same exception whatever the cause: "Failed communication with collector.".
HTCondor's messages, which it writes to descriptor 2, tell the causes apart.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider.api import PeerError
from outrider_adapters.htcondor.pool_calls import (
    AdType,
    DaemonType,
    HTCondorException,
    htcondor2,
    number,
)

_MOST_BYTES: Final = 64 * 1024


class Cause(NamedTuple):
    """Cause of a failed call.

    Attributes:
        found: the cause, as a clause.
        fix: how to fix it.
    """

    found: str
    fix: str


class UnreachableError(PeerError):
    """The collector cannot be queried.

    Attributes:
        cause: the cause; its fix is a part of the message.
    """

    def __init__(self, collector: str, cause: Cause) -> None:
        super().__init__(f"{collector}: {cause.found}; {cause.fix}")
        self.cause = Cause(f"{collector}: {cause.found}", cause.fix)


class Messages:
    """HTCondor's messages of this process, kept from the daemon's log."""

    def __init__(self) -> None:
        self._file: int | None = None

    def keep(self) -> None:
        """Collect them from now on; what Python writes to stderr is written there as before."""
        own = os.dup(2)
        sys.stderr = os.fdopen(own, "w", buffering=1, errors="backslashreplace")
        self._file = os.memfd_create("htcondor-messages")
        os.dup2(self._file, 2)
        htcondor2.param["TOOL_DEBUG"] = "D_ERROR"
        htcondor2.enable_debug()

    def read(self) -> str:
        """Return the messages that were not taken yet; empty if they are not kept."""
        if self._file is None:
            return ""
        size = os.fstat(self._file).st_size
        found = os.pread(self._file, _MOST_BYTES, max(0, size - _MOST_BYTES))
        return found.decode(errors="replace").replace("\0", "")

    def take(self) -> str:
        """Return the messages since the last call; empty if they are not kept."""
        found = self.read()
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)  # descriptor 2 shares this position
        return found


MESSAGES: Final = Messages()
"""The messages of this process."""


# -- tokens ----------------------------------------------------------------------------------------
# The tokens that HTCondor's client library may use here.


class Tokens(NamedTuple):
    """Token files of this user.

    Attributes:
        folder: the folder for them.
        readable: files that this user can read.
        unreadable: files and folders that it cannot read.
    """

    folder: str
    readable: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def tokens_here() -> Tokens:
    """Return the token files that HTCondor looks for: this user's, for root the system's too."""
    folders = [str(htcondor2.param.get("SEC_TOKEN_DIRECTORY") or "~/.condor/tokens.d")]
    if os.geteuid() == 0:
        folders.append(str(htcondor2.param.get("SEC_TOKEN_SYSTEM_DIRECTORY") or ""))
    readable: list[str] = []
    unreadable: list[str] = []
    for name in filter(None, folders):
        folder = Path(name).expanduser()
        try:
            files = [str(path) for path in sorted(folder.iterdir()) if path.is_file()]
        except FileNotFoundError:
            continue
        except OSError:
            unreadable.append(str(folder))
            continue
        for file in files:
            (readable if os.access(file, os.R_OK) else unreadable).append(file)
    return Tokens(folders[0], tuple(readable), tuple(unreadable))


# -- causes ----------------------------------------------------------------------------------------

_NO_NAME: Final = re.compile(r"Can't resolve collector ([^;\s]+)|unknown host (\S+)")
_NOT_CONNECTED: Final = re.compile(
    r"attempt to connect to <([^>?]+)[^>]*> failed: (.+?)(?: \(connect errno = (\d+)\))?\.$",
    re.MULTILINE,
)
_DENIED: Final = re.compile(r'Received "DENIED" from server for user (\S+) using method (\w+)')
FOLDERS_REFUSED: Final = "Failed to authenticate using FS"
_TRIED: Final = re.compile(r"Failed to authenticate using (\w+)")
_NOT_ALLOWED: Final = (1, 13, 97)
"""EPERM, EACCES, EAFNOSUPPORT: this process may not connect, as in the sandbox of a service."""
_REFUSED: Final = 111
_NO_COLLECTOR: Final = "Unable to determine collector host"


def cause_of(error: Exception, messages: str, tokens: Tokens) -> Cause | None:
    """Return the cause of a failed call; None: the messages name none that is known.

    Args:
        error: the exception that the bindings raised.
        messages: HTCondor's messages of the call.
        tokens: token files of this user.
    """
    if _NO_COLLECTOR in str(error):
        return Cause(
            "no pool is configured for this process",
            'set "collector" = "HOST:PORT", or CONDOR_CONFIG to the file that names COLLECTOR_HOST',
        )
    if found := _NO_NAME.search(messages):
        name = found[1] or found[2]
        return Cause(
            f"its name {name} is not resolved",
            f"correct it, or make `getent hosts {name}` answer for this user; or use its address",
        )
    if found := _NOT_CONNECTED.search(messages):
        return _not_connected(found[1], found[2], int(found[3] or 0))
    if found := _DENIED.search(messages):
        return Cause(
            f"it denies the user {found[1]}, known by {found[2]}",
            f"let it read: add {found[1]} to ALLOW_READ at the central manager, then "
            "condor_reconfig",
        )
    if "AUTHENTICATE:1003" in messages:
        return _not_authenticated(_TRIED.findall(messages), tokens)
    if "packet header unrecognized" in messages:
        return Cause(
            "a program answers there that is not HTCondor", "correct the port (COLLECTOR_HOST)"
        )
    if "SECMAN:2007" in messages or "timeout reading" in messages:
        return Cause(
            "it accepts the connection and does not answer in time",
            "see CollectorLog at its host; condor_restart -daemon collector if it hangs",
        )
    return None


def _not_connected(address: str, why: str, number: int) -> Cause:
    if number == _REFUSED:
        return Cause(
            f"nothing listens at {address} (connection refused)",
            "start HTCondor there, or correct the port (COLLECTOR_HOST)",
        )
    if number in _NOT_ALLOWED:
        return Cause(
            f"this process may not connect to {address} ({why})",
            "run outrider install-service again: it lets the service reach the pool's addresses",
        )
    if "timed out" in why:
        return Cause(
            f"{address} does not answer at all ({why})",
            f"let this host through the firewall to TCP port {address.rpartition(':')[2]} there; "
            "or start that host",
        )
    return Cause(f"{address} cannot be reached ({why})", f"repair the route to {address}")


def _not_authenticated(tried: list[str], tokens: Tokens) -> Cause:
    make = (
        "make one at the central manager: condor_token_create -identity outrider@DOMAIN -authz "
        "READ, as a file of mode 0600 in"
    )
    if tokens.unreadable and not tokens.readable:
        return Cause(
            f"it wants a token, and this user may not read {', '.join(tokens.unreadable)}",
            "make this user its owner, mode 0600",
        )
    if not tokens.readable:
        return Cause(f"it wants a token, and there is none in {tokens.folder}", f"{make} it")
    if "IDTOKENS" not in tried and "IDTOKEN" not in tried:
        methods = f" (only {', '.join(tried)})" if tried else ""
        return Cause(
            f"it wants to know this user, and no token was offered{methods}",
            "add IDTOKENS to SEC_CLIENT_AUTHENTICATION_METHODS",
        )
    return Cause(
        f"it refuses the token of this user ({', '.join(tokens.readable)})",
        f"its key, issuer or lifetime is wrong: {make} {tokens.folder}",
    )


def failed_query(collector: str | None, error: Exception) -> PeerError:
    """Return the error for a collector that cannot be queried, with its cause and fix.

    Args:
        collector: its address; None: from CONDOR_CONFIG.
        error: the exception that the bindings raised.
    """
    name = f"the collector {collector or 'of CONDOR_CONFIG'} does not answer"
    cause = cause_of(error, MESSAGES.take(), tokens_here())
    if cause is not None:
        return UnreachableError(name, cause)
    return PeerError(
        f'{name}: {error}; expected "collector" = "HOST:PORT" of a pool that may be read '
        "(ALLOW_READ), or CONDOR_CONFIG"
    )


# -- negotiator ------------------------------------------------------------------------------------
# Whether the negotiator answers: without it no job is matched, and nothing else says so.

_AD: Final = ("LastHeardFrom", "LastNegotiationCycleEnd0", "LastNegotiationCycleDuration0")


def negotiator_finding(collector: Any, now_s: float) -> tuple[str, str, str, str]:
    """Return a finding about the negotiator: what, state, finding and fix.

    It answers no query during a cycle. So a negotiator whose cycles take longer than the timeout
    of a call is only reported as busy.

    Args:
        collector: the pool's collector, an ``htcondor2.Collector``.
        now_s: current time, Unix seconds.
    """
    what, manager = "negotiator", "at the central manager"
    try:
        ads = collector.query(AdType.Negotiator, "true", list(_AD))
    except HTCondorException as error:
        return what, "warn", f"the collector does not name it: {error}", "see the collector"
    if not ads:
        found = "the collector knows none, so no job is given a machine"
        return what, "fail", found, f"start it {manager}: condor_on -daemon negotiator"
    ad = max(ads, key=lambda one: number(one, _AD[0]))
    ended_s = number(ad, _AD[1])
    age_s = max(0.0, now_s - ended_s)
    last = f"its last known cycle ended {age_s:,.0f} s ago" if ended_s else "no cycle is known"
    MESSAGES.take()
    try:
        htcondor2.Negotiator(collector.locate(DaemonType.Negotiator)).getPriorities()
    except HTCondorException:
        if _DENIED.search(MESSAGES.take()):
            return what, "ok", f"answers, and denies this user; {last}", ""
        took_s = number(ad, _AD[2])
        if took_s >= int(htcondor2.param.get("QUERY_TIMEOUT") or 0):
            return (
                what,
                "warn",
                f"does not answer; its cycles take {took_s:g} s; {last}",
                ("look again after its cycle"),
            )
        fix = f"see NegotiatorLog {manager}; condor_restart -daemon negotiator"
        return what, "fail", f"does not answer, so no job is given a machine; {last}", fix
    return what, "ok", f"answers; {last}", ""
