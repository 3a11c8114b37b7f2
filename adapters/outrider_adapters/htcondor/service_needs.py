"""What a service needs beside an HTCondor pool: its daemons' addresses, logs, tokens."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from outrider.api import PeerError, ServiceNeeds
from outrider_adapters.htcondor.bindings import htcondor2
from outrider_adapters.htcondor.locating import event_logs_of, located
from outrider_adapters.htcondor.pool_calls import Ad
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings

_VARIABLES: Final = ("CONDOR_CONFIG",)
_TOKENS: Final = "SEC_TOKEN_DIRECTORY"
_NOWHERE: Final = "/dev/null"
"""Where the bindings themselves point CONDOR_CONFIG if no pool is configured."""
_ADDRESS: Final = re.compile(r"<(?:\[(?P<six>[^\]]+)\]|(?P<four>[^:>?]+)):\d+")


HostsAndLogs: TypeAlias = tuple[dict[str, str], list[str]]
"""Addresses of access points, with what each is; paths of the event logs that can be read here."""


def hosts_and_logs(settings: HTCondorSettings) -> HostsAndLogs:
    """What the pool itself says. Raises `PeerError`: it does not answer."""
    _, ads = located(settings.collector, settings.access_points)
    hosts = {address: f"access point {n}" for n, ad in ads.items() for address in _addresses(ad)}
    return hosts, [p for log in event_logs_of(ads, settings).values() for p in log.paths]


def needs_of(settings: HTCondorSettings, ask: Callable[[], HostsAndLogs]) -> ServiceNeeds:
    """Who is asked, what is read, and the folder of the tokens, as far as it can be found out.

    Args:
        settings: of the adapter.
        ask: `hosts_and_logs`, where a pool that does not answer holds up nobody.
    """
    hosts = dict.fromkeys(collector_hosts(_collector(settings)), "HTCondor's collector")
    logs = [*settings.event_logs.values()]
    notes: list[str] = []
    try:
        told = ask()
    except PeerError as error:
        notes.append(f"addresses of access points are not known: {error}")
    else:
        hosts |= told[0]
        logs += told[1]
    environment = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    if environment.get("CONDOR_CONFIG") == _NOWHERE:
        del environment["CONDOR_CONFIG"]
    tokens = str(htcondor2.param.get(_TOKENS) or "")
    return ServiceNeeds(
        hosts=hosts,
        files=tuple(dict.fromkeys([*logs, *environment.values()])),
        token_folders={tokens: f"_CONDOR_{_TOKENS}"} if _has_files(tokens) else {},
        environment=environment,
        notes=tuple(notes),
    )


def collector_hosts(collector: str) -> list[str]:
    """Hosts of collectors, as COLLECTOR_HOST names them: ``cm1:9618, [::1]:9618, cm2``.

    >>> collector_hosts("cm1:9618?sock=collector, [2001:db8::1]:9618 cm2")
    ['cm1', '2001:db8::1', 'cm2']
    """
    words = (word.partition("?")[0] for word in re.split(r"[\s,]+", collector))
    found = [
        word[1:].partition("]")[0] if word.startswith("[") else word.partition(":")[0]
        for word in words
    ]
    return [host for host in found if host]


def _collector(settings: HTCondorSettings) -> str:
    return settings.collector or str(htcondor2.param.get("COLLECTOR_HOST") or "")


def _addresses(ad: Ad) -> list[str]:
    """The addresses in an ad of a daemon: ``<192.0.2.7:9618?addrs=...>``."""
    return [found["six"] or found["four"] for found in _ADDRESS.finditer(str(ad.get("MyAddress")))]


def _has_files(folder: str) -> bool:
    try:
        return bool(folder) and any(path.is_file() for path in Path(folder).iterdir())
    except OSError:
        return False
