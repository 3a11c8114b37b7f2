"""The settings of the `mock_condor` adapter, and the campus that they select."""

import datetime as dt
from pathlib import Path
from typing import Annotated

from msgspec import Meta, field

from outrider.api import ConfigurationError
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus
from outrider.simulation.generators.campus import generate_campus
from outrider_adapters.htcondor import WatchSettings


class MockCondorSettings(WatchSettings, frozen=True, kw_only=True):
    """A mock pool: its machines and users, and the speed of its clock."""

    pool: Annotated[
        str | None,
        Meta(
            description="TOML file with machines, jobs and owners. Unset: a campus.",
            examples=["pool.toml"],
        ),
    ] = None
    campus: Annotated[
        str | None,
        Meta(
            description="Folder of a campus with owners and users. Unset: a generated one.",
            examples=["campus"],
        ),
    ] = None
    machines: Annotated[int, Meta(ge=1, description="Machines of a generated campus.")] = 40
    clusters: Annotated[
        int, Meta(ge=1, description="Machine groups (clusters) of a generated campus.")
    ] = 4
    weeks: Annotated[float, Meta(gt=0, description="Length of a generated campus, weeks.")] = 4.0
    start: Annotated[
        str,
        Meta(description="First day of a generated campus or hand-written pool, YYYY-MM-DD."),
    ] = "2010-02-01"
    seed: Annotated[int, Meta(ge=0, description="Seed of campus, matchmaking and faults.")] = 1
    speed: Annotated[float, Meta(gt=0, description="Pool seconds per real second.")] = 60.0
    head_start_s: Annotated[
        float, Meta(ge=0, description="Pool seconds simulated at once at the beginning.")
    ] = 0.0
    look_s: Annotated[
        float, Meta(gt=0, description="Pool seconds between two polls of the pool.")
    ] = 60.0
    negotiator_interval_s: Annotated[
        float, Meta(gt=0, description="Pool seconds between two negotiation cycles.")
    ] = 60.0
    faults: Annotated[
        dict[str, float],
        Meta(description="Faults to inject between adapter and pool: see docs/mock-condor.md."),
    ] = field(default_factory=dict)


def campus_and_start(settings: MockCondorSettings) -> tuple[Campus | None, float]:
    """The campus, unless the pool is hand-written, and the Unix time of second 0.

    Returns:
        the campus or None, and Unix seconds; the campus's wall clock is read as UTC.

    Raises:
        ConfigurationError: the settings exclude each other, or `start` is not a date.
        TraceError: the folder of the campus cannot be read.
    """
    if settings.pool is not None and settings.campus is not None:
        raise ConfigurationError(
            f'"pool" = "{settings.pool}" and "campus" = "{settings.campus}" exclude each other; '
            "right would be one of them"
        )
    if settings.campus is not None:
        campus = read_campus(Path(settings.campus))
        return campus, campus.start.replace(tzinfo=dt.UTC).timestamp()
    try:
        day = dt.date.fromisoformat(settings.start)
    except ValueError as error:
        raise ConfigurationError(
            f'"start" = {settings.start!r}: right would be a date like "2010-02-01"'
        ) from error
    start_s = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()
    if settings.pool is not None:
        return None, start_s
    campus = generate_campus(
        settings.seed,
        weeks=settings.weeks,
        machines=settings.machines,
        clusters=settings.clusters,
        start=day,
    )
    return campus, start_s
