"""The watermark: up to which time every source has been seen."""

from collections.abc import Iterable, Mapping
from math import inf


class Watermark:
    """Keeps for each source up to which time it has been seen.

    Args:
        sources: labels of the adapters; the watermark waits for each of them.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self._seen_s = dict.fromkeys(sources, -inf)

    @property
    def time_s(self) -> float:
        """Every source has been seen up to here."""
        return min(self._seen_s.values(), default=-inf)

    def note(self, source: str, until_s: float) -> None:
        """A source has been seen up to a time."""
        self._seen_s[source] = max(self._seen_s.get(source, -inf), until_s)

    def waits_for(self, source: str) -> bool:
        """Whether no other source has been seen up to an earlier time, or it is not waited for."""
        return self._seen_s.get(source, -inf) <= self.time_s

    def excuse(self, source: str) -> None:
        """Do not wait for a source until it is seen again."""
        self._seen_s.pop(source, None)

    def expect(self, source: str) -> None:
        """Wait for a source from now on, though it was excused; until it has been seen at all."""
        self._seen_s.setdefault(source, -inf)

    def save(self) -> dict[str, float | None]:
        """Seconds by source; None: not seen yet."""
        return {label: None if s == -inf else s for label, s in self._seen_s.items()}

    def restore(self, saved: Mapping[str, float | None]) -> None:
        """Go on from what `save` gave, but for sources that are not configured any more."""
        for label, seen_s in saved.items():
            if label in self._seen_s and seen_s is not None:
                self._seen_s[label] = seen_s
