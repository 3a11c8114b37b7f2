"""Reading and writing of campus folders.

The format is described in ``docs/reference/campus.md``.
"""

import csv
import datetime as dt
import gzip
import io
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TextIO

import msgspec
import numpy as np

from outrider.formats.campus.campus import LATEST_S, PLAIN_RUNS, Campus, Floats, Ints, RunRules
from outrider.formats.campus.rows import (
    JOB_COLUMNS,
    JOBS,
    MACHINE_AMOUNTS,
    MACHINE_COLUMNS,
    MACHINES,
    OWNER_COLUMNS,
    OWNERS,
    amounts_of,
    estimates_of,
    job_table,
    machine_table,
    only_of,
    owner_table,
    reordered,
    widest_by_cluster,
    with_gaps,
    written_amounts,
    written_requests,
)
from outrider.formats.campus.tables import Column, load, read_table
from outrider.model.errors import ConfigurationError, TraceError
from outrider.model.localtime import day_second
from outrider.model.machines import ClusterSpec, OpeningHours
from outrider.model.settings import Place, TomlLines, build

# -- site file -------------------------------------------------------------------------------------
# Settings of a campus as a whole, in ``site.toml``.

SITE_FILE: Final = "site.toml"
NO_REBOOT: Final = "never"
Delay = Annotated[float, msgspec.Meta(ge=0)]
Cost = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ClusterTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table ``[clusters.NAME]``: opening hours, and sleep times that differ from the site's."""

    open: str = "always"
    sleep_after_open_s: Delay | None = None
    sleep_after_closed_s: Delay | None = None


class SiteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of ``site.toml``, with defaults for missing keys."""

    start: Annotated[dt.datetime, msgspec.Meta(tz=False)] = dt.datetime(2010, 1, 1)  # noqa: DTZ001
    reboot: str = "03:00"
    idle_before_job_open_s: Delay = 900.0
    idle_before_job_closed_s: Delay = 0.0
    sleep_after_open_s: Delay = 3600.0
    sleep_after_closed_s: Delay = 900.0
    reconsider_s: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    end_s: Annotated[float, msgspec.Meta(ge=0, le=LATEST_S)] = 0.0
    wake_s: Cost = PLAIN_RUNS.wake_s
    wake_j: Cost = PLAIN_RUNS.wake_j
    transfer_s: Cost = PLAIN_RUNS.transfer_s
    suspend_s: Delay = PLAIN_RUNS.suspend_s
    checkpoint_every_s: Annotated[float, msgspec.Meta(gt=0)] = PLAIN_RUNS.checkpoint_every_s
    clusters: dict[str, dict[str, Any]] = {}

    @property
    def run_rules(self) -> RunRules:
        """Costs of runs and what survives evictions."""
        return RunRules(*(getattr(self, name) for name in RunRules._fields))


_DEFAULTS: Final = SiteTable()


class SiteFile(NamedTuple):
    """Settings of a campus, the reboot as a second of the day, and the clusters in order."""

    table: SiteTable
    reboot_s: float | None
    clusters: list[ClusterSpec]


def read_site(folder: Path, name: str = SITE_FILE) -> SiteFile:
    """Read ``site.toml``, or a file of another name in the same format.

    Raises:
        TraceError: missing file, not TOML, an unknown key (names the nearest), a wrong value.
    """
    path, data = load(folder, name)
    try:
        text = data.decode("utf-8-sig")
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read as TOML: {error}") from error
    except RecursionError as error:
        raise TraceError(f"{path}: cannot be read as TOML: nested too deep") from error
    try:
        place = Place(str(path), (), TomlLines(text))
        table = build(SiteTable, given, place)
        reboot_s = _reboot_s(table.reboot, place)
        clusters = [
            _cluster(values, table, place.inside("clusters", name))
            for name, values in table.clusters.items()
        ]
    except ConfigurationError as error:
        raise TraceError(str(error)) from error
    return SiteFile(table, reboot_s, clusters)


def always_open(name: str, table: SiteTable) -> ClusterSpec:
    """Return a cluster without a table of its own: always open, with the site's sleep times."""
    return ClusterSpec(
        name, OpeningHours("always"), table.sleep_after_open_s, table.sleep_after_closed_s
    )


