"""Discovery and loading of plugins, and construction of policies and estimators.

A broken plugin is reported by its name while the rest go on: `find` never imports anything, and
`load` turns whatever an import raises into a `PluginError`.

Every plugin says in its own package against which version of its contract it was written
(``api_version``), and `load` compares that with the version of this Outrider.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

from msgspec import Struct

from outrider.api.adapter import Adapter
from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.api.reader import LogReader
from outrider.model.errors import (
    ConfigurationError,
    MissingPackageError,
    OutriderError,
    PluginError,
    nearest,
)
from outrider.model.settings import Place, build, place_text
from outrider.model.utility import DEFAULT_UTILITIES, SHAPES, TimeUtility, make_utility

ADAPTERS: Final = "outrider.adapters"
POLICIES: Final = "outrider.policies"
READERS: Final = "outrider.readers"
ESTIMATORS: Final = "outrider.estimators"
UTILITIES: Final = "outrider.utilities"


class Contract(NamedTuple):
    """Common properties of the plugins of a group.

    Attributes:
        kind: the word for one of them, used in messages.
        base: the class of which each is a subclass.
        version: raised whenever plugins written for the former version would no longer work.
        methods: methods that each must have, where the base cannot require them.
    """

    kind: str
    base: type[Any]
    version: int
    methods: tuple[str, ...] = ()


CONTRACTS: Final[dict[str, Contract]] = {
    ADAPTERS: Contract("adapter", Adapter, 1),
    POLICIES: Contract("policy", Policy, 1),
    READERS: Contract("reader", LogReader, 1),
    ESTIMATORS: Contract("estimator", RunTimeEstimator, 1),
    UTILITIES: Contract("utility", Struct, 1, ("unit",)),
}
"""Contract of each entry point group."""


@cache
def find(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group's plugins, by name. Imports nothing."""
    return {point.name: point for point in sorted(entry_points(group=group))}


def load(group: str, name: str) -> Any:
    """Load the class of one plugin.

    Raises:
        PluginError: there is none of that name, or it cannot be imported, or it is no plugin of
            this group, or does not say that it was written against this version of the contract.
        MissingPackageError: it needs a package that is not installed here.
    """
    contract = CONTRACTS[group]
    points = find(group)
    if name not in points:
        raise PluginError(
            f'unknown {contract.kind} "{name}"; {nearest(name, points)} '
            "(one that is new in a package is found once that is installed again)"
        )
    point = points[name]
    where = f'{contract.kind} "{name}" ({point.value})'
    try:
        plugin = point.load()
    except MissingPackageError as error:
        raise MissingPackageError(f'{contract.kind} "{name}": {error}') from error
    except Exception as error:
        raise PluginError(f"{where} cannot be loaded: {error}") from error
    wrong = not_a_plugin(contract, plugin) or wrong_version(contract, plugin)
    if wrong:
        raise PluginError(f"{where} {wrong}")
    return plugin


def not_a_plugin(contract: Contract, plugin: Any) -> str:
    """Return why something is not a plugin of a group; empty if it is one."""
    if not (isinstance(plugin, type) and issubclass(plugin, contract.base)):
        return f"is no subclass of {contract.base.__name__}"
    missing = [method for method in contract.methods if not hasattr(plugin, method)]
    return f'has no method "{missing[0]}"' if missing else ""


def wrong_version(contract: Contract, plugin: type[Any]) -> str:
    """Return why a plugin does not fit this version of its contract; empty if it does."""
    declared, right = declared_version(plugin), contract.version
    if declared is None:
        return (
            "does not say which version of the contract it was written against; expected "
            f"api_version = {right} in class {plugin.__name__}"
        )
    if type(declared) is not int or declared != right:
        return (
            f"was written against version {declared!r} of the contract, this Outrider has version "
            f"{right}; expected a release of it with api_version = {right}"
        )
    return ""


def declared_version(plugin: type[Any]) -> Any:
    """Return the ``api_version`` that a plugin's own package declares; None if it does not.

    A value inherited from another package belongs to that package. Inherited from Outrider, it
    would be the version of the running Outrider, and the comparison would hold for any plugin.
    """
    home = _package(plugin)
    for base in plugin.__mro__:
        if _package(base) == home and "api_version" in vars(base):
            return vars(base)["api_version"]
    return None


def _package(plugin: type[Any]) -> str:
    return plugin.__module__.partition(".")[0]


def load_adapter(name: str) -> type[Adapter]:
    """Load the class of an adapter. Raises `PluginError`."""
    adapter: type[Adapter] = load(ADAPTERS, name)
    return adapter


def load_policy(name: str) -> type[Policy]:
    """Load the class of a policy. Raises `PluginError`."""
    policy: type[Policy] = load(POLICIES, name)
    return policy


