"""State of one source: whether it is up, and the age of its information."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import structlog
from msgspec import Meta

from outrider.api.adapter import Adapter, Batch
from outrider.engine.ingest.bounded_names import OTHER
from outrider.model.events import MACHINE_KINDS, NamedEvent
from outrider.model.jobs import JOB_STATE_NAMES
from outrider.model.printable import clean_name, printable_line

HANGS_AFTER_S: Final = 15.0
"""Seconds without a batch after which an adapter counts as hanging.

Adapters yield a batch every few seconds, an empty one if nothing happened. The age of a hanging
adapter's information grows."""
LATE_S: Final = 5.0
"""Age of information above which a source with a problem has no data.

A problem alone is no gap: a batch system whose negotiator is stopped still answers."""
MAX_COUNTED: Final = 100
"""Largest number of names of rejection reasons, and of ignored kinds, that are counted.

Some of these names are taken from the source."""

_MAX_TEXT: Final = 2_000


class Gap(NamedTuple):
    """One source without data now.

    Attributes:
        label: of the adapter.
        since_s: time up to which there are data, Unix seconds; None: there are none yet.
        why: the cause, in words.
    """

    label: str
    since_s: float | None
    why: str


class SourceState:
    """State of one adapter, for status and metrics.

    The age that an adapter reports is valid at that moment. The time since then is measured here,
    or the information of a hanging source would always look recent.

    Args:
        label, kind, inferred, lateness_s: as declared by the adapter.
        clock: monotonic seconds.
        wall: Unix seconds.

    Attributes:
        note, problem, written_s: as in the adapter's last batch.
        answered_s: time up to which its information is complete, Unix seconds; None: it has given
            none yet.
    """

    def __init__(
        self, label: str, kind: str, inferred: bool, lateness_s: float,
        clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.label = label
        self.kind = kind
        self.inferred = inferred
        self.lateness_s = lateness_s
        self.note = ""
        self.problem = ""
        self.written_s: dict[str, float] = {}
        self.answered_s: float | None = None
        self._clock, self._wall = clock, wall
        self._made_s = wall()
        self._reported_age_s = 0.0
        self._batch_at_s = clock()
        self._awaited_since_s: float | None = None
        self._stale_after_s = 0.0
        self._is_open = False
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.recorded: list[dict[str, int]] = [{}, {}]

    def note_batch(self, batch: Batch, stale_after_s: float) -> None:
        """Note a batch that was taken in; the source is `up` until the batch is stale."""
        self._reported_age_s, self._batch_at_s = batch.age_s, self._clock()
        self.note, self.problem = _shown(batch.note), _shown(batch.problem)
        self.written_s = batch.written_s
        self._stale_after_s, self._is_open = stale_after_s, True
        # while a first answer is late, batches are empty and their age grows
        if batch.events or batch.seen_until_s is not None or batch.age_s <= 0.0:
            self.answered_s = self._wall() - batch.age_s

    def recall_records(self, counted: list[dict[str, int]] | None) -> None:
        """Continue the journal's counts of rejected and ignored records."""
        if counted is not None:
            self.rejected, self.ignored = Counter(counted[0]), Counter(counted[1])
            self.recorded = counted

    def forget_records(self) -> None:
        """Reset the counts of rejected and ignored records."""
        self.rejected.clear()
        self.ignored.clear()

    def succeed(self, old: "SourceState") -> None:
        """Continue the counts of another source, and what is known of its last answer."""
        self.rejected, self.ignored, self.recorded = old.rejected, old.ignored, old.recorded
        self.answered_s = old.answered_s

    def note_awaited(self, awaited: bool) -> None:
        """Note that the adapter is asked for its next batch, or has just returned one."""
        self._awaited_since_s = self._clock() if awaited else None

    def lose(self, problem: str) -> None:
        """Note that the source cannot be read; the age of its information grows."""
        self._is_open = False
        self.note = self.problem = _shown(problem)
        self._awaited_since_s = None

    @property
    def age_s(self) -> float:
        """Age of the newest information, in seconds; grows while no batch arrives."""
        silent_s = self._clock() - self._batch_at_s
        return self._reported_age_s + (
            silent_s if silent_s > HANGS_AFTER_S or not self._is_open else 0.0
        )

    @property
    def is_open(self) -> bool:
        """True if the source can currently be read."""
        return self._is_open

    @property
    def up(self) -> bool:
        """True if the source can be read completely and its information is not stale."""
        return self._is_open and not self.problem and self.age_s <= self._stale_after_s

    def gap(self, known_until_s: float | None) -> Gap | None:
        """Return why this source has no data now; None: it has.

        Args:
            known_until_s: time up to which the journal has data of the site, Unix seconds; used
                where the source has not answered since the daemon started. None: it has none.
        """
        limit_s = LATE_S if self.problem else self._stale_after_s
        if self._is_open and self.answered_s is not None and self.age_s <= limit_s:
            return None
        since_s = self.answered_s
        if since_s is None and known_until_s is not None:
            since_s = min(known_until_s, self._made_s)
        why = self.problem or self.note or self.down_because or "it has not answered yet"
        return Gap(self.label, since_s, why)

    def silent(self, now_s: float) -> dict[str, float]:
        """Return the inputs, by name, that were last written so long ago that they are stale.

        Args:
            now_s: Unix seconds.

        Returns:
            when each was last written (Unix seconds).
        """
        before_s = now_s - self._stale_after_s
        silent = (name for name, at_s in self.written_s.items() if at_s < before_s)
        return {clean_name(name): self.written_s[name] for name in islice(silent, MAX_COUNTED)}

    @property
    def hangs(self) -> bool:
        """True if the adapter was asked for a batch long ago and has not returned one."""
        since_s = self._awaited_since_s
        return since_s is not None and self._clock() - since_s > HANGS_AFTER_S

    @property
    def is_opening(self) -> bool:
        """True if nothing has been received from it yet and there is no problem so far."""
        return not (self._is_open or self.problem or self.hangs)

    @property
    def down_because(self) -> str:
        """Reason why the source is not `up`, in words; empty if it is."""
        if self.up:
            return ""
        if self.problem:
            return self.problem
        silent_s = self._clock() - self._batch_at_s
        if not self._is_open and self._awaited_since_s is None:
            return "its last batch waits to be taken in"
        if not self._is_open:
            return f"no sign of life yet, for {silent_s:.0f} s"
        if self.hangs:
            return f"no sign of life for {silent_s:.0f} s"
        cause = f"{self.note}; " if self.note else ""
        return f"{cause}its newest information is {self.age_s:.0f} s old"


def _shown(text: str) -> str:
    """Return an adapter's text without control characters; it may name a user's file."""
    return printable_line(text, _MAX_TEXT)


def add_bounded(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts by name; new names beyond the limit are counted as `OTHER`."""
    for reported, n in more.items():
        name = clean_name(reported)
        counts[name if name in counts or len(counts) < MAX_COUNTED else OTHER] += n


class MachineSources:
    """Map from each machine to the adapter that last reported it, by name."""

    def __init__(self) -> None:
        self._label_of: dict[str, str] = {}

    def note(self, label: str, events: Iterable[NamedEvent]) -> None:
        """Note the machines in events of an adapter."""
        self._label_of |= {name: label for _, kind, name, _ in events if kind in MACHINE_KINDS}

    def succeed(self, old: "MachineSources") -> None:
        """Continue the map of another core."""
        self._label_of |= old._label_of

    def label_of(self, machine: str) -> str | None:
        """Return the adapter of a machine; None: it was not reported since the daemon started."""
        return self._label_of.get(machine)


# -- state words -----------------------------------------------------------------------------------
# The batch system's own words for the states of jobs, as its adapter declares them.

_Words: TypeAlias = dict[
    Literal["queued", "running", "suspended", "held"],
    Annotated[str, Meta(min_length=1, max_length=40)],
]
OURS: Final[Mapping[str, str]] = {name: name for name in JOB_STATE_NAMES}
log = structlog.get_logger()


class StateWords:
    """Words of the active adapters for the states of jobs.

    Args:
        adapters: returns the active adapters, by label.
    """

    def __init__(self, adapters: Callable[[], Mapping[str, Adapter]]) -> None:
        self._adapters = adapters
        self._invalid: set[str] = set()

    def now(self) -> dict[str, str]:
        """Return a word for each state: ours if no adapter declares one, or two of them differ."""
        declared = [words for one in self._adapters().items() if (words := self._declared(*one))]
        if not declared or any(words != declared[0] for words in declared):
            return dict(OURS)
        return {**OURS, **declared[0]}

    def _declared(self, label: str, adapter: Adapter) -> dict[Any, str]:
        """Return an adapter's words; empty if its declaration is invalid, which is logged once."""
        try:
            return msgspec.convert(dict(adapter.state_words), _Words)
        except Exception as error:  # noqa: BLE001 - a plugin's declaration must not break an answer
            if label not in self._invalid:
                self._invalid.add(label)
                why = f"{type(error).__name__}: {error}"
                log.warning("state_words_ignored", adapter=label, error=why)
            return {}
