"""Find the reader for a log, by name or by the content of the file."""

import glob
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from outrider.api import ConfigurationError, LogReader, ReaderOptions, nearest
from outrider.plugins.finding import load_reader, log_readers, recognise
from outrider_adapters.logtail.identity import open_file
from outrider_adapters.logtail.settings import LogtailSettings

AUTO: Final = "auto"
HEAD_BYTES: Final = 64 * 1024


class Readers:
    """Installed log readers, found by `outrider.plugins.finding` as for every command.

    A reader is imported when it is first needed. One that cannot be imported is an error if it was
    requested by name, and is skipped (and noted) if the format is ``auto``.

    Args:
        format_name: a reader's name, or ``auto``.

    Attributes:
        broken: why a reader cannot be loaded, by name.
        state_words: the batch system's names of job states, from the first reader that was needed
            and has them.

    Raises:
        ConfigurationError: there is no reader of that name.
        PluginError: the reader of that name cannot be imported.
    """

    def __init__(self, format_name: str) -> None:
        self.broken: dict[str, str] = {}
        self.state_words: Mapping[str, str] = {}
        self._format_name = format_name
        if format_name == AUTO:
            return
        known = log_readers()
        if format_name not in known:
            raise ConfigurationError(
                f'"format" = {format_name!r}: no such log reader; '
                f"{nearest(format_name, [AUTO, *known])}"
            )
        load_reader(format_name)

    def reader_for(self, head: bytes, options: ReaderOptions) -> LogReader | None:
        """Return a new reader for a file that begins with these bytes; None if none fits."""
        if self._format_name != AUTO:
            return self._made(load_reader(self._format_name), options)
        kind = recognise(head, self.broken)
        return None if kind is None else self._made(kind, options)

    def reader_named(self, name: str, options: ReaderOptions) -> LogReader | None:
        """Return a new reader by the name in a cursor; None if it is no longer installed."""
        return self._made(load_reader(name), options) if name in log_readers() else None

    def _made(self, kind: type[LogReader], options: ReaderOptions) -> LogReader:
        self.state_words = self.state_words or kind.state_words
        return kind(options)


# -- first look ------------------------------------------------------------------------------------
# Checks of logs before they are followed: each must exist, be readable and be a log.

_MAX_CHECKED_FILES: Final = 100


def wrong_with(settings: LogtailSettings) -> Iterator[str]:
    """Yield the problems of the logs in the settings, a sentence each; no file stays open.

    It may hang, like a log on a dead mount. Of a pattern the newest hundred files are checked.

    Raises:
        ConfigurationError, PluginError: see `Readers`.
    """
    readers = Readers(settings.format)
    options = ReaderOptions(timezone=settings.timezone, modified_s=time.time())
    for path in settings.paths:
        if not glob.has_magic(path):
            yield from _wrong_with(Path(path), readers, options)
            continue
        files = [Path(found) for found in glob.glob(path)]  # noqa: PTH207  # absolute ones, too
        regular = sorted((f for f in files if f.is_file()), key=lambda f: f.stat().st_mtime)
        if not regular:
            yield f"{path}: no file matches it"
        for file in regular[-_MAX_CHECKED_FILES:]:
            yield from _wrong_with(file, readers, options)


def _wrong_with(path: Path, readers: Readers, options: ReaderOptions) -> Iterator[str]:
    try:
        descriptor = open_file(path)
        if descriptor is None:
            yield f"{path} is not there"
            return
        try:
            head = os.pread(descriptor, HEAD_BYTES, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        yield f"{path}: {error.strerror or error}"
        return
    reader = readers.reader_for(head, options) if head else None
    if head and reader is None:
        yield f"{path}: no log reader recognises it"
    elif reader is not None:
        reading = reader.read(head, final=True)
        nothing_read = reading.rejected or len(head) < HEAD_BYTES
        if nothing_read and not (reading.events or reading.ignored):
            yield f"{path}: no record at its beginning can be read as {reader.name}"