def site_text(table: SiteTable, clusters: Sequence[ClusterSpec]) -> str:
    """Return the text of a ``site.toml`` that reads back as these settings and clusters.

    The most frequent sleep times are written once for the site, others with their cluster.
    """
    habits = Counter((spec.sleep_after_open_s, spec.sleep_after_closed_s) for spec in clusters)
    usual = (table.sleep_after_open_s, table.sleep_after_closed_s)
    if habits:
        usual = habits.most_common(1)[0][0]
    lines = [
        f"start = {table.start.isoformat()}",
        f'reboot = "{table.reboot}"',
        f"idle_before_job_open_s = {_toml(table.idle_before_job_open_s)}",
        f"idle_before_job_closed_s = {_toml(table.idle_before_job_closed_s)}",
        f"sleep_after_open_s = {_toml(usual[0])}",
        f"sleep_after_closed_s = {_toml(usual[1])}",
        f"reconsider_s = {_toml(table.reconsider_s)}",
    ]
    lines += [
        f"{name} = {_toml(getattr(table, name))}"
        for name in ("end_s", *RunRules._fields)
        if getattr(table, name) != getattr(_DEFAULTS, name)
    ]
    for spec in clusters:
        name = spec.name if _BARE_KEY.fullmatch(spec.name) else _quoted(spec.name)
        lines += [f"[clusters.{name}]", f"open = {_quoted(spec.hours.text)}"]
        if (spec.sleep_after_open_s, spec.sleep_after_closed_s) != usual:
            lines += [
                f"sleep_after_open_s = {_toml(spec.sleep_after_open_s)}",
                f"sleep_after_closed_s = {_toml(spec.sleep_after_closed_s)}",
            ]
    return "\n".join(lines) + "\n"


