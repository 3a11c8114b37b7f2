"""Locate the daemons of a real pool: its collector, its access points, their event logs."""

import os
import queue
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any, Final

from outrider.api import PeerError
from outrider.model.deployment import TOKENS_PREFIX
from outrider_adapters.htcondor.failed_calls import FOLDERS_REFUSED, MESSAGES, failed_query
from outrider_adapters.htcondor.pool_calls import (
    AccessPoint,
    Ad,
    AdType,
    CollectorCalls,
    DaemonType,
    HTCondorException,
    PoolCalls,
    htcondor2,
    readable,
)
from outrider_adapters.htcondor.settings import HTCondorSettings
from outrider_adapters.logtail import LogtailSettings

_NAMED_WITHIN_S: Final = 5.0
_REST_S: Final = 60.0


class ReadableCollector:
    """A collector whose ads can be read: startds may publish any bytes.

    Args:
        collector: an ``htcondor2.Collector``.
    """

    def __init__(self, collector: Any) -> None:
        self._collector = collector
        self.locate = collector.locate

    def query(
        self, ad_type: Any, constraint: str = "true", projection: list[str] | None = None
    ) -> Any:
        """Query it; see `CollectorCalls.query`."""
        return readable(self._collector.query(ad_type, constraint, projection or []))


class LocatedSchedd:
    """A schedd found by name, located again after a call that failed.

    A schedd that was restarted may listen elsewhere.

    Args:
        collector: the collector that knows its address.
        name: the schedd's name.
        ad: the schedd's ad that the collector has now.
    """

    def __init__(self, collector: Any, name: str, ad: Any) -> None:
        self._collector = collector
        self._name = name
        self._schedd: Any = htcondor2.Schedd(ad)

    def query(self, constraint: str = "true", projection: list[str] | None = None) -> Any:
        """Query the queue; see `ScheddCalls.query`."""
        return readable(self._call(lambda schedd: schedd.query(constraint, projection or [])))

    def history(
        self, constraint: str, projection: list[str], match: int = -1, since: Any = None
    ) -> Any:
        """Query the history; see `ScheddCalls.history`."""
        return readable(
            self._call(lambda schedd: schedd.history(constraint, projection, match, since))
        )

    def edit(self, job_spec: list[str], attr: str, value: str) -> int:
        """Edit an attribute; see `ScheddCalls.edit`."""
        done: int = self._call(lambda schedd: schedd.edit(job_spec, attr, value))
        return done

    def act(self, action: Any, job_spec: list[str], reason: str = "") -> Ad:
        """Act on jobs; see `ScheddCalls.act`."""
        answer: Ad = self._call(lambda schedd: schedd.act(action, job_spec, reason))
        return answer

    def submit(self, description: Mapping[str, str]) -> int:
        """Submit one job and return the number of its job cluster."""
        job = htcondor2.Submit(dict(description))
        cluster: int = self._call(lambda schedd: schedd.submit(job).cluster())
        return cluster

    def _call(self, question: Callable[[Any], Any]) -> Any:
        if self._schedd is None:
            self._schedd = htcondor2.Schedd(self._collector.locate(DaemonType.Schedd, self._name))
        try:
            return question(self._schedd)
        except HTCondorException:
            self._schedd = None
            raise


