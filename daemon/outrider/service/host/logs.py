"""Set-up of structlog for systemd's journal, a terminal, or JSON.

An event is named noun_participle (``adapter_started``, ``event_rejected``). Its details are in
fields, and every line contains the mode. In shadow the wording is "would".

    log = structlog.get_logger()
    log.info("adapter_started", adapter="campus", cursor=17)
"""

import datetime as dt
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Literal, TextIO, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
import structlog

from outrider.model.printable import printable

Style: TypeAlias = Literal["auto", "journal", "console", "json"]
Line: TypeAlias = MutableMapping[str, Any]

FOREIGN_EVENT: Final = "library_message_relayed"
"""Event name of lines that libraries write through the standard logging."""

_PRIORITIES: Final = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(32), 127)}
_LOGFMT = structlog.processors.LogfmtRenderer(key_order=["mode"], drop_missing=True)


class Mode:
    """The shared mode of the daemon: a change shows in every later line.

    Attributes:
        name: one of `outrider.model.modes.MODES`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def set_up_logs(
    mode: Mode,
    level: str = "info",
    style: Style = "auto",
    stream: TextIO | None = None,
    zone: str = "UTC",
) -> None:
    """Send all log lines, ours and the libraries', to one stream; may be called again.

    Args:
        mode: the mode, whose name every line contains.
        level: the lowest level that is written: debug, info, warning, error, critical.
        style: ``auto`` is ``journal`` if systemd's journal reads the stream, else ``console``.
        stream: the output stream; standard error if None.
        zone: the site's time zone, used for times on a terminal. ``json`` has times in UTC.
    """
    stream = sys.stderr if stream is None else stream
    if style == "auto":
        style = "journal" if is_journal(stream) else "console"

    def add_mode(logger: Any, method: str, line: Line) -> Line:
        line["mode"] = mode.name
        return line

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        add_mode,
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _name_foreign_event],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(style, ZoneInfo(zone), colours=stream.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a reload may set the logs up again
    )


def is_journal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether systemd's journal reads this stream, according to JOURNAL_STREAM.

    That variable contains the device and inode of the stream.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False  # a stream that is no open file is not the journal's
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _renderers(style: Style, zone: ZoneInfo, colours: bool) -> list[structlog.typing.Processor]:
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True, key="time")
    if style == "journal":  # which stamps the time itself
        return [structlog.processors.format_exc_info, _render_journal]
    if style == "json":
        return [stamp, structlog.processors.format_exc_info, _render_json]
    plain = structlog.dev.plain_traceback

    def add_time(logger: Any, method: str, line: Line) -> Line:
        line["timestamp"] = f"{dt.datetime.now(zone):%H:%M:%S}"
        return line

    return [
        add_time,
        _make_printable,
        structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain),
    ]


def _make_printable(logger: Any, method: str, line: Line) -> Line:
    """Spell out what would steer a terminal; names and reasons come from outside."""
    return {
        key: printable(value) if isinstance(value, str) else value for key, value in line.items()
    }


def _name_foreign_event(logger: Any, method: str, line: Line) -> Line:
    """Move a library's message to a field, so that event names stay a small closed set."""
    line["message"] = line["event"]
    line["event"] = FOREIGN_EVENT
    line["logger"] = line["_record"].name
    return line


def _render_journal(logger: Any, method: str, line: Line) -> str:
    """Render ``<6>adapter_started mode=shadow ...``, followed by any traceback.

    The journal treats every line as a separate message, hence a priority on each.
    """
    priority = f"<{_PRIORITIES.get(line.pop('level', 'info'), 6)}>"
    traceback = str(line.pop("exception", "")).splitlines()
    fields = {_one_word(key): value for key, value in line.items()}
    event = fields.pop("event", "")
    text = str(_LOGFMT(logger, method, fields))
    first = printable(f"{event} {text}".translate(_CONTROLS))  # a file name must not forge a line
    return "\n".join(f"{priority}{part}" for part in [first, *traceback])


def _one_word(key: str) -> str:
    return "_".join(str(key).split())


def _render_json(logger: Any, method: str, line: Line) -> str:
    try:
        return msgspec.json.encode(line, enc_hook=repr).decode()  # nan becomes null
    except UnicodeEncodeError:  # a name that is no Unicode text; the standard library escapes it
        return json.dumps(line, default=repr)


class RateLimit:
    """Rate limit of log lines by kind, which counts suppressed lines.

    The first line of a kind is always written. Kinds are bounded: beyond `MAX_KINDS` the others
    count as one, since kinds may contain names of users or errors.

    Args:
        clock: monotonic seconds.
    """

    EVERY_S: Final = 60.0
    MAX_KINDS: Final = 100
    OTHERS: Final = "further kinds"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written_s: dict[str, float] = {}
        self._suppressed: Counter[str] = Counter()

    def kind_of(self, kind: str) -> str:
        """Return the kind under which a line is counted."""
        is_new = kind not in self._written_s and len(self._written_s) >= self.MAX_KINDS
        return self.OTHERS if is_new else kind

    def allows(self, kind: str) -> bool:
        """Return whether a line of this kind may be written now; else count it as suppressed."""
        counted, now_s = self.kind_of(kind), self._clock()
        if now_s - self._written_s.get(counted, -self.EVERY_S) < self.EVERY_S:
            self._suppressed[counted] += 1
            return False
        self._written_s[counted] = now_s
        return True

    def take_suppressed(self, kind: str) -> int:
        """Return the number of suppressed lines of a kind since the last call."""
        return self._suppressed.pop(kind, 0)
