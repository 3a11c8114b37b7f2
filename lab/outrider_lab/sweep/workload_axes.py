"""What of a sweep's file is about workload files: files, windows of them, and the axes of runs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from outrider.formats.class_words import class_rule
from outrider.formats.digests import file_sha256
from outrider.model.disciplines import STRICT, Discipline
from outrider.model.errors import ConfigurationError, OutriderError
from outrider.model.settings import build
from outrider.simulation.estimates import REQUESTED, default_rule, estimate_rule
from outrider_lab.running.traces import (
    NamedWorkloadFile,
    WorkloadFile,
    WorkloadWindow,
    whole_file,
)
from outrider_lab.running.windows import DAY_S
from outrider_lab.sweep.workload_run import DEFAULT

AXES: Final = ("estimates", "discipline", "class_by", "machines")
"""Keys of a table of traces with a value or a list of them; options of the command, too."""

_Machines = Annotated[int, Meta(ge=1)]
_Days = Annotated[float, Meta(gt=0)]


class _Windows(msgspec.Struct, frozen=True):
    """Which windows: each `days` long, the next one begins `every_days` later."""

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
    """Where policies are run: a trace, and what they are told there and may do."""

    trace: WorkloadFile | WorkloadWindow
    estimates: str
    discipline: str


def grounds(
    table: Mapping[str, Any], axes: Mapping[str, Any], beside: Path, where: str
) -> Iterator[Ground]:
    """Every ground of a table of traces; disciplines run fastest, then estimates.

    Files are read, so that what cannot be run is refused before a long sweep.

    Args:
        table: of the sweep's file.
        axes: values of `AXES` that the command was given, in place of the table's.
        beside: the folder that paths are relative to.
        where: the table, for errors.

    Raises:
        ConfigurationError: the table is wrong, names file, place and value.
        TraceError: a file cannot be read.
    """
    asked = build(_Table, {**table, **axes}, where)
    paths = asked.workload if isinstance(asked.workload, list) else [asked.workload]
    told = [word or DEFAULT for word in _values(asked.estimates, f"{where}: estimates")]
    disciplines = _values(asked.discipline, f"{where}: discipline")
    places = product(
        paths,
        _values(asked.machines, f"{where}: machines"),
        _values(asked.class_by, f"{where}: class_by"),
    )
    for word in told:
        if word != DEFAULT:
            estimate_rule(word, f"{where}: estimates")
    for path, machines, classes in places:
        rule = None if classes is None else class_rule(classes, f"{where}: class_by")
        file = beside / path
        try:
            digest = file_sha256(file)
        except OSError as error:
            raise ConfigurationError(
                f'{where}: "workload" = "{path}": {file} cannot be read: {error.strerror}; right '
                "would be a file in Standard Workload Format (.swf, .swf.gz)"
            ) from error
        whole = NamedWorkloadFile(str(file.resolve()), machines, rule, asked.vo, 0.0, digest, path)
        _check_requests(whole, told, where)
        for trace in _windows(whole, asked.windows, where):
            for estimates, discipline in product(told, disciplines):
                yield Ground(trace, estimates, discipline)


def _values(given: Any, where: str) -> list[Any]:
    """The values of an axis. Raises `ConfigurationError` where that is an empty list."""
    values = given if isinstance(given, list) else [given]
    if not values:
        raise ConfigurationError(f"{where} = [] leaves no run; name a value")
    return values


def _check_requests(file: WorkloadFile, told: Sequence[str], where: str) -> None:
    """Refuse a file that cannot be read, and one without the requests that are to be told."""
    try:
        asked_for = default_rule(whole_file(file)).kind == REQUESTED
    except OutriderError as error:
        raise type(error)(f"{where}: {error}") from error
    if REQUESTED in told and not asked_for:
        raise ConfigurationError(
            f'{where}: estimates = "{REQUESTED}": no user of {file.name} requested a run time; '
            "right would be learned, or exact, which tells the truth"
        )


def _windows(
    file: WorkloadFile, asked: _Windows | None, where: str
) -> Iterator[WorkloadFile | WorkloadWindow]:
    """The file, or its windows; without a count all whole ones. None may be empty."""
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
            f"{max(fit, 0)} such windows lie; right would be at least 1 and no more than lie there"
        )
    for number in range(count):
        begin_d = asked.first_day + number * every
        if not ((after_d >= begin_d) & (after_d < begin_d + asked.days)).any():
            raise ConfigurationError(
                f"{where}: windows: no job came to {file.name} on days {begin_d:g} to "
                f"{begin_d + asked.days:g}; right would be other windows"
            )
        yield WorkloadWindow(file, begin_d, asked.days)
