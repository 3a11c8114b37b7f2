"""A sweep's file: traces x policies with their settings x seeds, checked whole before it runs."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from outrider.formats.digests import file_sha256, trace_sha256
from outrider.formats.job_classes import class_rule
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.model.modes import STRICT, Discipline
from outrider.model.settings import build
from outrider.simulation.estimates import REQUESTED, default_rule, estimate_rule
from outrider.simulation.generators.campus.options import CampusOptions, check
from outrider_lab.running.campus_run import campus_spec
from outrider_lab.running.dask_workers import ClusterSettings
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import (
    DAY_S,
    CampusFolder,
    GeneratedCampus,
    NamedWorkloadFile,
    WorkloadFile,
    WorkloadWindow,
    whole_file,
)
from outrider_lab.sweep.workload_run import DEFAULT, workload_spec

# -- workload axes ---------------------------------------------------------------------------------
# What of a sweep's file is about workload files: files, windows of them, and the axes of runs.

AXES: Final = ("estimates", "discipline", "class_by", "machines")
"""Keys of a table of traces with one or more values, and options of the command."""

_Machines = Annotated[int, Meta(ge=1)]
_Days = Annotated[float, Meta(gt=0)]


class _Windows(msgspec.Struct, frozen=True):
    """Windows of `days` each; the next one begins `every_days` later."""

    days: _Days
    first_day: Annotated[float, Meta(ge=0)] = 0.0
    every_days: _Days | None = None
    count: Annotated[int, Meta(ge=1)] | None = None


class _Table(msgspec.Struct, frozen=True):
    workload: str | Annotated[list[str], Meta(min_length=1)]
    windows: _Windows | None = None
    estimates: str | list[str] | None = None
    discipline: Discipline | list[Discipline] = STRICT
    class_by: str | list[str] | None = None
    machines: _Machines | list[_Machines] | None = None
    vo: str = "group"


class Ground(NamedTuple):
    """Trace on which policies run, with their knowledge of run times and the discipline."""

    trace: WorkloadFile | WorkloadWindow
    estimates: str
    discipline: str


def grounds(
    table: Mapping[str, Any], axes: Mapping[str, Any], base: Path, where: str
) -> Iterator[Ground]:
    """Return every ground of a table of traces; disciplines run fastest, then estimates.

    Files are read, so that what cannot be run is refused before a long sweep.

    Args:
        table: of the sweep's file.
        axes: values of `AXES` that the command was given, in place of the table's.
        base: the folder that paths are relative to.
        where: the table, for errors.

    Raises:
        ConfigurationError: the table is wrong, names file, place and value.
        TraceError: a file cannot be read.
    """
    asked = build(_Table, {**table, **axes}, where)
    paths = asked.workload if isinstance(asked.workload, list) else [asked.workload]
    rules = [word or DEFAULT for word in _values(asked.estimates, f"{where}: estimates")]
    disciplines = _values(asked.discipline, f"{where}: discipline")
    places = product(
        paths,
        _values(asked.machines, f"{where}: machines"),
        _values(asked.class_by, f"{where}: class_by"),
    )
    for word in rules:
        if word != DEFAULT:
            estimate_rule(word, f"{where}: estimates")
    for path, machines, classes in places:
        rule = None if classes is None else class_rule(classes, f"{where}: class_by")
        file = base / path
        try:
            digest = file_sha256(file)
        except OSError as error:
            raise ConfigurationError(
                f'{where}: "workload" = "{path}": {file} cannot be read: {error.strerror}; '
                "expected a file in Standard Workload Format (.swf, .swf.gz)"
            ) from error
        whole = NamedWorkloadFile(str(file.resolve()), machines, rule, asked.vo, 0.0, digest, path)
        _check_requests(whole, rules, where)
        for trace in _windows(whole, asked.windows, where):
            for estimates, discipline in product(rules, disciplines):
                yield Ground(trace, estimates, discipline)


def _values(given: Any, where: str) -> list[Any]:
    """Return the values of an axis. Raises `ConfigurationError` where that is an empty list."""
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ConfigurationError(f"{where} = [] leaves no run; name a value")
    return values


def _check_requests(file: WorkloadFile, rules: Sequence[str], where: str) -> None:
    """Refuse an unreadable file, and one without the requests that the rules need."""
    try:
        asked_for = default_rule(whole_file(file)).kind == REQUESTED
    except OutriderError as error:
        raise type(error)(f"{where}: {error}") from error
    if REQUESTED in rules and not asked_for:
        raise ConfigurationError(
            f'{where}: estimates = "{REQUESTED}": no user of {file.name} requested a run time; '
            "expected learned, or exact, which uses the true run time"
        )


def _windows(
    file: WorkloadFile, asked: _Windows | None, where: str
) -> Iterator[WorkloadFile | WorkloadWindow]:
    """Return the file, or its windows; without a count all whole ones. None may be empty."""
    if asked is None:
        yield file
        return
    after_d = (whole_file(file).submit_s - whole_file(file).submit_s[0]) / DAY_S
    every = asked.days if asked.every_days is None else asked.every_days
    fit = int((float(after_d[-1]) - asked.first_day - asked.days) // every) + 1
    count = fit if asked.count is None else asked.count
    if fit < 1 or count > fit:
        raise ConfigurationError(
            f"{where}: windows: {file.name} has submissions for {after_d[-1]:.4g} days, in which "
            f"{max(fit, 0)} such windows lie; expected at least 1 and no more than lie there"
        )
    for number in range(count):
        begin_d = asked.first_day + number * every
        if not ((after_d >= begin_d) & (after_d < begin_d + asked.days)).any():
            raise ConfigurationError(
                f"{where}: windows: no job came to {file.name} on days {begin_d:g} to "
                f"{begin_d + asked.days:g}; expected other windows"
            )
        yield WorkloadWindow(file, begin_d, asked.days)


# -- file ------------------------------------------------------------------------------------------

Seed = Annotated[int, Meta(ge=0)]


class Sweep(NamedTuple):
    """Runs and job settings of a sweep's file; `specs` are in the order of the results."""

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
    table: Mapping[str, Any], axes: Mapping[str, Any], base: Path, where: str
) -> Iterator[Ground | GeneratedCampus | CampusFolder]:
    if sum(kind in table for kind in ("folder", "generated", "workload")) != 1:
        raise ConfigurationError(
            f"{where}: expected either folder = a campus folder, generated = [seeds], or "
            "workload = a file or a list of files (.swf, .swf.gz)"
        )
    if "workload" in table:
        yield from grounds(table, axes, base, where)
        return
    if misplaced := next((name for name in AXES if name in table and name != "machines"), None):
        raise ConfigurationError(f"{where}: {misplaced} is for workload files, and no campus")
    if "folder" in table:
        yield _folder(build(_Folder, table, where), base, where)
        return
    options = {name: value for name, value in table.items() if name != "generated"}
    asked = build(_Generated, table, where)
    try:
        check(asked)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    for seed in asked.generated:
        yield GeneratedCampus(seed, tuple(options.items()))


def _folder(asked: _Folder, base: Path, where: str) -> CampusFolder:
    folder = (base / asked.folder).resolve()
    if not (folder / "site.toml").is_file():
        raise ConfigurationError(
            f'{where}: "folder" = "{asked.folder}": {folder} is no campus folder: it has no '
            "site.toml; expected a folder that `outrider generate campus` wrote"
        )
    return CampusFolder(str(folder), asked.skip_bad, trace_sha256(folder), asked.folder)


# -- policies -----------------------------------------------------------------------------------


def _policies(table: Mapping[str, Any], where: str) -> Iterator[PolicySpec]:
    """Return each point of a policy's grid; the last setting runs fastest."""
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
