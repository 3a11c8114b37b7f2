"""Machine size and clock from the header of a Standard Workload Format file."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from outrider.formats.workload import EPOCH
from outrider.model.errors import ConfigurationError, TraceError
from outrider.model.localtime import time_zone


def processors_in(header: Mapping[str, str], path: Path) -> int:
    """MaxProcs: the number of processors of the machine.

    Raises:
        TraceError: the field is missing or not a number.
    """
    digits = header.get("MaxProcs", "").split()
    if not digits:
        nodes = header.get("MaxNodes", "").split()
        known = f" (its MaxNodes says {nodes[0]} nodes)" if nodes else ""
        raise TraceError(f"{path}: the header has no MaxProcs{known}; right would be --machines N")
    if not digits[0].isdecimal() or int(digits[0]) < 1:
        raise TraceError(
            f'{path}: header field MaxProcs: "{header["MaxProcs"]}"; right would be a number of '
            "processors, at least 1, or --machines N"
        )
    return int(digits[0])


def start_in(header: Mapping[str, str], path: Path) -> dt.datetime:
    """Local wall clock at second 0 of the log; 1970 if the header has no UnixStartTime.

    The zone is TimeZoneString; if that is missing or unknown to this system, TimeZone (seconds
    east of Greenwich); otherwise UTC.

    Raises:
        TraceError: UnixStartTime is not a time.
    """
    text = header.get("UnixStartTime", "0")
    try:
        zero = dt.datetime.fromtimestamp(float(text.split()[0]), dt.UTC)
    except (ValueError, IndexError, OverflowError, OSError) as error:
        raise TraceError(
            f'{path}: header field UnixStartTime: "{text}"; right would be seconds since 1970'
        ) from error
    if zero <= EPOCH.replace(tzinfo=dt.UTC):
        return EPOCH
    return zero.astimezone(_zone(header)).replace(tzinfo=None)


def _zone(header: Mapping[str, str]) -> dt.tzinfo:
    try:
        return time_zone(header["TimeZoneString"].split()[0])
    except (KeyError, IndexError, ConfigurationError):
        pass
    try:
        return dt.timezone(dt.timedelta(seconds=float(header["TimeZone"].split()[0])))
    except (KeyError, ValueError, IndexError, OverflowError):
        return dt.UTC
