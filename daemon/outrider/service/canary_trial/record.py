"""Record of a canary trial in the journal: its registration, state and outcome."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import structlog

from outrider.acting.gate import CANARY
from outrider.journal import Journal
from outrider.model.errors import LedgerError
from outrider.model.localtime import time_zone
from outrider.service.canary_trial.trial import MEASURES, Trial, draw_days, midnights
from outrider.service.config.declarations import Config, acting_of, policies_of
from outrider.service.shapes.values import TrialOutcome, TrialShown

TRIAL_KEY: Final = "trial"
"""Key of the present trial in the journal; the steps of all trials are commands."""
BY_DAYS: Final = "days"
RUNNING: Final = "running"
ENDED: Final = "ended"
BROKEN_OFF: Final = "broken_off"
_TERMS: Final = (
    "acting", "adapters", "clusters", "discipline", "estimator", "max_starts_per_minute",
    "policies", "reboot", "reconsider_s", "seed", "shares", "stale_after_s", "timezone",
    "utilities",
)  # fmt: skip
"""Settings that affect what is decided, applied or counted."""
log = structlog.get_logger()


class TrialRecord(msgspec.Struct, frozen=True):
    """A trial and its state.

    Attributes:
        trial: as registered.
        state: ``running``, ``ended`` at its registered length, or ``broken_off`` before.
        ended_s: when it ended, by the site's clock; None: it is running.
        why: the reason why it was broken off; else empty.
        outcome: the outcome of an ended trial.
        left: True if the canary was left since it ended: the next canary is a new trial.
        restarts: number of restarts of the daemon while it was running.
    """

    trial: Trial
    state: Literal["running", "ended", "broken_off"] = "running"
    ended_s: float | None = None
    why: str = ""
    outcome: TrialOutcome | None = None
    left: bool = False
    restarts: int = 0


def trial_on_record(path: Path) -> tuple[TrialRecord | None, str]:
    """Return the last trial of a journal, or None; and the error in reading it, or empty text."""
    try:
        with Journal(path, read_only=True) as journal:
            kept: Any = journal.meta(TRIAL_KEY, None)
        return (None if kept is None else msgspec.convert(kept, TrialRecord)), ""
    except (LedgerError, TypeError, ValueError) as error:  # msgspec's errors are of the last kind
        log.error("trial_not_saved", error=str(error))
        return None, str(error)


def wants_trial(config: Config) -> bool:
    """Return whether the configuration is one in which a trial runs."""
    return config.mode == CANARY and acting_of(config).canary_by == BY_DAYS


def terms_of(config: Config) -> str:
    """Return a digest of the settings that must not change during a trial."""
    terms = {key: getattr(config, key) for key in _TERMS}
    return hashlib.sha256(msgspec.json.encode(terms, order="sorted")).hexdigest()


def active_trial(record: TrialRecord | None, config: Config) -> Trial | None:
    """Return the trial that defines the days on which this configuration acts, or None."""
    if record is None or record.state != RUNNING or not wants_trial(config):
        return None
    return record.trial if record.trial.terms == terms_of(config) else None


# -- registering -----------------------------------------------------------------------------------
# Registration of a canary trial: everything about it is fixed before its first day.


class Stated(NamedTuple):
    """The twin's statement on a policy before a trial.

    Attributes:
        as_: ``next``: a forecast; ``past``: a simulated past; empty: nothing.
        ratios: estimate, low and high by measure.
    """

    as_: str = ""
    ratios: Mapping[str, Mapping[str, float]] = {}


def registered(config: Config, now_s: float, stated: Stated) -> Trial:
    """Return the trial of a configuration, starting at the next midnight of the site's clock.

    Args:
        config: the active configuration, in mode canary.
        now_s: time at the site, in Unix seconds.
        stated: the twin's statement on the policy.
    """
    acting = acting_of(config)
    policy, settings = next(iter(policies_of(config).items()))
    return Trial(
        registered_s=now_s,
        policy=policy,
        settings=dict(settings),
        seed=acting.canary_seed,
        midnights_s=midnights(now_s, acting.canary_days, time_zone(config.timezone)),
        acts=draw_days(acting.canary_seed, acting.canary_days),
        washout_s=acting.canary_washout_s,
        measures=tuple(measure.name for measure in MEASURES),
        stated={name: dict(one) for name, one in stated.ratios.items()},
        stated_as=stated.as_,
        terms=terms_of(config),
    )


# -- shown -----------------------------------------------------------------------------------------
# The canary trial as shown in status, evidence and commands.


def trial_shown(record: TrialRecord | None, now_s: float) -> TrialShown | None:
    """Return the last trial, or None. While it runs, no ratio is computed or shown.

    Args:
        record: the record in the journal.
        now_s: time at the site.
    """
    if record is None:
        return None
    trial, is_running = record.trial, record.state == RUNNING
    until_s = now_s if record.ended_s is None else record.ended_s
    return TrialShown(
        state=record.state,
        why=record.why,
        policy=trial.policy,
        registered_s=trial.registered_s,
        begins_s=trial.midnights_s[0],
        ends_s=trial.ends_s,
        days=trial.days,
        days_done=sum(end_s <= until_s for end_s in trial.midnights_s[1:]),
        seed=trial.seed,
        restarts=record.restarts,
        acts_now=is_running and trial.acts_at(now_s),
        next_change_s=trial.next_change_s(now_s) if is_running else None,
        stated_as=trial.stated_as,
        outcome=record.outcome,
    )
