"""The first configuration of a host, with a table for each batch system found there."""

import os
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

from outrider.api.adapter import FoundSystem
from outrider.model.errors import ConfigurationError, MissingPackageError, OutriderError
from outrider.model.localtime import time_zone
from outrider.model.settings import toml_text
from outrider.plugins.finding import ADAPTERS, find, load_adapter
from outrider.service.config.loaded import LoadedConfig, check_config

_LOCALTIME: Final = Path("/etc/localtime")
_ZONES: Final = "zoneinfo/"
_HEAD: Final = """\
# Outrider on this host. In shadow it watches and records what its policy would do. It changes
# nothing in the batch system.
# All other settings, with their defaults: outrider check-config --example
mode = "shadow"
"""


class FirstConfig(NamedTuple):
    """A generated configuration for a host without one.

    Attributes:
        text: the file.
        loaded: the same, validated.
        review: notes for an admin to check, a sentence each.
    """

    text: str
    loaded: LoadedConfig
    review: list[str]


def first_config(path: Path, localtime: Path = _LOCALTIME) -> FirstConfig:
    """Return a configuration in shadow for the batch systems found on this host.

    Args:
        path: path of the file to be.
        localtime: the link that names the host's time zone.

    Raises:
        ConfigurationError: no batch system was found.
    """
    found, broken = found_systems()
    if not found:
        looked = ", ".join([*find(ADAPTERS)])
        raise ConfigurationError(
            f"{path}: does not exist, and no batch system was found on this host to write a file "
            f"for (adapters that looked: {looked}{''.join(f'; {why}' for why in broken)}); "
            "expected a file as `outrider check-config --example` prints it"
        )
    zone, known = _zone(localtime)
    lines = [_HEAD, f"# {'As' if known else 'Unknown'} on this host ({localtime})."]
    lines += [f"timezone = {toml_text(zone)}", ""]
    review = [
        f"{path}: written for {', '.join(f'{one.system} ({one.sign})' for one in found.values())}, "
        f'mode "shadow", time zone {zone}' + ("" if known else ", because the host's is unknown")
    ]
    for name, one in found.items():
        lines += [f"# {one.system}: found by {one.sign}", f"[adapters.{name}]"]
        lines += [f"{key} = {toml_text(value)}" for key, value in one.settings.items()]
        lines.append("")
        review += one.review
    review += broken
    review.append(
        f"add machine groups and their watts, without which no energy is reported: "
        f"outrider doctor --suggest --config {path}"
    )
    text = "\n".join(lines)
    return FirstConfig(text, check_config(tomllib.loads(text), str(path)), review)


def found_systems() -> tuple[dict[str, FoundSystem], list[str]]:
    """Return the systems found, each once, by adapter; and the errors of adapters."""
    found: dict[str, FoundSystem] = {}
    broken: list[str] = []
    for name in find(ADAPTERS):
        try:
            one = load_adapter(name).found_here()
        except MissingPackageError:
            continue  # its batch system may not be installed on this host
        except OutriderError as error:
            broken.append(str(error))
            continue
        except Exception as error:  # noqa: BLE001 - a plugin's code
            broken.append(f'adapter "{name}": {type(error).__name__}: {error}')
            continue
        if one is not None and one.system not in {other.system for other in found.values()}:
            found[name] = one
    return found, broken


def _zone(localtime: Path) -> tuple[str, bool]:
    """Return the host's time zone, or UTC, and whether it is known."""
    _, there, name = os.path.realpath(localtime).rpartition(_ZONES)
    try:
        time_zone(name if there else "")
    except ConfigurationError:
        return "UTC", False
    return name, True
