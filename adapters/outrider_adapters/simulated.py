"""A simulated campus as a batch system: owners, jobs and an incumbent that starts them.

For demonstrations, tests and training: the daemon sees it as a real site. The incumbent (by
default HTCondor's random matching) is a separate policy on a separate engine; decisions of the
daemon's shadow candidates never reach it.
"""

import asyncio
import datetime as dt
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import (
    Adapter,
    AdapterSettings,
    Batch,
    ClusterSpec,
    ConfigurationError,
    NamedEvent,
    SiteHabits,
    events,
)
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus
from outrider.formats.campus.site_file import clock_text
from outrider.plugins.making import make_policy
from outrider.replay.keeping import keep_nothing
from outrider.replay.run import CampusRun
from outrider.simulation.generators.campus import generate_campus
from outrider_adapters.simulated_leases import (
    HeedingIncumbent,
    LeaseBoard,
    SimulatedLever,
    in_cycles,
)

_MOST_EVENTS = 2_000


class SimulatedSettings(AdapterSettings, frozen=True):
    """Settings of a simulated campus."""

    campus: Annotated[
        str | None,
        Meta(
            description="Folder of a campus to replay. Unset: one is generated.",
            examples=["campus"],
        ),
    ] = None
    machines: Annotated[int, Meta(ge=1, description="Machines of a generated campus.")] = 120
    clusters: Annotated[int, Meta(ge=1, description="Clusters of a generated campus.")] = 6
    weeks: Annotated[float, Meta(gt=0, description="Length of a generated campus, weeks.")] = 8.0
    start: Annotated[
        str,
        Meta(description="First day of a generated campus; terms begin in February, YYYY-MM-DD."),
    ] = "2010-02-01"
    seed: Annotated[int, Meta(ge=0, description="Seed of the campus and of the incumbent.")] = 1
    speed: Annotated[
        float,
        Meta(ge=0, description="Simulated seconds per real second; 0: as fast as possible."),
    ] = 1.0
    head_start_s: Annotated[
        float,
        Meta(ge=0, description="Simulated seconds delivered at once before the clock starts."),
    ] = 0.0
    incumbent: Annotated[
        str, Meta(description="The policy that starts jobs, as a batch system would.")
    ] = "random_match"
    batch_s: Annotated[float, Meta(gt=0, description="Real seconds between two batches.")] = 0.25
    cycle_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Simulated seconds between two matchings of the batch system: what waits "
            "is looked at no sooner, and Outrider can act before it is. 0: jobs are matched at "
            "once, and nothing can be changed before.",
        ),
    ] = 0.0
    lease_s: Annotated[
        float,
        Meta(
            gt=0,
            description="In the modes canary and active: how long a change lasts that is not "
            "renewed, simulated seconds. At a speed it should be many times what passes in a real "
            "second.",
        ),
    ] = 3600.0
    until_s: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="Second of the campus after which nothing happens. Unset: its last."),
    ] = None


