"""Finding plugins by entry points: adapters, policies, readers, ...; loaded when asked for.

A broken plugin is reported by its name while the rest go on: `find` never imports anything, and
`load` turns whatever an import raises into a `PluginError`.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from msgspec import Struct

from outrider.api.adapter import API_VERSION as ADAPTER_API
from outrider.api.adapter import Adapter
from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import API_VERSION as POLICY_API
from outrider.api.policy import Policy
from outrider.api.reader import LogReader
from outrider.model.errors import MissingPackageError, PluginError, nearest
from outrider.model.utility import SHAPES

ADAPTERS = "outrider.adapters"
POLICIES = "outrider.policies"
READERS = "outrider.readers"
ESTIMATORS = "outrider.estimators"
UTILITIES = "outrider.utilities"
_BASES: dict[str, type[Any]] = {
    ADAPTERS: Adapter,
    POLICIES: Policy,
    READERS: LogReader,
    ESTIMATORS: RunTimeEstimator,
}
_VERSIONS = {ADAPTERS: ADAPTER_API, POLICIES: POLICY_API}


@cache
def find(group: str) -> dict[str, EntryPoint]:
    """Names of the plugins of a group, and where each would be loaded from. Imports nothing."""
    return {point.name: point for point in sorted(entry_points(group=group))}


def load(group: str, name: str) -> Any:
    """The class of one plugin.

    Raises:
        PluginError: there is none of that name, or it cannot be imported, or it is no plugin of
            this group, or was written against another version of the contract.
        MissingPackageError: it needs a package that is not installed here.
    """
    kind = group.rpartition(".")[2].rstrip("s").replace("ie", "y")
    points = find(group)
    if name not in points:
        raise PluginError(f'unknown {kind} "{name}"; {nearest(name, points)}')
    point = points[name]
    try:
        plugin = point.load()
    except MissingPackageError as error:
        raise MissingPackageError(f'{kind} "{name}": {error}') from error
    except Exception as error:
        raise PluginError(f'{kind} "{name}" ({point.value}) cannot be loaded: {error}') from error
    base = _BASES[group]
    if not (isinstance(plugin, type) and issubclass(plugin, base)):
        raise PluginError(f'{kind} "{name}" ({point.value}) is no subclass of {base.__name__}')
    wanted = _VERSIONS.get(group)
    if wanted is not None and plugin.api_version != wanted:  # type: ignore[attr-defined]
        raise PluginError(
            f'{kind} "{name}" was written against version {plugin.api_version} of the '  # type: ignore[attr-defined]
            f"contract; this is version {wanted}"
        )
    return plugin


def load_adapter(name: str) -> type[Adapter]:
    """The class of an adapter. Raises `PluginError`."""
    adapter: type[Adapter] = load(ADAPTERS, name)
    return adapter


def load_policy(name: str) -> type[Policy]:
    """The class of a policy. Raises `PluginError`."""
    policy: type[Policy] = load(POLICIES, name)
    return policy


def load_reader(name: str) -> type[LogReader]:
    """The class of a log reader. Raises `PluginError`."""
    reader: type[LogReader] = load(READERS, name)
    return reader


def log_readers() -> list[str]:
    """Names of the log readers at hand."""
    return list(find(READERS))


def recognise(head: bytes, broken: dict[str, str]) -> type[LogReader] | None:
    """The log reader that recognises a file by its first bytes; None if none does.

    Args:
        head: of the file.
        broken: readers that cannot be loaded, and why; they are passed over, and new ones added.
    """
    for name in log_readers():
        if name in broken:
            continue
        try:
            kind = load_reader(name)
        except PluginError as error:
            broken[name] = str(error)
            continue
        if kind.recognises(head):
            return kind
    return None


def load_estimator(name: str) -> type[RunTimeEstimator]:
    """The class of a run time estimator. Raises `PluginError`."""
    estimator: type[RunTimeEstimator] = load(ESTIMATORS, name)
    return estimator


def utility_shapes() -> dict[str, type[Any]]:
    """Time utility functions by shape: those of Outrider, and others' that can be loaded.

    Raises:
        PluginError: a shape under the entry point ``outrider.utilities`` cannot be loaded, or is
            no record with a ``unit`` method.
    """
    shapes = dict(SHAPES)
    for name, point in find(UTILITIES).items():
        try:
            shape = point.load()
        except Exception as error:
            raise PluginError(
                f'utility "{name}" ({point.value}) cannot be loaded: {error}'
            ) from error
        if not (isinstance(shape, type) and issubclass(shape, Struct) and hasattr(shape, "unit")):
            raise PluginError(
                f'utility "{name}" ({point.value}) is no msgspec record with a "unit" method'
            )
        shapes[name] = shape
    return shapes
