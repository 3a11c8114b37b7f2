"""The kinds of values that answers are made of.

Times are Unix seconds of event time, unless a name says otherwise. Null means unknown, never 0.
Answers may get further fields; a client ignores what it does not know.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from outrider.service.twin.starts_file import Score

Mode: TypeAlias = Literal["observe", "shadow", "canary", "active"]
MachineState: TypeAlias = Literal["busy", "free", "owner", "asleep", "closed"]
JobState: TypeAlias = Literal["queued", "running", "suspended", "held"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = dict[str, Count]
Unknown: TypeAlias = float | None
"""A number, or null where it is not known."""


class Failure(Struct):
    """Why there is no answer."""

    error: str


# -- commands --------------------------------------------------------------------------------------
# The shapes of commands: what was given, and what lowers the mode.

_WHO = "Null: nobody gave it, or this client is shown users by pseudonyms."


class CommandRow(Struct):
    """A command, or a change of the mode that nobody commanded."""

    at_s: Annotated[float, Meta(description="Unix seconds by the daemon's clock.")]
    command: Annotated[
        str,
        Meta(
            description="mode, promote, release; fall_back: a guard broke; configuration: a start "
            "or a reload put another mode in force."
        ),
    ]
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: Annotated[str, Meta(description="Who gave it; empty: nobody, or not known.")]
    from_mode: Annotated[str, Meta(description="Empty: there was none before.")]
    to_mode: Mode
    outcome: Literal["done", "refused", "failed"]
    why: Annotated[str, Meta(description="The reason that was given.")]
    detail: Annotated[str, Meta(description="What was done, or why it was not.")]


class ModeLimit(Struct):
    """What keeps the mode below the configuration's, or would."""

    most: Annotated[Mode, Meta(description="The highest mode.")]
    at_s: Annotated[float, Meta(description="Since when, Unix seconds by the daemon's clock.")]
    was: Annotated[str, Meta(description="The mode until then.")]
    by: Literal["guard", "command"]
    why: str
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: str


# -- expected start --------------------------------------------------------------------------------
# The shape of when a job that waits is expected to start.

StartAnswer: TypeAlias = Literal["interval", "next_pass", "not_known", "not_said"]
"""`interval`: within it, four times of five. `next_pass`: now. `not_known`: nobody can know, as of
a new kind of burst. `not_said`: there is no answer, or none that is young enough."""


class ExpectedStart(Struct):
    """An interval of 80 % and the median, Unix seconds; all three are one: in the next pass."""

    low_s: float
    median_s: float
    high_s: float


class StartUnder(Struct):
    """When the job would start if a policy were in force at the whole site."""

    policy: str
    answer: StartAnswer
    start: ExpectedStart | None
    why: Annotated[str | None, Meta(description="Why there is no start; null: there is.")]


class JobStart(Struct):
    """When a job that waits is expected to start. Every number stands in the file `source`."""

    answer: StartAnswer
    start: ExpectedStart | None
    why: Annotated[str | None, Meta(description="Why there is no start; null: there is.")]
    source: Literal["starts.json"]
    asked_s: Annotated[Unknown, Meta(description="Up to when the site was seen for it.")]
    rule: Annotated[str | None, Meta(description="The discipline that was run forward.")]
    scores: Annotated[
        dict[str, Score],
        Meta(
            description="How such answers turned out: given at `submission`, and `hourly` to jobs "
            "that waited on; `batch_system`: its own plans, where it had one, and beside them "
            "ours to the same questions. Starts under policies are never seen: they have no score."
        ),
    ]
    planned_s: Annotated[
        Unknown,
        Meta(description="When the batch system itself expected it to start, at `asked_s`."),
    ]
    under: Annotated[
        list[StartUnder], Meta(description="By policy; empty: no policy was asked about.")
    ]
    under_asked_s: Annotated[Unknown, Meta(description="As `asked_s`, of `under`.")]


class StartsShown(Struct):
    """What holds for the expected starts of all jobs."""

    source: Literal["starts.json"]
    asked_s: Annotated[Unknown, Meta(description="Up to when the site was seen for them.")]
    rule: Annotated[str | None, Meta(description="The discipline that was run forward.")]
    not_said: Annotated[str | None, Meta(description="Why there are none; null: there are.")]
    n: Annotated[Count, Meta(description="Jobs about which there is an answer.")]
    not_known_n: Annotated[Count, Meta(description="Of these, those whose start is not known.")]
    scores: Annotated[dict[str, Score], Meta(description="As in an explanation.")]
    under_asked_s: Annotated[Unknown, Meta(description="As `asked_s`, of starts under policies.")]
    under_not_said: Annotated[
        dict[str, str], Meta(description="Policies without expected starts, and why.")
    ]


class StartsSummary(StartsShown):
    """What holds for the expected starts of all jobs, with a summary."""

    summary: Annotated[str, Meta(description="The same in sentences, for people.")] = ""
