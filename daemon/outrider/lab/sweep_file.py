"""A sweep's file: traces x policies with their settings x seeds, checked whole before it runs."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import file_digest, sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from outrider.lab.cells import CampusFolder, Cell, GeneratedCampus, TraceSource, check_cells
from outrider.lab.sweep_jobs import ClusterSettings
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.model.settings import build
from outrider.simulation.generators.campus.options import CampusOptions, check

Seed = Annotated[int, Meta(ge=0)]


class SweptTrace(NamedTuple):
    """A trace of a sweep.

    Attributes:
        name: as results call it.
        mark: changes when the trace changes: results of the old one are not taken for its own.
        source: where it comes from.
    """

    name: str
    mark: str
    source: TraceSource


class SweptCell(NamedTuple):
    """A cell of a sweep.

    Attributes:
        key: 16 hexadecimal digits; the same cell has the same in every sweep.
        trace: name of its trace as results call it.
        cell: what to run.
    """

    key: str
    trace: str
    cell: Cell


class Sweep(NamedTuple):
    """What a sweep's file asks for: `cells` in the order of the results, and jobs' settings."""

    cells: list[SweptCell]
    cluster: ClusterSettings


class _Folder(msgspec.Struct, frozen=True):
    folder: str
    skip_bad: bool = False


class _Generated(CampusOptions, frozen=True, kw_only=True):
    generated: list[Seed]


class _Policy(msgspec.Struct, frozen=True):
    name: str
    preset: str | list[str] | None = None
    settings: dict[str, Any] = {}


class _File(msgspec.Struct, frozen=True):
    traces: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    policies: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)] = (0,)
    cluster: dict[str, Any] = {}


def read_sweep(path: Path) -> Sweep:
    """Read a sweep's file; ``docs/sweeps.md`` describes it.

    Folders of traces are relative to the file's own folder.

    Raises:
        ConfigurationError: the file is missing or wrong; names file, place and value.
        PluginError: a policy is not installed.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from error
    file = build(_File, given, str(path))
    cluster = build(ClusterSettings, file.cluster, f"{path} [cluster]")
    traces = [
        trace
        for number, table in enumerate(file.traces, 1)
        for trace in _traces(table, path.parent, f"{path} [[traces]] {number}")
    ]
    policies = [
        policy
        for number, table in enumerate(file.policies, 1)
        for policy in _policies(table, f"{path} [[policies]] {number}")
    ]
    cells = [_cell(*parts) for parts in product(traces, policies, file.seeds)]
    _check(cells, path)
    return Sweep(cells, cluster)


def _check(cells: list[SweptCell], path: Path) -> None:
    for key, times in Counter(cell.key for cell in cells).items():
        if times > 1:
            twice = next(cell.cell for cell in cells if cell.key == key)
            raise ConfigurationError(f"{path}: the cell {twice} is there {times} times")
    first = cells[0]  # policies do not depend on traces and seeds
    alike = [c.cell for c in cells if (c.trace, c.cell.seed) == (first.trace, first.cell.seed)]
    try:
        check_cells(alike)
    except OutriderError as error:
        raise type(error)(f"{path}: {error}") from error


def _cell(
    trace: SweptTrace, policy: tuple[str, str | None, dict[str, Any]], seed: int
) -> SweptCell:
    name, preset, settings = policy
    parts = [trace.name, trace.mark, name, preset, settings, seed]
    key = sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]
    return SweptCell(key, trace.name, Cell(trace.source, name, settings, preset, seed))


# -- traces -------------------------------------------------------------------------------------


def _traces(table: Mapping[str, Any], beside: Path, where: str) -> Iterator[SweptTrace]:
    if ("folder" in table) == ("generated" in table):
        raise ConfigurationError(
            f"{where}: right would be either folder = a campus folder, or generated = [seeds]"
        )
    if "folder" in table:
        yield _folder(build(_Folder, table, where), beside, where)
        return
    options = {name: value for name, value in table.items() if name != "generated"}
    asked = build(_Generated, table, where)
    try:
        check(asked)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    for seed in asked.generated:
        campus = GeneratedCampus(seed, tuple(options.items()))
        yield SweptTrace(campus.name, "", campus)


def _folder(asked: _Folder, beside: Path, where: str) -> SweptTrace:
    folder = (beside / asked.folder).resolve()
    if not (folder / "site.toml").is_file():
        raise ConfigurationError(
            f'{where}: "folder" = {asked.folder!r}: {folder} is no campus folder: it has no '
            "site.toml"
        )
    digest = sha256(str(asked.skip_bad).encode())
    for file in sorted(folder.iterdir()):
        if file.name.endswith((".toml", ".csv", ".csv.gz")):
            with file.open("rb") as content:
                digest.update(f"{file.name} {file_digest(content, 'sha256').hexdigest()}".encode())
    return SweptTrace(asked.folder, digest.hexdigest(), CampusFolder(str(folder), asked.skip_bad))


# -- policies -----------------------------------------------------------------------------------


def _policies(
    table: Mapping[str, Any], where: str
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """Name, preset and settings of each point of a policy's grid; the last setting runs fastest."""
    asked = build(_Policy, table, where)
    presets = asked.preset if isinstance(asked.preset, list) else [asked.preset]
    choices = {
        name: values if isinstance(values, list) else [values]
        for name, values in asked.settings.items()
    }
    for name, values in [("preset", presets), *choices.items()]:
        if not values:
            raise ConfigurationError(f"{where}: {name} = [] leaves no cell; name a value")
    for preset, *point in product(presets, *choices.values()):
        yield asked.name, preset, dict(zip(choices, point, strict=True))
