"""The canary trial as status, evidence and commands show it."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from outrider.acting.trial_outcome import TrialOutcome
from outrider.service.trials.record import RUNNING, TrialRecord


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