class NegotiatorAccounts:
    """Query for the accounts of all users, which rests after a failure.

    A negotiator answers nothing during a cycle, and a call waits for it as long as for any daemon.

    Args:
        collector: the collector that knows its address.
        clock: seconds that only grow.
    """

    def __init__(self, collector: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._collector = collector
        self._clock = clock
        self._again_s = -inf

    def ask(self) -> Sequence[Ad]:
        """Return the accounting ads. Raises `HTCondorException`: no answer, or it rests."""
        now_s = self._clock()
        if now_s < self._again_s:
            raise HTCondorException("the negotiator did not answer a moment ago")
        self._again_s = now_s + _REST_S
        negotiator = htcondor2.Negotiator(self._collector.locate(DaemonType.Negotiator))
        ads: Sequence[Ad] = negotiator.getPriorities()
        self._again_s = -inf
        return ads


def located(address: str | None, wanted: Iterable[str]) -> tuple[PoolCalls, dict[str, Ad]]:
    """Find the pool's collector and its access points.

    Args:
        address: the collector's, ``host`` or ``host:port``; None: from CONDOR_CONFIG.
        wanted: shell patterns for names of access points; none: all of them.

    Returns:
        the calls to the pool, and the ad of each access point by its name.

    Raises:
        PeerError: the collector does not answer, or knows no such access point.
    """
    patterns = tuple(wanted)
    try:
        collector, ads = _schedds(address)
    except HTCondorException as error:
        raise failed_query(address, error) from error
    ours = {name: ad for name, ad in ads.items() if _is_wanted(name, patterns)}
    if not ours:
        raise PeerError(
            f"the collector knows no access point {' or '.join(patterns) or 'at all'}; it knows "
            f"{', '.join(ads) or 'none'}"
        )
    points = tuple(
        AccessPoint(name, LocatedSchedd(collector, name, ad), HTCondorException)
        for name, ad in sorted(ours.items())
    )
    known: CollectorCalls = ReadableCollector(collector)
    calls = PoolCalls(
        known,
        AdType.Startd,
        HTCondorException,
        points,
        accounting_ads=AdType.Accounting,
        submitter_ads=AdType.Submitter,
        negotiator_ads=AdType.Negotiator,
        collector_ads=AdType.Collector,
        accounts=NegotiatorAccounts(collector).ask,
    )
    return calls, ours


def _schedds(address: str | None) -> tuple[Any, dict[str, Ad]]:
    """Return the collector and the ads of the schedds. Raises `HTCondorException`: no answer.

    Bindings from version 25 on refuse the FS authentication of daemons of earlier versions, which
    do not put the address of their connection into the name of the folder. That protects from
    another host that passes on what it is asked. On a pool of this host alone there is none.
    """

    def ask() -> tuple[Any, dict[str, Ad]]:
        collector = htcondor2.Collector(address) if address else htcondor2.Collector()
        return collector, {str(ad["Name"]): ad for ad in collector.locateAll(DaemonType.Schedd)}

    try:
        return ask()
    except HTCondorException:
        if _BINDING in htcondor2.param or FOLDERS_REFUSED not in MESSAGES.read():
            raise
        named = address or str(htcondor2.param.get("COLLECTOR_HOST") or "")
        if not all(map(is_this_host, collector_hosts(named))):
            raise
    MESSAGES.take()
    htcondor2.param[_BINDING] = "false"
    found = ask()
    if not all(is_this_host(host) for ad in found[1].values() for host in addresses(ad)):
        htcondor2.param[_BINDING] = "true"
    return found


TOKENS: Final = "SEC_TOKEN_DIRECTORY"
_BINDING: Final = "SEC_FS_ENFORCE_CHANNEL_BINDING"
_ADDRESS: Final = re.compile(r"<(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:>?]+)):\d+")


def collector_hosts(collector: str) -> list[str]:
    """Return the collectors' hosts in a COLLECTOR_HOST: ``cm1:9618, [::1]:9618, cm2``.

    >>> collector_hosts("cm1:9618?sock=collector, [2001:db8::1]:9618 cm2")
    ['cm1', '2001:db8::1', 'cm2']
    """
    words = (word.partition("?")[0] for word in re.split(r"[\s,]+", collector))
    found = [
        word[1:].partition("]")[0] if word.startswith("[") else word.partition(":")[0]
        for word in words
    ]
    return [host for host in found if host]


def addresses(ad: Ad) -> list[str]:
    """Return the addresses in an ad of a daemon: ``<192.0.2.7:9618?addrs=...>``."""
    return [found["six"] or found["four"] for found in _ADDRESS.finditer(str(ad.get("MyAddress")))]


def is_this_host(host: str) -> bool:
    """Return whether a name or an address is of this host: one can listen there.

    False if no name server answers in time: a host knows its own name without one.
    """
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def look() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            answers.put(False)
        else:
            answers.put(bool(found) and all(map(_is_own, found)))

    threading.Thread(target=look, name="resolve", daemon=True).start()
    try:
        return answers.get(timeout=_NAMED_WITHIN_S)
    except queue.Empty:
        return False


def _is_own(one: tuple[Any, ...]) -> bool:
    family, kind, *_, address = one
    try:
        with socket.socket(family, kind) as listener:
            listener.bind(address)
    except OSError:
        return False
    return True


def answer_within(seconds: int) -> None:
    """Set the timeout of this process's calls to a daemon (20 to 60 s by default)."""
    for knob in ("QUERY_TIMEOUT", "Q_QUERY_TIMEOUT"):
        htcondor2.param[knob] = str(seconds)


def use_passed_tokens() -> None:
    """Copy the tokens that systemd passed to the service, and let HTCondor use the copies.

    HTCondor accepts a token of its own user alone, and what systemd passes belongs to root. The
    copies are in a folder that ends with the service. Each process of the service uses the same.
    """
    passed = os.environ.get("CREDENTIALS_DIRECTORY")
    if not passed or os.environ.get(f"_CONDOR_{TOKENS}") != passed:
        return
    place = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    folder = Path(place) / "htcondor-tokens" if place else Path(tempfile.mkdtemp())
    folder.mkdir(mode=0o700, exist_ok=True)
    for token in Path(passed).glob(f"{TOKENS_PREFIX}*"):
        copied = folder / token.name
        copied.touch(mode=0o600)
        copied.write_bytes(token.read_bytes())
    htcondor2.param[TOKENS] = str(folder)


def event_logs_of(ads: Mapping[str, Ad], settings: HTCondorSettings) -> dict[str, LogtailSettings]:
    """Return the readable event logs by access point: configured, else found on this host."""
    found = {name: _log_on_this_host(ad) for name, ad in ads.items()}
    paths = {**found, **settings.event_logs}
    return {name: event_log(path, settings) for name, path in paths.items() if path}


def event_log(path: str, settings: HTCondorSettings) -> LogtailSettings:
    """Return the settings for reading the event log of an access point."""
    return LogtailSettings(paths=(path,), format="htcondor", start_at=settings.start_at)


def _log_on_this_host(ad: Ad) -> str | None:
    """Return the event log of a schedd on this host whose configuration can be read, or None.

    A path that another host names says nothing about the file of that name here.
    """
    if str(ad.get("Machine") or "").lower() not in _names_of_this_host():
        return None
    try:
        path = htcondor2.RemoteParam(ad).get("EVENT_LOG") or ""
    except HTCondorException:
        return None
    return path if path and Path(path).is_file() and os.access(path, os.R_OK) else None


def setting_of(ad: Ad) -> Callable[[str], str]:
    """Return a function that reads a daemon's setting by name; empty where it is not set."""

    def setting(name: str) -> str:
        return str(htcondor2.RemoteParam(ad).get(name) or "")

    return setting


def _names_of_this_host() -> set[str]:
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _is_wanted(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
