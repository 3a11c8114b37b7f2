"""What the supervisor knows of one source: whether it lives, and how old its information is."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import structlog
from msgspec import Meta

from outrider.api.adapter import Adapter, Batch
from outrider.engine.ingest.bounded_names import OTHER
from outrider.model.jobs import JOB_STATE_NAMES

HANGS_AFTER_S: Final = 15.0
"""An adapter yields a batch every few seconds, an empty one if nothing happened. One that yields
none for so long hangs, and the age of its information grows."""
MOST_COUNTED: Final = 100
"""Reasons for which records are rejected, and kinds of those ignored, that are counted by name:
some are words of the source's own."""


class SourceState:
    """What is known of one adapter, for status and metrics.

    What an adapter says of the age of its information holds for the moment at which it says it;
    since then the time is measured here, or a source that hangs would look young for ever.

    Args:
        label, kind, inferred, lateness_s: as the adapter says.
        clock: seconds that only ever go on.

    Attributes:
        note, problem, written_s: as in the adapter's last batch.
    """

    def __init__(
        self, label: str, kind: str, inferred: bool, lateness_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.label = label
        self.kind = kind
        self.inferred = inferred
        self.lateness_s = lateness_s
        self.note = ""
        self.problem = ""
        self.written_s: dict[str, float] = {}
        self._clock = clock
        self._said_age_s = 0.0
        self._batch_at_s = clock()
        self._awaited_since_s: float | None = None
        self._stale_after_s = 0.0
        self._is_open = False
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.recorded: list[dict[str, int]] = [{}, {}]

    def note_batch(self, batch: Batch, stale_after_s: float) -> None:
        """A batch was taken in; the source is `up` until what it told is stale."""
        self._said_age_s, self._batch_at_s = batch.age_s, self._clock()
        self.note, self.problem, self.written_s = batch.note, batch.problem, batch.written_s
        self._stale_after_s, self._is_open = stale_after_s, True

    def recall_records(self, counted: list[dict[str, int]] | None) -> None:
        """Go on with the counts of rejected and ignored records as the journal has them."""
        if counted is not None:
            self.rejected, self.ignored = Counter(counted[0]), Counter(counted[1])
            self.recorded = counted

    def forget_records(self) -> None:
        """Count rejected and ignored records from nothing."""
        self.rejected.clear()
        self.ignored.clear()

    def succeed(self, old: "SourceState") -> None:
        """Go on with the counts of another."""
        self.rejected, self.ignored, self.recorded = old.rejected, old.ignored, old.recorded

    def note_awaited(self, awaited: bool) -> None:
        """From now on the adapter is asked for its next batch, or it has just given one."""
        self._awaited_since_s = self._clock() if awaited else None

    def lose(self, problem: str) -> None:
        """The source cannot be read at present; the age of its information grows."""
        self._is_open, self.note, self.problem = False, problem, problem
        self._awaited_since_s = None

    @property
    def age_s(self) -> float:
        """Seconds since the newest information was true; grows while no batch comes."""
        silent_s = self._clock() - self._batch_at_s
        return self._said_age_s + (
            silent_s if silent_s > HANGS_AFTER_S or not self._is_open else 0.0
        )

    @property
    def is_open(self) -> bool:
        """True if the source can be read at present."""
        return self._is_open

    @property
    def up(self) -> bool:
        """True if the source can be read, all of it, and its information is not stale."""
        return self._is_open and not self.problem and self.age_s <= self._stale_after_s

    def silent(self, now_s: float) -> dict[str, float]:
        """Of what it reads, by name: what has not been written for so long that input is stale.

        Args:
            now_s: Unix seconds.

        Returns:
            since when (Unix seconds).
        """
        before_s = now_s - self._stale_after_s
        return {name: at_s for name, at_s in self.written_s.items() if at_s < before_s}

    @property
    def hangs(self) -> bool:
        """True if the adapter was asked for a batch long ago and has given none."""
        since_s = self._awaited_since_s
        return since_s is not None and self._clock() - since_s > HANGS_AFTER_S

    @property
    def is_opening(self) -> bool:
        """True if nothing was heard of it yet and nothing is wrong so far."""
        return not (self._is_open or self.problem or self.hangs)

    @property
    def down_because(self) -> str:
        """Why the source is not `up`, in words; empty if it is."""
        if self.up:
            return ""
        if self.problem:
            return self.problem
        silent_s = self._clock() - self._batch_at_s
        if not self._is_open and self._awaited_since_s is None:
            return "what it gave waits to be taken in"
        if not self._is_open:
            return f"no sign of life yet, for {silent_s:.0f} s"
        if self.hangs:
            return f"no sign of life for {silent_s:.0f} s"
        return f"its newest information is {self.age_s:.0f} s old"


def add_bounded(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts by name; those of names that come when there are many already go to `OTHER`."""
    for name, n in more.items():
        counts[name if name in counts or len(counts) < MOST_COUNTED else OTHER] += n


# -- state words -----------------------------------------------------------------------------------
# The batch system's own words for the states of jobs, as its adapter declares them.

_Words: TypeAlias = dict[
    Literal["queued", "running", "suspended", "held"],
    Annotated[str, Meta(min_length=1, max_length=40)],
]
OURS: Final[Mapping[str, str]] = {name: name for name in JOB_STATE_NAMES}
log = structlog.get_logger()


class StateWords:
    """What the adapters in force call the states of jobs.

    Args:
        adapters: those in force now, by label.
    """

    def __init__(self, adapters: Callable[[], Mapping[str, Adapter]]) -> None:
        self._adapters = adapters
        self._told_wrongly: set[str] = set()

    def now(self) -> dict[str, str]:
        """A word for each state: ours where no adapter has one, or two have other ones."""
        said = [words for one in self._adapters().items() if (words := self._said(*one))]
        if not said or any(words != said[0] for words in said):
            return dict(OURS)
        return {**OURS, **said[0]}

    def _said(self, label: str, adapter: Adapter) -> dict[Any, str]:
        """An adapter's; what it declares wrongly is not known, and is logged once."""
        try:
            return msgspec.convert(dict(adapter.state_words), _Words)
        except Exception as error:  # noqa: BLE001 - a plugin's declaration must end no answer
            if label not in self._told_wrongly:
                self._told_wrongly.add(label)
                why = f"{type(error).__name__}: {error}"
                log.warning("state_words_ignored", adapter=label, error=why)
            return {}
