"""A daemon's core under disorder: batches go in, entries into a real journal, and it restarts."""

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from outrider.api import Batch
from outrider.journal import Journal, SnapshotStore
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider.service.journal.restart import replay_inputs
from tests.fuzzing.disorder import Disorder
from tests.fuzzing.invariants import contradictions

LABELS = ("log", "meters")
_LATENESS_S = 60.0
_BATCH = 40
_CHECK_EVERY = 10
_SNAPSHOT_EVERY = 37
_RESTART_EVERY = 50
_PRUNE_EVERY = 400


_DEFAULTS = (("vo", "all"), ("job_class", "batch"), ("cluster", "default"))


class ContradictionError(AssertionError):
    """Two figures that must agree do not."""


class FuzzedDaemon:
    """One policy, two sources, a journal with snapshots.

    Args:
        folder: of journal and snapshots.
        policy: its name.
        seed: of all chance.

    Attributes:
        events: told so far.
        restarts: so far.
        set_aside: by reason, over all restarts.
    """

    def __init__(self, folder: Path, policy: str, seed: int) -> None:
        self.policy = policy
        self.seed = seed
        self.events = 0
        self.restarts = 0
        self.set_aside: Counter[str] = Counter()
        self._rng = random.Random(f"{policy} {seed}")
        self._disorder = Disorder(random.Random(f"{policy} {seed} events"))
        self._journal = Journal(folder / "journal.sqlite")
        self._snapshots = SnapshotStore(folder / "snapshots")
        self._core = self._fresh_core()

    def _fresh_core(self) -> Core:
        log = {"type": "logtail", "paths": ["/nowhere"]}
        given: dict[str, Any] = {
            "adapters": dict.fromkeys(LABELS, log),
            "policies": {self.policy: {}},
            "reboot": "03:00",
            "timezone": "Europe/Berlin",
            "seed": self.seed,
            "clusters": {"lab": {"open": "mon-fri 09:00-17:00", "active_w": 100.0}},
        }
        loaded = check_config(given, "fuzz")
        core = Core(loaded, [SourceState(label, "logtail", True, 5.0) for label in LABELS])
        if [runner.name for runner in core.runners if not runner.broken] != [self.policy]:
            raise ContradictionError(f"{self.policy} does not decide; the fuzz would try nothing")
        return core

    def run(self, events: int) -> None:
        """Feed a number of events. Raises `ContradictionError`, or any error of the core."""
        batches = 0
        while self.events < events:
            batches += 1
            self._tell(self._disorder.batch(self._rng.randrange(1, 2 * _BATCH)))
            if batches % _CHECK_EVERY == 0:
                self._check("")
            if batches % _SNAPSHOT_EVERY == 0:
                self._check(" before a snapshot", ask_why=True)
                self._snapshots.save(self._journal.last_seq(), self._core.save())
            if batches % _RESTART_EVERY == 0:
                self._restart()
            if batches % _PRUNE_EVERY == 0:
                self._journal.prune(
                    self._disorder.now_s, oldest_snapshot_seq=self._snapshots.oldest_seq()
                )
        self._check(" at the end", ask_why=True)

    def _tell(self, events: list[Any]) -> None:
        core, rng = self._core, self._rng
        label = rng.choice(LABELS)
        seen_s = self._disorder.now_s - rng.choice([0.0, 5.0, _LATENESS_S])
        if rng.random() < 0.05:
            core.merger.excuse(rng.choice(LABELS))
        batch = Batch(events=events, cursor=self.events)
        feed = core.take(label, batch, None if rng.random() < 0.1 else seen_s)
        while core.step(feed, rng.choice([1, 7, 1_000])):
            pass
        entry = core.entry(label, batch)
        if entry is not None:
            self.set_aside.update(put.reason for put in entry.set_aside)
            self._journal.append(entry)
        self.events += len(events)

    def _check(self, when: str, ask_why: bool = False) -> None:
        wrong = contradictions(self._core, ask_why)
        if wrong:
            raise ContradictionError(
                f"{self.policy}, seed {self.seed}, after {self.events} events{when}: "
                + "; ".join(wrong[:5])
            )

    def _restart(self) -> None:
        """Killed, and started again: from the last snapshot, and what the journal holds since."""
        before = _state(self._core)
        core = self._fresh_core()
        snapshot = self._snapshots.load_latest(not_after=self._journal.last_seq())
        seq = 0
        if snapshot is not None:
            seq, state = snapshot
            core.restore(state)
        replay_inputs(core, self._journal.inputs_after(seq))
        self.restarts += 1
        after = _state(core)
        if after != before:
            wrong = ", ".join(name for name in before if before[name] != after[name])
            raise ContradictionError(
                f"{self.policy}, seed {self.seed}: after {self.events} events a restart "
                f"changes: {wrong}"
            )
        self._core = core
        self._check(" after a restart")

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()


def _state(core: Core) -> dict[str, str]:
    """All that a restart must bring back, as text: unknown energy is nan, and equals nothing."""
    saved = core.save()
    parts = {**saved["engine"], **saved["merger"]}
    parts.pop("seen")  # each source says that again
    return {name: repr(_sorted(part)) for name, part in parts.items()}


def _sorted(value: Any) -> Any:
    """Return a value without the order of names, default values and omitted entries."""
    if isinstance(value, dict):
        told = [(key, part) for key, part in value.items() if (key, part) not in _DEFAULTS]
        return sorted((repr(key), _sorted(part)) for key, part in told)
    if isinstance(value, bytes):
        with suppress(msgspec.DecodeError):
            return _sorted(msgspec.msgpack.decode(value))
    return [_sorted(part) for part in value] if isinstance(value, (list, tuple)) else value
