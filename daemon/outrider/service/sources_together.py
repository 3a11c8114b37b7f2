"""The sources of a daemon together: how old what they tell is, and which of them are down."""

from collections.abc import Iterable

from outrider.service.source_state import SourceState


class Sources(dict[str, SourceState]):
    """The sources of a daemon, by label.

    Args:
        states: of each.
    """

    def __init__(self, states: Iterable[SourceState]) -> None:
        super().__init__((state.label, state) for state in states)

    @property
    def age_s(self) -> float:
        """Age of the newest information, in seconds, of the source that is furthest behind."""
        # a list, not a generator: this is asked for every decision
        return max([state.age_s for state in self.values()], default=0.0)

    @property
    def down(self) -> dict[str, str]:
        """Those that cannot be read, or not all of them; why, as a sentence."""
        return {
            label: f"adapter {label} is down: {state.down_because}"
            for label, state in self.items()
            if not state.up
        }

    @property
    def troubles(self) -> list[str]:
        """The same sentences, but of those of which nothing was heard yet and nothing is wrong."""
        return [why for label, why in self.down.items() if not self[label].is_opening]

    def are_fresh(self, stale_after_s: float) -> bool:
        """Whether all are read, and what they told is young enough to act on; from any thread."""
        return all(one.up and one.age_s <= stale_after_s for one in list(self.values()))
