"""What to say of a log reader that fails: which one, in which file and in which line."""

from math import isfinite
from pathlib import Path

from outrider.api.reader import LogReader, ReaderOptions
from outrider.model.errors import OutriderError, PluginError


def made(kind: type[LogReader], options: ReaderOptions, path: Path) -> LogReader:
    """A reader for one file.

    Raises:
        PluginError: it fails while it is made.
        ConfigurationError: it refuses the options.
    """
    try:
        return kind(options)
    except OutriderError:
        raise
    except Exception as error:
        raise PluginError(
            f'{path}: reader "{kind.name}" fails while it is made: {_named(error)}'
        ) from error


def reading_fault(
    reader: LogReader, data: bytes, path: Path, lines_before: int, error: Exception
) -> PluginError:
    """The error to raise where a reader failed.

    Args:
        reader: it raised, or made events that are none.
        data: what it was fed.
        path: the file that `data` is part of.
        lines_before: lines of the file before `data`.
        error: what was raised.
    """
    line = _failing_line(type(reader), reader.options, data)
    place = f"after line {lines_before}" if line is None else f"line {lines_before + line}"
    return PluginError(
        f'{path}, {place}: reader "{reader.name}" fails: {_named(error)}; right would be to count '
        "a record that it cannot read as rejected"
    )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failing_line(kind: type[LogReader], options: ReaderOptions, data: bytes) -> int | None:
    """The first line of `data`, from 1, on which a new reader fails; None: on none."""
    lines = data.splitlines(keepends=True)

    def fails(n: int) -> bool:
        try:
            reading = kind(options).read(b"".join(lines[:n]), final=n == len(lines))
            all(isfinite(event[0]) for event in reading.events)
        except Exception:  # noqa: BLE001 - it is what is looked for
            return True
        return False

    if not fails(len(lines)):
        return None
    sound, failing = 0, len(lines)
    while failing - sound > 1:
        middle = (sound + failing) // 2
        if fails(middle):
            failing = middle
        else:
            sound = middle
    return failing
