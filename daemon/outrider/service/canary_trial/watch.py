"""Watch over the canary trial: registration, days, end or cancellation."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
import structlog

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.engine import Engine
from outrider.engine.state.site import Site
from outrider.journal import CommandRecord
from outrider.service.canary_trial.record import (
    BROKEN_OFF,
    BY_DAYS,
    ENDED,
    RUNNING,
    TRIAL_KEY,
    Stated,
    TrialRecord,
    active_trial,
    registered,
    terms_of,
    wants_trial,
)
from outrider.service.canary_trial.trial import FollowedTrial, outcome_of
from outrider.service.config.declarations import Config, acting_of
from outrider.service.config.loaded import LoadedConfig

_EVERY_S: Final = 10.0
COMMAND: Final = "trial"
"""Command name of the trial's steps in the journal."""

log = structlog.get_logger()


class _Limit(Protocol):
    @property
    def most(self) -> str: ...


class _Recording(Protocol):
    @property
    def failure(self) -> str | None: ...


class _Core(Protocol):
    @property
    def engine(self) -> Engine: ...
    @property
    def site(self) -> Site: ...
    @property
    def trial(self) -> FollowedTrial: ...


class _State(Protocol):
    """Part of the daemon's state that the watch needs."""

    trial: TrialRecord | None
    trial_lost: str

    @property
    def lock(self) -> asyncio.Lock: ...
    @property
    def core(self) -> _Core: ...
    @property
    def loaded(self) -> LoadedConfig: ...
    @property
    def recording(self) -> _Recording: ...
    @property
    def limit(self) -> _Limit | None: ...


class Records(Protocol):
    """Writes a trial step among the commands, together with the trial's record."""

    async def __call__(self, record: CommandRecord, meta: Mapping[str, Any], /) -> None:
        """Write both in one transaction."""


class TrialWatch:
    """Keeps the daemon's trial consistent with its configuration and the site's clock.

    Args:
        state: the daemon's state.
        record: writes a step of the trial.
        stated_by: returns the twin's statement on the acting policy of a configuration.
    """

    def __init__(
        self, state: _State, record: Records, stated_by: Callable[[Config], Stated]
    ) -> None:
        self._state = state
        self._record = record
        self._stated_by = stated_by
        self._acted = False
        self._has_looked = False

    async def run(self) -> None:
        """Check the trial periodically."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.look_now()

    async def look_now(self) -> None:
        """Call `look` with the state locked; an error must not end the daemon."""
        try:
            async with self._state.lock:
                await self.look()
        except Exception:
            log.exception("trial_failed")

    async def look(self) -> None:
        """Take the steps that are due now; the caller holds the lock of the state.

        While nothing can be recorded, no step is taken.
        """
        state = self._state
        core, config = state.core, state.loaded.config
        if core.engine.silent or not core.engine.events or state.recording.failure is not None:
            return
        now_s = core.site.now
        if not self._has_looked:
            self._has_looked = True
            await self._after_start()
        await self._end_if_due(config, now_s)
        kept = state.trial
        is_over = kept is None or kept.left or kept.state == BROKEN_OFF
        if is_over and wants_trial(config) and not self._lowered_to():
            await self._register(config, now_s)
        self._follow_days(now_s)

    async def _after_start(self) -> None:
        """Record whether a running trial survived the restart."""
        state, kept = self._state, self._state.trial
        if state.trial_lost:
            await self._step(None, f"broken off: its record cannot be read: {state.trial_lost}", "")
        elif kept is not None and kept.state == RUNNING and not self._broken_by(kept):
            again = msgspec.structs.replace(kept, restarts=kept.restarts + 1)
            await self._step(again, "continues after a restart of the daemon", "")

    async def _end_if_due(self, config: Config, now_s: float) -> None:
        kept = self._state.trial
        if kept is None or kept.left:
            return
        if kept.state == RUNNING:
            if why := self._broken_by(kept):
                broken = msgspec.structs.replace(kept, state=BROKEN_OFF, ended_s=now_s, why=why)
                await self._step(broken, f"broken off: {why}", "")
            elif now_s >= kept.trial.ends_s:
                await self._compare(kept, now_s)
        elif kept.state == ENDED and _is_left(kept, config):
            left = msgspec.structs.replace(kept, left=True)
            await self._step(left, "its canary was left: the next one is another trial", "")

    async def _compare(self, kept: TrialRecord, now_s: float) -> None:
        """End the trial at its registered length and compute its outcome once."""
        days = self._state.core.trial.days
        outcome = None if days is None else outcome_of(kept.trial, days)
        ended = msgspec.structs.replace(kept, state=ENDED, ended_s=now_s, outcome=outcome)
        await self._step(ended, "ended at its registered length", _plain(outcome))

    async def _register(self, config: Config, now_s: float) -> None:
        trial = registered(config, now_s, self._stated_by(config))
        days = f"{trial.days} days, seed {trial.seed}, {sum(trial.acts)} of them acting"
        why = f"registered: {trial.policy}, {days}"
        await self._step(TrialRecord(trial), why, _plain(trial))

    def _follow_days(self, now_s: float) -> None:
        """Decide again about waiting jobs when acting begins or ends.

        This reverts or applies the decision of each job, with a record and the gate's answer. A
        restart does the same, since it has lost which decisions were active.
        """
        core = self._state.core
        acts = core.trial.acts_at(now_s)
        if acts != self._acted:
            self._acted = acts
            core.engine.decide_again()

    def _broken_by(self, kept: TrialRecord) -> str:
        """Return the reason why a running trial cannot continue; empty: it can."""
        config = self._state.loaded.config
        if config.mode != CANARY:
            return f"the mode is {config.mode}"
        if lowered_to := self._lowered_to():
            return f"the mode was lowered to {lowered_to}"
        if acting_of(config).canary_by != BY_DAYS:
            return "the canary is no longer by days"
        return "" if kept.trial.terms == terms_of(config) else "the configuration changed"

    def _lowered_to(self) -> str:
        """Return the mode of a limit that ends the acting; empty if there is none.

        Acting ends immediately, before a configuration of that mode is active.
        """
        limit = self._state.limit
        return limit.most if limit is not None and limit.most not in ACTING_MODES else ""

    async def _step(self, record: TrialRecord | None, why: str, detail: str) -> None:
        """Take a step of the trial and record it."""
        state, meta = self._state, {}
        if record is not None:
            state.trial = record
            state.core.trial.follow(active_trial(record, state.loaded.config))
            meta[TRIAL_KEY] = msgspec.to_builtins(record)
        mode = state.loaded.config.mode
        step = CommandRecord(time.time(), COMMAND, None, "", mode, mode, "done", why, detail)
        await self._record(step, meta)


def _is_left(kept: TrialRecord, config: Config) -> bool:
    """Return whether the configuration has left an ended trial; the next canary is a new one."""
    return not wants_trial(config) or kept.trial.terms != terms_of(config)


def _plain(shown: Any) -> str:
    return msgspec.json.encode(shown).decode()