def load_reader(name: str) -> type[LogReader]:
    """Load the class of a log reader. Raises `PluginError`."""
    reader: type[LogReader] = load(READERS, name)
    return reader


def log_readers() -> list[str]:
    """Return the names of the installed log readers."""
    return list(find(READERS))


def recognise(head: bytes, broken: dict[str, str]) -> type[LogReader] | None:
    """Return the log reader that recognises a file by its first bytes; None if none does.

    Args:
        head: the first bytes of the file.
        broken: readers that cannot be loaded or that fail, and why; they are skipped, and new ones
            added.
    """
    for name in log_readers():
        if name in broken:
            continue
        try:
            kind = load_reader(name)
            if kind.recognises(head):
                return kind
        except PluginError as error:
            broken[name] = str(error)
        except Exception as error:  # noqa: BLE001 - a plugin's code
            broken[name] = f'reader "{name}" fails: {type(error).__name__}: {error}'
    return None


def load_estimator(name: str) -> type[RunTimeEstimator]:
    """Load the class of a run time estimator. Raises `PluginError`."""
    estimator: type[RunTimeEstimator] = load(ESTIMATORS, name)
    return estimator


def utility_shapes(wanted: Iterable[str]) -> dict[str, type[Any]]:
    """Return time utility functions by shape: Outrider's, and the wanted ones of plugins.

    Args:
        wanted: shapes that will be used; a broken plugin among the others has no effect.

    Raises:
        PluginError: a wanted shape under the entry point ``outrider.utilities`` cannot be loaded,
            is no record with a ``unit`` method, or is of another version of the contract.
    """
    others = {name: load(UTILITIES, name) for name in set(wanted) & find(UTILITIES).keys()}
    return {**SHAPES, **others}


# -- making ----------------------------------------------------------------------------------------
# Construction of policies, estimators and utilities from names and settings, the same everywhere.


def make_policy(
    name: str,
    given: Mapping[str, Any],
    seed: int,
    where: str | Place,
    preset: str | None = None,
    kind: type[Policy] | None = None,
) -> Policy:
    """Create a policy from its name and settings.

    Args:
        name: of the plugin.
        given: settings by name; they override the preset's.
        seed: of its random stream.
        where: the place to name in an error.
        preset: one of the policy's named settings.
        kind: its class, where it is no installed plugin; None: the plugin of that name.

    Raises:
        PluginError: the policy cannot be loaded, or fails while it is made.
        ConfigurationError: a setting or the preset is wrong.
    """
    if kind is None:
        kind = load_policy(name)
    settings = dict(given)
    if preset is not None:
        if not isinstance(preset, str) or preset not in kind.presets:
            raise ConfigurationError(
                f'{place_text(where, ["preset"])}: unknown preset "{preset}"; '
                f"{nearest(str(preset), kind.presets)}"
            )
        settings = {**kind.presets[preset], **settings}
    built = build(kind.settings_type, settings, where)
    try:
        return kind(built, stream(seed, f"policy:{name}"))
    except ConfigurationError as error:
        raise ConfigurationError(f"{place_text(where)}: {error}") from error
    except OutriderError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f'{where}: policy "{name}" fails while it is made: {what}') from error


def make_estimator(
    name: str, seed: int, where: str | Place, given: Mapping[str, Any] | None = None
) -> RunTimeEstimator:
    """Create a run time estimator that has seen nothing yet.

    Args:
        name: of the plugin.
        seed: of its random stream.
        where: the place to name in an error.
        given: settings by name.

    Raises:
        PluginError: it cannot be loaded.
        ConfigurationError: a setting is wrong.
    """
    kind = load_estimator(name)
    return kind(build(kind.settings_type, given or {}, where), stream(seed, f"estimator:{name}"))


def make_utilities(
    given: Mapping[str, Mapping[str, Any]], where: str | Place
) -> dict[str, TimeUtility]:
    """Return time utility functions by job class: those declared, over the defaults.

    Args:
        given: by class, ``shape`` and its settings.
        where: the place to name in an error; the class is added.

    PluginError: a shape of a plugin cannot be loaded.
        PluginError: a shape of others cannot be loaded.
        ConfigurationError: an unknown shape, or settings that do not fit it.
    """
    shapes = utility_shapes(str(one.get("shape")) for one in given.values())
    made = {}
    for name, one in given.items():
        at = where.inside(name) if isinstance(where, Place) else f"{where}.{name}"
        made[name] = make_utility(one, at, shapes)
    return {**DEFAULT_UTILITIES, **made}


# -- random streams --------------------------------------------------------------------------------
# Named random streams from one seed; no stream changes when another is added or used.


def stream(seed: int, name: str) -> random.Random:
    """Return the random generator of a name under a seed; the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
