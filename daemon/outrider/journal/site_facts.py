"""What a journal holds of its site beside events: the incumbent, and the habits of the site."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.journal.journal import Journal
from outrider.model.errors import ConfigurationError, LedgerError
from outrider.model.machines import ClusterSpec, OpeningHours, SiteHabits
from outrider.model.modes import Discipline

INCUMBENT_KEY: Final = "incumbent"
"""Name of the meta entry with the policy that stands for the batch system."""
HABITS_KEY: Final = "site_habits"
"""Name of the meta entry with the habits of the site."""


class Incumbent(msgspec.Struct, frozen=True):
    """The policy that does what the batch system does.

    Attributes:
        policy: its name.
        adapter: label of the adapter that says so.
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
    """What is on record of a site.

    Attributes:
        discipline: who may start before a job that does not fit.
        habits: of machines and runs.
        clusters: with their opening hours and sleep, as the daemon knew them.
        incumbent: None: no adapter names one.
    """

    discipline: Discipline
    habits: SiteHabits
    clusters: tuple[ClusterSpec, ...]
    incumbent: Incumbent | None = None

    def as_meta(self) -> dict[str, Any]:
        """Meta entries of the journal, by name."""
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
    """What a journal holds of its site; None: it is older than that.

    Raises:
        LedgerError: the file cannot be read, or holds something else under these names.
    """
    with Journal(path, read_only=True) as journal:
        habits, incumbent = journal.meta(HABITS_KEY), journal.meta(INCUMBENT_KEY)
    if habits is None:
        return None
    try:
        told = msgspec.convert(habits, _Habits)
        return SiteFacts(
            told.discipline,
            SiteHabits(*(getattr(told, name) for name in SiteHabits.__struct_fields__)),
            tuple(_specs(told.clusters.items())),
            msgspec.convert(incumbent, Incumbent | None),
        )
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise LedgerError(
            f"{path}: {HABITS_KEY} or {INCUMBENT_KEY} is not what a daemon records: {error}"
        ) from error


def _specs(clusters: Iterable[tuple[str, _Hours]]) -> Iterable[ClusterSpec]:
    for name, told in clusters:
        hours = OpeningHours(told.open)
        yield ClusterSpec(name, hours, told.sleep_after_open_s, told.sleep_after_closed_s)
