"""A canary trial as the journal has it: what was registered, its state, and what came of it."""

import hashlib
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import structlog

from outrider.acting.gate import CANARY
from outrider.acting.trial import Trial
from outrider.acting.trial_outcome import TrialOutcome
from outrider.journal import Journal
from outrider.model.errors import LedgerError
from outrider.service.config.declarations import Config, acting_of

TRIAL_KEY: Final = "trial"
"""Where the journal keeps the present one; all steps of all are among the commands."""
BY_DAYS: Final = "days"
RUNNING: Final = "running"
ENDED: Final = "ended"
BROKEN_OFF: Final = "broken_off"
_TERMS: Final = (
    "acting", "adapters", "clusters", "discipline", "estimator", "max_starts_per_minute",
    "policies", "reboot", "reconsider_s", "seed", "shares", "stale_after_s", "timezone",
    "utilities",
)  # fmt: skip
"""Settings that bear on what is decided, carried out or counted."""

log = structlog.get_logger()


class TrialRecord(msgspec.Struct, frozen=True):
    """A trial and its state.

    Attributes:
        trial: as registered.
        state: ``running``, ``ended`` at its registered length, or ``broken_off`` before.
        ended_s: when it ended, by the site's clock; None: it goes on.
        why: for which reason it was broken off; else empty.
        outcome: only of one that ended.
        left: the canary was left since it ended: the next canary is another trial.
        restarts: how often the daemon was started anew while it went on.
    """

    trial: Trial
    state: Literal["running", "ended", "broken_off"] = "running"
    ended_s: float | None = None
    why: str = ""
    outcome: TrialOutcome | None = None
    left: bool = False
    restarts: int = 0


def trial_on_record(path: Path) -> tuple[TrialRecord | None, str]:
    """The last trial of a journal, None where there is none; and why it cannot be read, or ""."""
    try:
        with Journal(path, read_only=True) as journal:
            kept: Any = journal.meta(TRIAL_KEY, None)
        return (None if kept is None else msgspec.convert(kept, TrialRecord)), ""
    except (LedgerError, TypeError, ValueError) as error:  # msgspec's errors are of the last kind
        log.error("lose_trial", reason=str(error))
        return None, str(error)


def wants_trial(config: Config) -> bool:
    """Whether the configuration is one in which a trial goes on."""
    return config.mode == CANARY and acting_of(config).canary_by == BY_DAYS


def terms_of(config: Config) -> str:
    """Digest of the settings that must stay as they are while a trial goes on."""
    terms = {key: getattr(config, key) for key in _TERMS}
    return hashlib.sha256(msgspec.json.encode(terms, order="sorted")).hexdigest()


def in_force(record: TrialRecord | None, config: Config) -> Trial | None:
    """The trial that decides on which days this configuration acts; None: there is none."""
    if record is None or record.state != RUNNING or not wants_trial(config):
        return None
    return record.trial if record.trial.terms == terms_of(config) else None