def clock_text(second: float | None) -> str:
    """Return ``HH:MM`` or ``HH:MM:SS`` of a second of the day; ``never`` for None.

    Raises:
        ConfigurationError: not a whole second of a day.
    """
    if second is None:
        return NO_REBOOT
    if not 0 <= second < 86_400 or second != int(second):
        raise ConfigurationError(f"reboot_s = {second}: expected a whole second of the day")
    minutes, seconds = divmod(int(second), 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{seconds:02d}" if seconds else text


def _reboot_s(text: str, place: Place) -> float | None:
    if text == NO_REBOOT:
        return None
    try:
        return day_second(text)
    except ValueError as error:
        where = place.of(["reboot"])
        raise TraceError(f'{where}: "reboot" = {error} or "{NO_REBOOT}"') from error


def _cluster(values: dict[str, Any], table: SiteTable, place: Place) -> ClusterSpec:
    given = build(ClusterTable, values, place)
    try:
        hours = OpeningHours(given.open)
    except ConfigurationError as error:
        raise TraceError(f'{place.of(["open"])}: "open": {error}') from error
    sleep_open_s, sleep_closed_s = given.sleep_after_open_s, given.sleep_after_closed_s
    return ClusterSpec(
        place.table[-1],
        hours,
        table.sleep_after_open_s if sleep_open_s is None else sleep_open_s,
        table.sleep_after_closed_s if sleep_closed_s is None else sleep_closed_s,
    )


def _toml(value: float) -> str:
    if math.isinf(value):
        return "inf"
    return str(int(value)) if value == int(value) else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# -- files -----------------------------------------------------------------------------------------

DEFAULT_VO: Final = "all"


def read_campus(folder: Path, *, skip_bad: bool = False) -> Campus:
    """Read a campus folder: ``site.toml``, ``machines.csv``, ``owners.csv``, ``jobs.csv``.

    Args:
        folder: holds the files; each may be gzipped (``owners.csv.gz``).
        skip_bad: leave out bad rows and count them by reason in `Campus.skipped`, instead of
            refusing the first one. A missing file or column and a wrong ``site.toml`` are
            always refused.

    Returns:
        The campus; sessions sorted by log-in and jobs by submission, both in file order at equal
        times. Overlapping sessions of a machine are not merged.

    Raises:
        TraceError: names file, line, column, value and what is expected.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TraceError(f"{folder}: no such folder; a campus is a folder with {SITE_FILE}")
    skipped: Counter[str] | None = Counter() if skip_bad else None
    site = read_site(folder)
    machines = read_table(folder, machine_table(), skipped)
    index = {name: number for number, name in enumerate(machines["machine"])}
    clusters, machine_cluster = _clusters(site, machines["cluster"])
    capacities = amounts_of(machines, len(index))
    owners = read_table(folder, owner_table(index), skipped)
    widest = widest_by_cluster(clusters, machine_cluster, capacities)
    jobs = read_table(folder, job_table(widest), skipped)
    requests = amounts_of(jobs, len(jobs["job"]))
    owner_order = _order(owners["login_s"])
    job_order = _order(jobs["submit_s"])
    users, user = _numbered(jobs["user"])
    vos, vo = _numbered([name or DEFAULT_VO for name in jobs["vo"]])
    return Campus(
        name=folder.resolve().name,
        start=site.table.start,
        reboot_s=site.reboot_s,
        idle_before_job_open_s=site.table.idle_before_job_open_s,
        idle_before_job_closed_s=site.table.idle_before_job_closed_s,
        reconsider_s=site.table.reconsider_s,
        clusters=clusters,
        machine_names=machines["machine"],
        machine_cluster=machine_cluster,
        active_w=machines["active_w"],
        idle_w=machines["idle_w"],
        sleep_w=machines["sleep_w"],
        session_machine=_looked_up(owners["machine"], index)[owner_order],
        login_s=owners["login_s"][owner_order],
        logout_s=owners["logout_s"][owner_order],
        job_names=reordered(jobs["job"], job_order),
        submit_s=jobs["submit_s"][job_order],
        run_s=jobs["run_s"][job_order],
        kill_s=jobs["kill_s"][job_order],
        user=user[job_order],
        vo=vo[job_order],
        user_names=users,
        vo_names=vos,
        skipped=dict(skipped or {}),
        run_rules=site.table.run_rules,
        end_s=site.table.end_s,
        capacities=capacities,
        requests=None if requests is None else requests.rows(job_order),
        only=only_of(jobs, widest, job_order),
        estimate_s=estimates_of(jobs, job_order),
    )


def write_campus(campus: Campus, folder: Path, *, gz: bool = False) -> None:
    """Write a campus as a folder that `read_campus` reads back as the same campus.

    Numbers are written with all significant digits. The same campus gives the same bytes.

    Args:
        campus: the campus.
        folder: created if missing; files of the same name are replaced.
        gz: gzip the three tables.

    Raises:
        ConfigurationError: the folder contains a table in the other form (``owners.csv`` next to
            ``owners.csv.gz``), or the reboot is not at a whole second.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in (MACHINES, OWNERS, JOBS):
        other = folder / (name if gz else f"{name}.gz")
        if other.exists():
            raise ConfigurationError(f"{other}: is in the way; remove it or use another folder")
    table = SiteTable(
        start=campus.start,
        reboot=clock_text(campus.reboot_s),
        idle_before_job_open_s=campus.idle_before_job_open_s,
        idle_before_job_closed_s=campus.idle_before_job_closed_s,
        reconsider_s=campus.reconsider_s,
        end_s=campus.end_s,
        **campus.run_rules._asdict(),
    )
    (folder / SITE_FILE).write_text(site_text(table, campus.clusters), encoding="utf-8")
    clusters = [campus.clusters[number].name for number in campus.machine_cluster]
    watts = [with_gaps(column) for column in (campus.active_w, campus.idle_w, campus.sleep_w)]
    declared = written_amounts(campus.capacities, MACHINE_AMOUNTS)
    with _table(folder, MACHINES, gz) as file:
        rows = zip(
            campus.machine_names, clusters, *watts, *(each for _, each in declared), strict=True
        )
        _write(file, (*MACHINE_COLUMNS, *(column for column, _ in declared)), rows)
    machines = [campus.machine_names[number] for number in campus.session_machine]
    times = (campus.login_s.tolist(), campus.logout_s.tolist())
    with _table(folder, OWNERS, gz) as file:
        _write(file, OWNER_COLUMNS, zip(machines, *times, strict=True))
    job_columns = (
        campus.job_names,
        campus.submit_s.tolist(),
        with_gaps(campus.run_s),
        with_gaps(campus.kill_s),
        [campus.user_names[number] for number in campus.user],
        [campus.vo_names[number] for number in campus.vo],
    )
    asked = written_requests(campus)
    with _table(folder, JOBS, gz) as file:
        rows = zip(*job_columns, *(values for _, values in asked), strict=True)
        _write(file, (*JOB_COLUMNS, *(column for column, _ in asked)), rows)


# -- columns ------------------------------------------------------------------------------------


def _clusters(site: SiteFile, names: Sequence[str]) -> tuple[list[ClusterSpec], Ints]:
    """Return the clusters, those that only machines name last; and each machine's number."""
    clusters = list(site.clusters)
    number = {spec.name: position for position, spec in enumerate(clusters)}
    for name in names:
        if name not in number:
            number[name] = len(clusters)
            clusters.append(always_open(name, site.table))
    return clusters, _looked_up(names, number)


def _numbered(names: list[str]) -> tuple[list[str], Ints]:
    """Return distinct names in order of appearance, and the number of each row's name."""
    distinct = list(dict.fromkeys(names))
    return distinct, _looked_up(names, {name: number for number, name in enumerate(distinct)})


def _looked_up(names: Sequence[str], number: Mapping[str, int]) -> Ints:
    return np.fromiter(map(number.__getitem__, names), dtype=np.int32, count=len(names))


def _order(times: Floats) -> Any:
    """Return an index that sorts by time, stably; a full slice (no copy) if already sorted."""
    if bool((np.diff(times) >= 0).all()):
        return slice(None)
    return np.argsort(times, kind="stable")


# -- writing ------------------------------------------------------------------------------------


@contextmanager
def _table(folder: Path, name: str, gz: bool) -> Iterator[TextIO]:
    """Open a table for writing. No time in the gzip header: equal tables are equal files."""
    if not gz:
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    with (
        (folder / f"{name}.gz").open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        yield file


def _write(file: TextIO, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    writer.writerows(rows)
