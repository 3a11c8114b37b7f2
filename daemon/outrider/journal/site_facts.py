"""Facts about a site in its journal other than events: the incumbent, and the site's habits."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.journal.journal import Journal
from outrider.model.errors import ConfigurationError, LedgerError
from outrider.model.machines import ClusterSpec, OpeningHours, SiteHabits
from outrider.model.modes import Discipline

INCUMBENT_KEY: Final = "incumbent"
"""Name of the meta entry with the policy that represents the batch system."""
HABITS_KEY: Final = "site_habits"
"""Name of the meta entry with the habits of the site."""


class Incumbent(msgspec.Struct, frozen=True):
    """Policy that decides as the batch system does.

    Attributes:
        policy: its name.
        adapter: label of the adapter that declares it.
    """

    policy: str
    adapter: str


class _Hours(msgspec.Struct, frozen=True):
    open: str
    sleep_after_open_s: float
    sleep_after_closed_s: float


class _Habits(SiteHabits, frozen=True, kw_only=True):
    discipline: Discipline
    clusters: dict[str, _Hours]


class SiteFacts(msgspec.Struct, frozen=True):
    """Recorded facts about a site.

    Attributes:
        discipline: which jobs may start before one that does not fit.
        habits: of machines and runs.
        clusters: with their opening hours and sleep, as known to the daemon.
        incumbent: None: no adapter names one.
    """

    discipline: Discipline
    habits: SiteHabits
    clusters: tuple[ClusterSpec, ...]
    incumbent: Incumbent | None = None

    def as_meta(self) -> dict[str, Any]:
        """Return the meta entries of the journal, by name."""
        clusters = {
            spec.name: _Hours(spec.hours.text, spec.sleep_after_open_s, spec.sleep_after_closed_s)
            for spec in self.clusters
        }
        known = msgspec.structs.asdict(self.habits)
        habits = _Habits(**known, discipline=self.discipline, clusters=clusters)
        return {
            INCUMBENT_KEY: msgspec.to_builtins(self.incumbent),
            HABITS_KEY: msgspec.to_builtins(habits),
        }


def facts_on_record(path: Path) -> SiteFacts | None:
    """Return a journal's facts about its site; None if it is too old to have any.

    Raises:
        LedgerError: the file cannot be read, or contains something else under these names.
    """
    with Journal(path, read_only=True) as journal:
        habits, incumbent = journal.meta(HABITS_KEY), journal.meta(INCUMBENT_KEY)
    if habits is None:
        return None
    try:
        recorded = msgspec.convert(habits, _Habits)
        return SiteFacts(
            recorded.discipline,
            SiteHabits(*(getattr(recorded, name) for name in SiteHabits.__struct_fields__)),
            tuple(_specs(recorded.clusters.items())),
            msgspec.convert(incumbent, Incumbent | None),
        )
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise LedgerError(
            f"{path}: {HABITS_KEY} or {INCUMBENT_KEY} is not as a daemon writes it: {error}"
        ) from error


def _specs(clusters: Iterable[tuple[str, _Hours]]) -> Iterable[ClusterSpec]:
    for name, recorded in clusters:
        hours = OpeningHours(recorded.open)
        yield ClusterSpec(name, hours, recorded.sleep_after_open_s, recorded.sleep_after_closed_s)
