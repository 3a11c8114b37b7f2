"""Finding the reader for a log, by name or by the look of the file."""

from collections.abc import Mapping
from typing import Final

from outrider.api import ConfigurationError, LogReader, ReaderOptions, nearest
from outrider.plugins.finding import load_reader, log_readers, recognise

AUTO: Final = "auto"
HEAD_BYTES: Final = 64 * 1024


class Readers:
    """The log readers at hand: those of `outrider.plugins.finding`, as for every command.

    A reader is imported when it is first needed. One that cannot be imported is an error where
    it was asked for by name, and is passed over (and noted) where the format is ``auto``.

    Args:
        format_name: a reader's name, or ``auto``.

    Attributes:
        broken: why a reader cannot be loaded, by name.
        state_words: what the logs' batch system calls the states of jobs, as the first reader that
            was needed and has words says it.

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
        """A new reader for a file that begins with these bytes; None if nobody recognises it."""
        if self._format_name != AUTO:
            return self._made(load_reader(self._format_name), options)
        kind = recognise(head, self.broken)
        return None if kind is None else self._made(kind, options)

    def reader_named(self, name: str, options: ReaderOptions) -> LogReader | None:
        """A new reader by the name in a cursor; None if it is not at hand any more."""
        return self._made(load_reader(name), options) if name in log_readers() else None

    def _made(self, kind: type[LogReader], options: ReaderOptions) -> LogReader:
        self.state_words = self.state_words or kind.state_words
        return kind(options)
