"""A sweep's file: traces x policies with their settings x seeds, checked whole before it runs."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from outrider.formats.digests import trace_sha256
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.model.settings import build
from outrider.simulation.generators.campus.options import CampusOptions, check
from outrider_lab.running.campus_run import campus_spec
from outrider_lab.running.cluster_settings import ClusterSettings
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import CampusFolder, GeneratedCampus
from outrider_lab.sweep.workload_axes import AXES, Ground, grounds
from outrider_lab.sweep.workload_run import workload_spec

Seed = Annotated[int, Meta(ge=0)]


class Sweep(NamedTuple):
    """What a sweep's file asks for: `specs` in the order of the results, and jobs' settings."""

    specs: list[RunSpec]
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
    traces: Annotated[
        list[dict[str, Any]], Meta(min_length=1, examples=[[{"generated": [1], "weeks": 4}]])
    ]
    policies: Annotated[list[dict[str, Any]], Meta(min_length=1, examples=[[{"name": "bandit"}]])]
    seeds: Annotated[tuple[Seed, ...], Meta(min_length=1)] = (0,)
    cluster: dict[str, Any] = {}


_NO_AXES: Mapping[str, Any] = {}


def read_sweep(path: Path, axes: Mapping[str, Any] = _NO_AXES) -> Sweep:
    """Read a sweep's file; ``docs/sweeps.md`` describes it.

    Folders and files of traces are relative to the file's own folder.

    Args:
        path: of the file.
        axes: values of `workload_axes.AXES`, in place of those of every workload of the file.

    Raises:
        ConfigurationError: the file is missing or wrong; names file, place and value.
        PluginError: a policy is not installed.
        TraceError: a workload file cannot be read.
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
        for trace in _traces(table, axes, path.parent, f"{path} [[traces]] {number}")
    ]
    if axes and not any(isinstance(trace, Ground) for trace in traces):
        raise ConfigurationError(
            f"--{next(iter(axes)).replace('_', '-')}: {path} has no workload file to run with it"
        )
    policies = [
        policy
        for number, table in enumerate(file.policies, 1)
        for policy in _policies(table, f"{path} [[policies]] {number}")
    ]
    specs = [_spec(*parts) for parts in product(traces, policies, file.seeds)]
    _check(specs, path)
    return Sweep(specs, cluster)


def _spec(trace: Ground | GeneratedCampus | CampusFolder, policy: PolicySpec, seed: int) -> RunSpec:
    if isinstance(trace, Ground):
        return workload_spec(trace.trace, policy, seed, trace.estimates, trace.discipline)
    return campus_spec(trace, policy, seed)


def _check(specs: list[RunSpec], path: Path) -> None:
    """Refuse a run that is there twice, and policies that cannot be made."""
    by_key = {spec.key: spec for spec in specs}
    for key, times in Counter(spec.key for spec in specs).items():
        if times > 1:
            raise ConfigurationError(f"{path}: the run {by_key[key]} is there {times} times")
    try:
        for spec in {str(spec.policy): spec for spec in specs}.values():
            spec.make_policy()
    except OutriderError as error:
        raise type(error)(f"{path}: {error}") from error


# -- traces -------------------------------------------------------------------------------------


def _traces(
    table: Mapping[str, Any], axes: Mapping[str, Any], beside: Path, where: str
) -> Iterator[Ground | GeneratedCampus | CampusFolder]:
    if sum(kind in table for kind in ("folder", "generated", "workload")) != 1:
        raise ConfigurationError(
            f"{where}: right would be either folder = a campus folder, generated = [seeds], or "
            "workload = a file or a list of files (.swf, .swf.gz)"
        )
    if "workload" in table:
        yield from grounds(table, axes, beside, where)
        return
    if misplaced := next((name for name in AXES if name in table and name != "machines"), None):
        raise ConfigurationError(f"{where}: {misplaced} is for workload files, and no campus")
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
        yield GeneratedCampus(seed, tuple(options.items()))


def _folder(asked: _Folder, beside: Path, where: str) -> CampusFolder:
    folder = (beside / asked.folder).resolve()
    if not (folder / "site.toml").is_file():
        raise ConfigurationError(
            f'{where}: "folder" = "{asked.folder}": {folder} is no campus folder: it has no '
            "site.toml; right would be a folder that `outrider generate campus` wrote"
        )
    return CampusFolder(str(folder), asked.skip_bad, trace_sha256(folder), asked.folder)


# -- policies -----------------------------------------------------------------------------------


def _policies(table: Mapping[str, Any], where: str) -> Iterator[PolicySpec]:
    """Each point of a policy's grid; the last setting runs fastest."""
    asked = build(_Policy, table, where)
    presets = asked.preset if isinstance(asked.preset, list) else [asked.preset]
    choices = {
        name: values if isinstance(values, list) else [values]
        for name, values in asked.settings.items()
    }
    for name, values in [("preset", presets), *choices.items()]:
        if not values:
            raise ConfigurationError(f"{where}: {name} = [] leaves no run; name a value")
    for preset, *point in product(presets, *choices.values()):
        yield PolicySpec.of(asked.name, dict(zip(choices, point, strict=True)), preset)
