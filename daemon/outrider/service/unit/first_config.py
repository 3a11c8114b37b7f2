"""The first configuration of a host: a table for each batch system that its adapters find there."""

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
# Outrider on this host. In shadow it watches, and records what its policy would do: it changes
# nothing in the batch system.
# Every other setting, with its default: outrider check-config --example
mode = "shadow"
"""


class FirstConfig(NamedTuple):
    """A configuration that nobody has written yet.

    Attributes:
        text: the file.
        loaded: the same, checked.
        review: what somebody should look at, a sentence each.
    """

    text: str
    loaded: LoadedConfig
    review: list[str]


def first_config(path: Path, localtime: Path = _LOCALTIME) -> FirstConfig:
    """Return a configuration in shadow for what is found on this host.

    Args:
        path: of the file that it will be.
        localtime: the link that names the host's time zone.

    Raises:
        ConfigurationError: no batch system was found.
    """
    found, broken = found_systems()
    if not found:
        looked = ", ".join([*find(ADAPTERS)])
        raise ConfigurationError(
            f"{path}: there is no such file, and no batch system was found on this host to write "
            f"one for (adapters that looked: {looked}{''.join(f'; {why}' for why in broken)}); "
            "expected a file as `outrider check-config --example` prints it"
        )
    zone, known = _zone(localtime)
    lines = [_HEAD, f"# {'As' if known else 'Not found out'} on this host ({localtime})."]
    lines += [f"timezone = {toml_text(zone)}", ""]
    review = [
        f"{path}: written for {', '.join(f'{one.system} ({one.sign})' for one in found.values())}, "
        f'mode "shadow", time zone {zone}' + ("" if known else ", for none was found out")
    ]
    for name, one in found.items():
        lines += [f"# {one.system}: found by {one.sign}", f"[adapters.{name}]"]
        lines += [f"{key} = {toml_text(value)}" for key, value in one.settings.items()]
        lines.append("")
        review += one.review
    review += broken
    review.append(
        f"machine groups, and their watts, without which there is no energy: "
        f"outrider doctor --suggest --config {path}"
    )
    text = "\n".join(lines)
    return FirstConfig(text, check_config(tomllib.loads(text), str(path)), review)


def found_systems() -> tuple[dict[str, FoundSystem], list[str]]:
    """What is found, by adapter, each system once; and what kept adapters from looking."""
    found: dict[str, FoundSystem] = {}
    broken: list[str] = []
    for name in find(ADAPTERS):
        try:
            one = load_adapter(name).found_here()
        except MissingPackageError:
            continue  # it may be for a system that is not here at all
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
    """Return the host's time zone, and whether it was found out; UTC where it was not."""
    _, there, name = os.path.realpath(localtime).rpartition(_ZONES)
    try:
        time_zone(name if there else "")
    except ConfigurationError:
        return "UTC", False
    return name, True
