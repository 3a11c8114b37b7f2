"""A look at logs before they are followed: whether each is there, may be read, and is one."""

import glob
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from outrider.api import ReaderOptions
from outrider_adapters.logtail.identity import open_file
from outrider_adapters.logtail.readers import HEAD_BYTES, Readers
from outrider_adapters.logtail.settings import LogtailSettings

_MOST_LOOKED_AT: Final = 100


def wrong_with(settings: LogtailSettings) -> Iterator[str]:
    """What is wrong with the logs that the settings name, a sentence each; nothing is kept open.

    It may hang, as a log on a dead mount does. Of a pattern the newest hundred files are looked at.

    Raises:
        ConfigurationError, PluginError: as `Readers`.
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
        for file in regular[-_MOST_LOOKED_AT:]:
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
        in_vain = reading.rejected or len(head) < HEAD_BYTES
        if in_vain and not (reading.events or reading.ignored):
            yield f"{path}: no record of its beginning can be read as {reader.name}"
