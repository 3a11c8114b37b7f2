"""The configuration as commands need it: its file, its state directory, where its daemon is."""

from pathlib import Path
from typing import TYPE_CHECKING

from outrider.cli.daemon import DaemonAddress, default_socket
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import clock

if TYPE_CHECKING:
    from outrider.journal import Journal
    from outrider.service.config.loaded import LoadedConfig
    from outrider.service.config.reading import ReadConfig


def load(path: Path) -> "LoadedConfig":
    """Read and check a configuration file. Raises `ConfigurationError`, `PluginError`."""
    from outrider.service.config.loaded import load_config

    return load_config(path)


def read(path: Path | None) -> "ReadConfig | None":
    """What a command reads that only asks the daemon, or looks into its state directory.

    Adapters and policies are not loaded: what is wrong with them keeps nobody from asking.

    Args:
        path: None where no configuration was given: then there is none.

    Raises:
        ConfigurationError: the file is missing or wrong.
    """
    if path is None:
        return None
    from outrider.service.config.reading import read_config

    return read_config(path)


def journal_path(config: "ReadConfig | None") -> Path:
    """The journal of the daemon with this configuration; systemd's state directory wins.

    Args:
        config: None for a daemon with the default state directory.
    """
    from outrider.service.config.declarations import Config
    from outrider.service.config.reading import JOURNAL_NAME, ReadConfig, state_folder

    return state_folder(config or ReadConfig(Config(), "the default")) / JOURNAL_NAME


def daemon_address(
    url: str | None,
    config: "ReadConfig | None",
    token_file: Path | None = None,
    ca: Path | None = None,
) -> DaemonAddress:
    """Return where to ask: the URL given, else where the configuration listens, else the default.

    Args:
        url: None for the daemon of the configuration, or of the shipped unit.
        config: None where no configuration was given.
        token_file: wins over the configuration's.
        ca: wins over the configuration's certificate.

    Raises:
        ConfigurationError: both were given, or the configuration names no port.
    """
    if url is not None and config is not None:
        raise ConfigurationError("--url and --config: give one of them")
    if config is not None:
        address = DaemonAddress.configured(config)
    elif url is not None:
        address = DaemonAddress(url)
    else:
        address = DaemonAddress(socket=default_socket())
    if token_file is not None:
        address = address._replace(token_file=str(token_file))
    return address if ca is None else address._replace(ca=str(ca))


# -- journals --------------------------------------------------------------------------------------
# Journals as commands read them: opened to read alone, their times in words.


def open_journal(file: Path) -> "Journal":
    """A journal, to read, even while a daemon writes it. Raises `LedgerError`."""
    from outrider.journal import Journal

    return Journal(file, read_only=True)


def zone_of(journal: "Journal") -> str:
    """The time zone of its site."""
    from outrider.journal import TIMEZONE_KEY

    zone: str = journal.meta(TIMEZONE_KEY, "UTC")
    return zone


def time_in_words(time_s: float, zone: str) -> str:
    """Unix times as dates at the site, times of a trace as seconds since its start."""
    return clock(time_s, zone) if time_s > 1e9 else f"{time_s:.1f} s"
