"""Playing a campus through the real engine, with everything that happened written down."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, SiteView
from outrider.api.chance import stream
from outrider.engine import Engine, Seat
from outrider.engine.accounting import Accounting
from outrider.engine.site import Site
from outrider.model.events import Event
from outrider.model.localtime import TraceTime
from outrider.replay.run import CampusRun
from outrider.virtual.campus import Campus
from outrider_policies.bandit import Bandit, BanditSettings
from outrider_policies.fifo import Fifo
from outrider_policies.lowest_watts import LowestWatts
from outrider_policies.random_match import RandomMatch


class Row(NamedTuple):
    """One decision as a ledger holds it."""

    time_s: float
    job: str
    action: str
    machine: str | None
    reason: str
    policy: str
    propensity: float | None


class Dither(Policy):
    """Keeps every other job queued by the toss of a coin: holds, starts and guards in plenty."""

    name = "dither"
    description = "for tests: keeps or starts by the toss of a coin"

    def choose(self, job: Job, appraisal: Any, view: SiteView, may_keep: bool) -> Choice:
        """Keep with probability one half, if that may be."""
        if may_keep and self.rng.random() < 0.5:
            return Choice(NOWHERE, "hold", 0.5)
        return Choice(view.draw(self.rng), "random", None)


Maker = Callable[[], Policy]


def chance(name: str, seed: int = 0) -> random.Random:
    """A policy's own stream."""
    return stream(seed, f"policy:{name}")


def bandit(seed: int = 0, **settings: Any) -> Bandit:
    """A bandit that explores a lot, as a tiny campus needs."""
    return Bandit(BanditSettings(**({"epsilon": 0.3} | settings)), chance("bandit", seed))


MAKERS: dict[str, Maker] = {
    "fifo": lambda: Fifo(PolicySettings(), chance("fifo")),
    "random_match": lambda: RandomMatch(PolicySettings(), chance("random_match")),
    "lowest_watts": lambda: LowestWatts(PolicySettings(), chance("lowest_watts")),
    "bandit": bandit,
    "dither": lambda: Dither(PolicySettings(), chance("dither")),
}


class Play(CampusRun):
    """A run of a campus that remembers its events (`told`) and decisions (`rows`)."""

    def __init__(
        self, campus: Campus, policies: Sequence[Policy], until_s: float | None = None
    ) -> None:
        self.rows: list[Row] = []
        self.told: list[Event] = []
        super().__init__(campus, policies, self._write, until_s)
        self.report = self.run(progress=lambda ratio: None)

    def _write(
        self, time_s: float, job: str, action: str, machine: str | None, cpus: int, reason: str,
        policy: str, choice: Choice | None,
    ) -> None:  # fmt: skip
        propensity = None if choice is None else choice.propensity
        self.rows.append(Row(time_s, job, action, machine, reason, policy, propensity))

    def _reporting(
        self, events: Iterable[Event], progress: Callable[[float], None]
    ) -> Iterator[Event]:
        for event in events:
            self.told.append(event)
            yield event

    def of(self, policy: str) -> list[Row]:
        """The decisions of one policy."""
        return [row for row in self.rows if row.policy == policy]


class NoSink:
    """Carries nothing out: what a shadow engine behind a recorded stream has."""

    def start(self, job: int, machine: int) -> None:
        """A shadow engine never starts anything."""
        raise AssertionError(f"job {job} was started on machine {machine} in shadow")

    def wake_at(self, time_s: float) -> None:
        """The recorded stream has the ticks already."""


class ShadowRecorder:
    """Writes a shadow engine's decisions and rewards down, by number."""

    def __init__(self, site: Site) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.ends: list[tuple[Any, ...]] = []
        self._site = site

    def decided(
        self, seat: Seat, job: int, action: str, machine: int, cpus: int, reason: str,
        choice: Choice | None,
    ) -> None:  # fmt: skip
        """A decision was made."""
        propensity = None if choice is None else choice.propensity
        self.rows.append(
            (self._site.now, job, action, machine, cpus, reason, seat.name, propensity)
        )

    def ended(
        self, seat: Seat | None, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """A run ended."""
        name = "" if seat is None else seat.name
        self.ends.append(
            (self._site.now, name, job.number, ending, reason, run_s, reward, on_policy)
        )


class Shadow:
    """An engine of shadow seats alone, to be fed a recorded stream."""

    def __init__(self, campus: Campus, policies: Sequence[Policy], *, strict: bool = True) -> None:
        clock = TraceTime(campus.start)
        self.site = Site(clock, list(campus.clusters))
        self.recorder = ShadowRecorder(self.site)
        self.seats = [Seat(policy, False, campus.reconsider_s, strict) for policy in policies]
        self.accounting = Accounting(clock, {}, exact=True)
        self.engine = Engine(self.site, self.accounting, self.seats, NoSink(), self.recorder)
