"""Which adapter a job is of: only that one's levers can change something about it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from outrider.model.events import JOB_KINDS, NamedEvent

_SPARE: Final = 2_000
"""So many jobs beside those at the site are remembered: they have left, or have not entered yet."""


class JobSources:
    """The adapters with levers that have told of each job.

    Where another adapter tells of the same job, such as one that follows its log, that changes
    nothing: it has no lever.

    Args:
        labels: of the adapters that have levers.
        jobs: names of the jobs that are at the site, as their sources have them.
    """

    def __init__(self, labels: Iterable[str], jobs: Callable[[], Collection[str]]) -> None:
        self._labels = frozenset(labels)
        self._jobs = jobs
        self._label_of: dict[str, str] = {}

    def note(self, label: str, events: Iterable[NamedEvent]) -> None:
        """Events came of an adapter."""
        if label not in self._labels:
            return
        of = self._label_of
        of |= {subject: label for _, kind, subject, _ in events if kind in JOB_KINDS}
        jobs = self._jobs()
        if len(of) > 2 * (len(jobs) + _SPARE):
            newest = list(of)[-_SPARE:]
            self._label_of = {name: of[name] for name in [*jobs, *newest] if name in of}

    def label_of(self, own: str) -> str | None:
        """The adapter of a job, by the name that it goes by here; None: one without levers."""
        found = self._label_of.get(own)
        # a number that was used again goes by #SECOND, which its source does not say
        return found or self._label_of.get(own.rpartition("#")[0])

    def save(self) -> dict[str, list[str]]:
        """The jobs of each adapter, as plain data."""
        saved: dict[str, list[str]] = {label: [] for label in sorted(self._labels)}
        for name, label in self._label_of.items():
            saved[label].append(name)
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `save` gave; adapters that are there no more are forgotten."""
        self._label_of = {name: label for label in self._labels for name in saved.get(label, ())}