class SimulatedAdapter(Adapter):
    """A simulated campus with its own incumbent, on a clock of real time x `speed`.

    Event times are the campus's wall clock read as UTC. The cursor is the number of events
    yielded: the same seed gives the same events, so a restart simulates up to there and goes on.
    But for what was changed by its lever: a restart simulates a site in which nobody acted.
    """

    name = "simulated"
    description = "a simulated campus with owners, jobs and an incumbent of its own"
    api_version = 1
    settings_type = SimulatedSettings
    sees = (
        "joined", "owner_came", "owner_went", "usable", "rebooted", "submitted", "started",
        "evicted", "completed", "removed", "suspended", "resumed", "eligible",
    )  # fmt: skip
    lateness_s = 0.0
    own_clock = True
    discipline = "first_fit"  # of the incumbent's run
    levers = (SimulatedLever,)

    def __init__(self, label: str, settings: SimulatedSettings) -> None:
        super().__init__(label, settings)
        self._campus = _campus(settings)
        self.incumbent = settings.incumbent
        self.board = LeaseBoard(settings.cycle_s)
        self.habits = _habits(self._campus)
        self._epoch_s = self._campus.start.replace(tzinfo=dt.UTC).timestamp()
        self._end_s = self._campus.span_s
        if settings.until_s is not None:
            self._end_s = min(settings.until_s, self._end_s)

    def clusters(self) -> list[ClusterSpec]:
        """The campus's clusters with their opening hours and sleep."""
        return self._campus.clusters

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield the events up to the present moment of simulated time, without end."""
        yielded_n = int(cursor or 0)
        stream = self._events()
        told = (event for event in stream if event[1] != events.TICK)
        for skipped in range(0, yielded_n, _MOST_EVENTS):
            for _ in itertools.islice(told, min(_MOST_EVENTS, yielded_n - skipped)):
                pass
            await asyncio.sleep(0)
        clock = _SimulatedClock(self.settings.speed)
        ahead: list[NamedEvent] = []
        while True:
            is_at_end = not _read_ahead(stream, ahead)
            if not clock.started and ahead:
                clock.start(ahead[0][0] + self.settings.head_start_s)
            now = clock.now() if ahead and self.settings.speed else float("inf")
            due = _due(ahead, now)
            batch, ahead = ahead[:due], ahead[due:]
            seen = self._seen_until(batch, ahead, now)
            if batch and batch[-1][1] == events.TICK:  # asked for more, the stream matches
                batch.pop()
            yielded_n += len(batch)
            yield Batch(events=batch, cursor=yielded_n, seen_until_s=seen)
            await asyncio.sleep(0 if ahead and due == _MOST_EVENTS else self.settings.batch_s)
            if is_at_end and not ahead:
                await asyncio.sleep(self.settings.batch_s)

    def _seen_until(
        self, batch: list[NamedEvent], ahead: list[NamedEvent], now: float
    ) -> float | None:
        """The time before which no event will come; after the last event, the end of the campus."""
        if not ahead and not batch:
            return self._epoch_s + self._end_s
        last = batch[-1][0] if batch else None
        if ahead:
            bound = min(now, ahead[0][0] - 1e-6)
            return bound if last is None else max(bound, last - 1e-6)
        return last

    def _events(self) -> Iterator[NamedEvent]:
        """Events of the incumbent's run of the campus, with names and Unix times.

        With `cycle_s` a tick comes before each matching, which is made when the next is asked for.
        """
        settings, where = self.settings, f"[adapters.{self.label}]"
        policy = make_policy(settings.incumbent, {}, settings.seed, where)
        if settings.cycle_s:
            policy = HeedingIncumbent(policy, self.board, self._campus, where)
        run = CampusRun(
            self._campus, [policy], keep_nothing, self._end_s, exact=False,
            discipline=self.discipline,
        )  # fmt: skip
        self.board.follow(run.site, self._campus)
        jobs, machines, epoch_s = self._campus.job_names, self._campus.machine_names, self._epoch_s
        stream = in_cycles(run, settings.cycle_s) if settings.cycle_s else run.stream()
        for time_s, kind, subject, extra in stream:
            if kind == events.TICK:
                if settings.cycle_s:
                    self.board.now_s = time_s
                    yield epoch_s + time_s, kind, "", None
                continue
            if kind == events.ELIGIBLE:
                class_name, members, _ = extra
                yield epoch_s + time_s, kind, class_name, tuple(machines[m] for m in members)
                continue
            name = jobs[subject] if kind in events.JOB_KINDS else machines[subject]
            named = (machines[extra[0]], extra[1]) if kind == events.STARTED else extra
            yield epoch_s + time_s, kind, name, named


class _SimulatedClock:
    """Simulated time: a start, and the real seconds since then times `speed`."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.started = False
        self._from_s = 0.0
        self._began = 0.0

    def start(self, at_s: float) -> None:
        self.started, self._from_s, self._began = True, at_s, time.monotonic()

    def now(self) -> float:
        return self._from_s + (time.monotonic() - self._began) * self.speed


def _read_ahead(stream: Iterator[NamedEvent], ahead: list[NamedEvent]) -> bool:
    """Read up to so many events, or to the next matching; False: there are no more."""
    while len(ahead) < _MOST_EVENTS:
        if ahead and ahead[-1][1] == events.TICK:
            return True
        if (event := next(stream, None)) is None:
            return False
        ahead.append(event)
    return True


def _due(ahead: list[NamedEvent], now: float) -> int:
    if ahead and ahead[-1][0] <= now:
        return len(ahead)
    return next((n for n, event in enumerate(ahead) if event[0] > now), len(ahead))


def _habits(campus: Campus) -> SiteHabits:
    return SiteHabits(
        reboot=clock_text(campus.reboot_s),
        idle_before_job_open_s=campus.idle_before_job_open_s,
        idle_before_job_closed_s=campus.idle_before_job_closed_s,
        reconsider_s=campus.reconsider_s,
        **campus.run_rules._asdict(),
    )


def _campus(settings: SimulatedSettings) -> Campus:
    if settings.campus is not None:
        return read_campus(Path(settings.campus))
    try:
        start = dt.date.fromisoformat(settings.start)
    except ValueError as error:
        raise ConfigurationError(
            f'"start" = {settings.start!r}: right would be a date like "2010-02-01"'
        ) from error
    return generate_campus(
        settings.seed,
        weeks=settings.weeks,
        machines=settings.machines,
        clusters=settings.clusters,
        start=start,
    )
