"""``site.toml``: the settings of a campus as a whole."""

import datetime as dt
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from outrider.formats.campus.campus import LATEST_S, PLAIN_RUNS, RunRules
from outrider.formats.campus.tables import load
from outrider.model.clusters import ClusterSpec
from outrider.model.errors import ConfigurationError, TraceError
from outrider.model.localtime import day_second
from outrider.model.opening import OpeningHours
from outrider.model.places import Place
from outrider.model.settings import build
from outrider.model.toml_lines import TomlLines

SITE_FILE: Final = "site.toml"
NO_REBOOT: Final = "never"

Delay = Annotated[float, msgspec.Meta(ge=0)]
Cost = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ClusterTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[clusters.NAME]``: opening hours, and sleep times where they differ from the site's."""

    open: str = "always"
    sleep_after_open_s: Delay | None = None
    sleep_after_closed_s: Delay | None = None


class SiteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of ``site.toml``, with defaults for missing keys."""

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
    """The settings, the reboot as a second of the day, and the clusters in order."""

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
    """A cluster without a table of its own: always open, with the site's sleep times."""
    return ClusterSpec(
        name, OpeningHours("always"), table.sleep_after_open_s, table.sleep_after_closed_s
    )


def site_text(table: SiteTable, clusters: Sequence[ClusterSpec]) -> str:
    """The text of a ``site.toml`` that reads back as these settings and clusters.

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
    """``HH:MM`` or ``HH:MM:SS`` of a second of the day; ``never`` for None.

    Raises:
        ConfigurationError: not a whole second of a day.
    """
    if second is None:
        return NO_REBOOT
    if not 0 <= second < 86_400 or second != int(second):
        raise ConfigurationError(f"reboot_s = {second}: right would be a whole second of the day")
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
