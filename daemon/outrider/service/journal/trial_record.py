"""A canary trial as the journal has it: what was registered, its state, and what came of it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import structlog
from msgspec import Meta, Struct

from outrider.acting.gate import CANARY
from outrider.acting.trial import MEASURES, Trial, TrialOutcome, draw_days, midnights
from outrider.journal import Journal
from outrider.model.errors import LedgerError
from outrider.model.localtime import time_zone
from outrider.service.config.declarations import Config, acting_of, policies_of

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
        log.error("trial_not_saved", error=str(error))
        return None, str(error)


def wants_trial(config: Config) -> bool:
    """Return whether the configuration is one in which a trial goes on."""
    return config.mode == CANARY and acting_of(config).canary_by == BY_DAYS


def terms_of(config: Config) -> str:
    """Digest of the settings that must stay as they are while a trial goes on."""
    terms = {key: getattr(config, key) for key in _TERMS}
    return hashlib.sha256(msgspec.json.encode(terms, order="sorted")).hexdigest()


def active_trial(record: TrialRecord | None, config: Config) -> Trial | None:
    """The trial that decides on which days this configuration acts; None: there is none."""
    if record is None or record.state != RUNNING or not wants_trial(config):
        return None
    return record.trial if record.trial.terms == terms_of(config) else None


# -- registering -----------------------------------------------------------------------------------
# Registering a canary trial: everything about it is settled before its first day.


class Stated(NamedTuple):
    """What the twin states of a policy before a trial.

    Attributes:
        as_: ``next``: as a forecast; ``past``: as what would have been; empty: nothing.
        ratios: by measure, estimate, low and high.
    """

    as_: str = ""
    ratios: Mapping[str, Mapping[str, float]] = {}


def registered(config: Config, now_s: float, stated: Stated) -> Trial:
    """The trial of a configuration, from the next midnight of the site's wall clock on.

    Args:
        config: in force; its mode is canary.
        now_s: of the site, Unix seconds.
        stated: what the twin states of it.
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
# The canary trial as status, evidence and commands show it.


class TrialShown(Struct, frozen=True, kw_only=True):
    """A canary trial by days: registered beforehand, and compared only at its end."""

    state: Literal["running", "ended", "broken_off"]
    why: Annotated[str, Meta(description="For which reason it was broken off; else empty.")]
    policy: str
    registered_s: Annotated[float, Meta(description="Unix seconds by the site's clock.")]
    begins_s: Annotated[float, Meta(description="The midnight with which its first day begins.")]
    ends_s: Annotated[float, Meta(description="When its outcome is worked out.")]
    days: Annotated[int, Meta(description="Its registered length.")]
    days_done: int
    seed: Annotated[int, Meta(description="Of the draw of the days.")]
    restarts: Annotated[int, Meta(description="How often the daemon was started anew meanwhile.")]
    acts_now: Annotated[bool, Meta(description="Whether today is one on which it is acted.")]
    next_change_s: Annotated[
        float | None, Meta(description="When acting next begins or ends; null: not any more.")
    ]
    stated_as: Annotated[
        str,
        Meta(
            description="What the twin had stated when it was registered: next: a forecast; past: "
            "what would have been; empty: nothing."
        ),
    ]
    outcome: Annotated[
        TrialOutcome | None,
        Meta(description="Acting over not acting; null until it ends at its registered length."),
    ]


def trial_shown(record: TrialRecord | None, now_s: float) -> TrialShown | None:
    """The last trial; None: there was none. While it goes on, no ratio is shown or worked out.

    Args:
        record: of the journal.
        now_s: of the site.
    """
    if record is None:
        return None
    trial, goes_on = record.trial, record.state == RUNNING
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
        acts_now=goes_on and trial.acts_at(now_s),
        next_change_s=trial.next_change_s(now_s) if goes_on else None,
        stated_as=trial.stated_as,
        outcome=record.outcome,
    )
