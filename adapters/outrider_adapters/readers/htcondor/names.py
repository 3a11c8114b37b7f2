"""Names of the jobs in one HTCondor log: ``SCHEDD#CLUSTER.PROC``, unique over schedds."""

import html
import re
from collections import deque
from itertools import islice
from typing import Any, Final

from outrider.api import ReaderOptions
from outrider_adapters.readers.htcondor.job_ads import job_id, schedd_of

_GLOBAL_ID = re.compile(rb'GlobalJobId(?:"\s*:\s*"| = "|"><s>)([^"#<\r\n]{1,255})#')
_SUBMITTED = re.compile(
    rb"submitted from host:|SubmitHost(?:\"\s*:\s*\"| = \"|\"><s>)", re.IGNORECASE
)
_ADDRESS = re.compile(rb"[^\"<\r\n]{0,300}<[^>\r\n]{0,1000}>|[^\"<\r\n]{0,300}?&lt;.{0,1000}?&gt;")
_MAX_ADDRESS_BYTES: Final = 4096
_MAX_TRIES: Final = 16  # places in the first bytes of a log that look like an address
_MAX_NAMES: Final = 100_000  # cached at a time
_LEAVING: Final = 256  # ended jobs whose last records may still come


class JobNames:
    """Generator of unique job names for a log, as all schedds count from 1.

    One log is nearly always that of one schedd, its *home*. Its name is, in order of preference:

    1. a ``GlobalJobId`` in the log, which has the schedd's own name;
    2. `ReaderOptions.system`, set by an admin;
    3. the address from which the first job was submitted: its alias, else its IP address;
    4. the name of the log file, if no record contains a schedd.

    A job that was submitted from another address than the home's has that schedd's name. The
    name of the home is decided once, with the first bytes, and kept: a job must not change its
    name. Only if nothing but the file's name was available, the first submission still decides
    for the jobs that had no record before it.

    Args:
        options: `system` and `log_name` are used; without either a job has its short id until
                a record contains the schedd.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._system = options.system
        self._log_name = options.log_name
        self._settled = False
        self._home: str | None = None
        self._address = ""  # address of the home in its submissions
        self._others: dict[str, str] = {}  # jobs of schedds other than the home
        self._met: set[str] = set()  # jobs named after the file, while the home is unknown
        self._leaving: deque[str] = deque()
        self._by_raw: dict[bytes, str] = {}
        self._schedds: dict[bytes, str] = {}

    @property
    def wants_endings(self) -> bool:
        """True if single jobs are remembered, so that `ended` must be called for jobs that end."""
        return bool(self._others or self._met)

    def begin(self, data: bytes) -> None:
        """Find the home in the first bytes of a log, unless it is settled."""
        if self._settled:
            return
        self._others, self._met, self._by_raw = {}, set(), {}
        named = _GLOBAL_ID.search(data)
        self._address = self._schedd(_first_address(data))
        own = named[1].decode("utf-8", "replace") if named else ""
        self._home = own or self._system or self._address or self._log_name

    def settle(self) -> None:
        """Fix the home, since names were returned."""
        self._settled = True

    def of_raw(self, raw: bytes) -> str:
        """Return the name of a job by its id in text logs, such as ``001.000.000``."""
        name = self._by_raw.get(raw)
        if name is None:
            if len(self._by_raw) >= _MAX_NAMES:
                self._by_raw.clear()
            name = self._by_raw[raw] = self.of(_id_of_raw(raw))
        return name

    def of(self, job: str) -> str:
        """Return the name of a job by its short id, such as ``1.0``."""
        schedd = self._others.get(job, self._home) if self._others else self._home
        if not self._address and schedd == self._log_name:
            self._met.add(job)
        return f"{schedd}#{job}" if schedd else job

    def submitted_raw(self, raw: bytes, host: bytes | None) -> str:
        """Return the name of the job of a 000, submitted from this host (as `of_raw`)."""
        job = _id_of_raw(raw)
        self._submitted(job, self._schedd(host) if host else "")
        name = self._by_raw[raw] = self.of(job)
        return name

    def submitted(self, job: str, host: str) -> str:
        """Return the name of the job of a 000, submitted from this host (as `of`)."""
        self._submitted(job, self._schedd(host.encode()) if host else "")
        return self.of(job)

    def ended(self, job: str) -> None:
        """Note the end of a job: few records about it follow."""
        _, _, short = job.rpartition("#")
        if short not in self._others and short not in self._met:
            return
        self._leaving.append(short)
        if len(self._leaving) > _LEAVING:
            gone = self._leaving.popleft()
            self._met.discard(gone)
            if self._others.pop(gone, None):
                self._by_raw.clear()

    def save(self) -> Any:
        """Return the state to remember, as JSON types."""
        return {
            "home": self._home,
            "address": self._address,
            "others": dict(self._others),
            "met": sorted(self._met),
        }

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned, for this file or the one before it under its name."""
        self._settled = True
        self._home, self._address = saved["home"], saved["address"]
        self._others, self._met = dict(saved["others"]), set(saved["met"])
        self._by_raw.clear()

    def _submitted(self, job: str, address: str) -> None:
        if not address or self._system is not None:
            return
        if not self._address:
            self._address = address
            if self._home == self._log_name:
                self._move_to(address)
        if address == self._address:
            self._others.pop(job, None)
        else:
            self._others[job] = address

    def _move_to(self, home: str) -> None:
        """Set the home, now that it is known; jobs named after the file keep their names."""
        if self._home:
            self._others |= dict.fromkeys(self._met, self._home)
        self._met.clear()
        self._home = home

    def _schedd(self, host: bytes) -> str:
        if len(host) > _MAX_ADDRESS_BYTES:
            return ""
        schedd = self._schedds.get(host)
        if schedd is None:
            if len(self._schedds) >= _MAX_NAMES:
                self._schedds.clear()
            schedd = self._schedds[host] = schedd_of(_unescaped(host).strip())
        return schedd


def _first_address(data: bytes) -> bytes:
    """Return the address from which the first job in these bytes was submitted, or empty."""
    for match in islice(_SUBMITTED.finditer(data), _MAX_TRIES):
        address = _ADDRESS.match(data, match.end())
        if address is not None:
            return address[0]
    return b""


def _unescaped(host: bytes) -> str:
    """Unescape an address in XML; unchanged if it has an invalid character number."""
    address = host.decode("utf-8", "replace")
    try:
        return html.unescape(address)
    except ValueError:  # a number of thousands of digits
        return address


def _id_of_raw(raw: bytes) -> str:
    return job_id(*raw.decode().split("."))
