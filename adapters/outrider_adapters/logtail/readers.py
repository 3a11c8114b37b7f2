"""Finding the reader for a log, by name or by the look of the file."""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, TypeAlias

from outrider.api import ConfigurationError, LogReader, PluginError, ReaderOptions, nearest

GROUP: Final = "outrider.readers"
AUTO: Final = "auto"
HEAD_BYTES: Final = 64 * 1024
_SHIPPED: Final = {
    "htcondor": "outrider_adapters.readers.htcondor:HTCondorLogReader",
    "pbs": "outrider_adapters.readers.pbs:PBSAccountingReader",
    "slurm-sacct": "outrider_adapters.readers.slurm:SacctReader",
    "slurm-jobcomp": "outrider_adapters.readers.slurm:JobcompReader",
}

ReaderType: TypeAlias = type[LogReader]


class Readers:
    """The log readers at hand: those of installed packages and those shipped with this one.

    A reader is imported when it is first needed. One that cannot be imported is an error where
    it was asked for by name, and is passed over (and noted) where the format is ``auto``.

    Args:
        format_name: a reader's name, or ``auto``.

    Raises:
        ConfigurationError: there is no reader of that name.
        PluginError: the reader of that name cannot be imported.
    """

    def __init__(self, format_name: str) -> None:
        self._loaders: dict[str, Callable[[], ReaderType]] = {
            name: _from_source(target) for name, target in _SHIPPED.items()
        }
        self._loaders |= {point.name: point.load for point in entry_points(group=GROUP)}
        self._loaded: dict[str, ReaderType] = {}
        self.broken: dict[str, str] = {}
        self._format_name = format_name
        if format_name == AUTO:
            return
        if format_name not in self._loaders:
            raise ConfigurationError(
                f'"format" = {format_name!r}: no such log reader; '
                f"{nearest(format_name, [AUTO, *self._loaders])}"
            )
        self._load(format_name)

    def reader_for(self, head: bytes, options: ReaderOptions) -> LogReader | None:
        """A new reader for a file that begins with these bytes; None if nobody recognises it."""
        if self._format_name != AUTO:
            return self._load(self._format_name)(options)
        for name in self._loaders:
            if name in self.broken:
                continue
            try:
                reader = self._load(name)
            except PluginError as error:
                self.broken[name] = str(error)
                continue
            if reader.recognises(head):
                return reader(options)
        return None

    def reader_named(self, name: str, options: ReaderOptions) -> LogReader | None:
        """A new reader by the name in a cursor; None if it is not at hand any more."""
        return self._load(name)(options) if name in self._loaders else None

    def _load(self, name: str) -> ReaderType:
        reader = self._loaded.get(name)
        if reader is None:
            try:
                reader = self._loaders[name]()
            except Exception as error:  # a plugin may fail in any way
                raise PluginError(f'log reader "{name}" cannot be loaded: {error}') from error
            self._loaded[name] = reader
        return reader


def _from_source(target: str) -> Callable[[], ReaderType]:
    """Load a shipped reader where the package is used from its source, without entry points."""
    module, _, attribute = target.partition(":")

    def load() -> ReaderType:
        reader: ReaderType = getattr(import_module(module), attribute)
        return reader

    return load
