"""Common shapes of values in answers.

Times are Unix seconds of event time, unless a name says otherwise. Null means unknown, never 0.
Answers may get further fields; a client ignores what it does not know.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from outrider.model.jobs import JobSpec
from outrider.twin.answer_file import Finite, Ratios, Window

Mode: TypeAlias = Literal["observe", "shadow", "canary", "active"]
MachineState: TypeAlias = Literal["busy", "free", "owner", "asleep", "closed"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = dict[str, Count]
Unknown: TypeAlias = float | None
"""A number, or null where it is not known."""
Next: TypeAlias = Annotated[
    int | None, Meta(description="Cursor to pass as `after` for the next page; null: last page.")
]


# -- names -----------------------------------------------------------------------------------------
# Names of users, and VOs and texts that may contain some. They are no strings, so that none is
# encoded or formatted by accident: only `Viewer` turns them into what one client may see.


class UserName:
    """The name of a user.

    Attributes:
        clear: the name as stored; empty: not known.
        reporter: `JobSpec.reporter`.
    """

    __slots__ = ("clear", "reporter")

    def __init__(self, clear: str, reporter: str = "") -> None:
        self.clear = clear
        self.reporter = reporter

    @classmethod
    def of_job(cls, spec: JobSpec) -> "UserName":
        """Return the user of a job."""
        return cls(spec.user, spec.reporter)


class VoName:
    """The name of a VO, which may contain users' names.

    Attributes:
        clear: the name as stored.
        of: the user of the jobs that are counted, or one job; empty: all jobs of the VO.
    """

    __slots__ = ("clear", "of")

    def __init__(self, clear: str, of: UserName | str = "") -> None:
        self.clear = clear
        self.of = of


class OutsideText:
    """A text from outside, in which anybody may be named.

    Attributes:
        clear: the text as stored.
        owner: the user whose job it is about; empty: not known; None: Outrider wrote it, and no
            user is named.
    """

    __slots__ = ("clear", "owner")

    def __init__(self, clear: str, owner: str | None) -> None:
        self.clear = clear
        self.owner = owner


class Failure(Struct):
    """An error, as every failed request is answered."""

    error: str


# -- commands --------------------------------------------------------------------------------------
# The shapes of commands and of the mode limit.

_WHO = "Null: no user gave it, or this client sees pseudonyms."


class CommandRow(Struct):
    """A command, or a change of the mode without a command."""

    at_s: Annotated[float, Meta(description="Unix seconds by the daemon's clock.")]
    command: Annotated[
        str,
        Meta(
            description="mode, promote, release; fall_back: a guard lowered the mode; "
            "configuration: a start or a reload changed the mode."
        ),
    ]
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: Annotated[str, Meta(description="User who gave it; empty: none, or not known.")]
    from_mode: Annotated[str, Meta(description="Empty: there was none before.")]
    to_mode: Mode
    outcome: Literal["done", "refused", "failed"]
    why: Annotated[str, Meta(description="The reason that the user gave.")]
    detail: Annotated[str, Meta(description="The result, or why the command was not executed.")]


class ModeLimit(Struct):
    """A limit that keeps the mode below the configuration's, or would."""

    most: Annotated[Mode, Meta(description="The highest mode.")]
    at_s: Annotated[float, Meta(description="Since when, Unix seconds by the daemon's clock.")]
    was: Annotated[str, Meta(description="The mode before it.")]
    by: Literal["guard", "command"]
    why: str
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: str


class Commands(Struct):
    """The mode, its limit, and the last commands, the newest first."""

    mode: Mode
    configured_mode: Annotated[
        Mode, Meta(description="Mode of the configuration: the ceiling of `mode`.")
    ]
    mode_limit: ModeLimit | None
    commands: list[CommandRow]


# -- expected start --------------------------------------------------------------------------------
# The shape of the expected start of a waiting job.

StartAnswer: TypeAlias = Literal["interval", "next_pass", "not_known", "not_said"]
"""Kind of forecast of a start.

`interval`: within the interval in four of five cases. `next_pass`: in the scheduler's next cycle.
`not_known`: unpredictable, as in a new kind of burst. `not_said`: there is no forecast, or it is
too old."""


class NoData(Struct):
    """One adapter without data now: what it reported before is as of `since_s`."""

    adapter: str
    since_s: Annotated[
        float | None, Meta(description="Time of its last data, Unix seconds; null: none yet.")
    ]
    why: Annotated[str, Meta(description="The cause, in words.")]
    text: Annotated[str, Meta(description="All of it as a sentence for people.")]


Gaps: TypeAlias = Annotated[
    list[NoData], Meta(description="Adapters without data now; empty: all have.")
]


class Score(Struct, frozen=True, gc=False):
    """The accuracy of past forecasts.

    Attributes:
        n: predicted starts that have happened.
        coverage_ratio: ratio of them within the interval; None without any.
        pinball_s: mean pinball loss of the three quantiles, seconds; None without any.
        width_s: mean width of the intervals, seconds; of the batch system's own plan, which has
            none: of the interval that holds the middle 80 % of its errors. None without any.
    """

    n: int
    coverage_ratio: Finite | None = None
    pinball_s: Finite | None = None
    width_s: Finite | None = None


class ExpectedStart(Struct):
    """An 80 % interval and the median, Unix seconds; all equal: in the scheduler's next cycle."""

    low_s: float
    median_s: float
    high_s: float


class StartUnder(Struct):
    """The expected start of a job if a policy were active at the whole site."""

    policy: str
    answer: StartAnswer
    start: ExpectedStart | None
    why: Annotated[str | None, Meta(description="Why there is no start; null: there is one.")]


class JobStart(Struct):
    """The expected start of a waiting job. Every number is in the file `source`."""

    answer: StartAnswer
    start: ExpectedStart | None
    why: Annotated[str | None, Meta(description="Why there is no start; null: there is one.")]
    source: Literal["starts.json"]
    asked_s: Annotated[Unknown, Meta(description="Time of the forecast, of the site's events.")]
    rule: Annotated[str | None, Meta(description="The discipline that was simulated.")]
    scores: Annotated[
        dict[str, Score],
        Meta(
            description="Accuracy of past forecasts: made at `submission`, and `hourly` for jobs "
            "that still waited. `batch_system`: its own plans, if it had any; "
            "`beside_batch_system`: Outrider's forecasts for the same jobs and times. Starts under "
            "policies never happen, so they have no score."
        ),
    ]
    planned_s: Annotated[
        Unknown,
        Meta(description="Start that the batch system itself planned at `asked_s`."),
    ]
    under: Annotated[
        list[StartUnder], Meta(description="Starts under each policy; empty: none was evaluated.")
    ]
    under_asked_s: Annotated[Unknown, Meta(description="The same as `asked_s`, for `under`.")]


class StartsShown(Struct):
    """Facts about the expected starts of all jobs."""

    source: Literal["starts.json"]
    asked_s: Annotated[Unknown, Meta(description="Time of the forecast, of the site's events.")]
    rule: Annotated[str | None, Meta(description="The discipline that was simulated.")]
    not_said: Annotated[str | None, Meta(description="Why there are none; null: there are some.")]
    n: Annotated[Count, Meta(description="Jobs with a forecast.")]
    not_known_n: Annotated[Count, Meta(description="Jobs of these whose start is not known.")]
    scores: Annotated[dict[str, Score], Meta(description="Accuracy, as in an explanation.")]
    under_asked_s: Annotated[
        Unknown, Meta(description="The same as `asked_s`, for starts under policies.")
    ]
    under_not_said: Annotated[
        dict[str, str], Meta(description="Policies without forecasts, and why.")
    ]


class StartsSummary(StartsShown):
    """Facts about the expected starts of all jobs, with a summary."""

    summary: Annotated[str, Meta(description="The same in sentences, for people.")] = ""


# -- trial -----------------------------------------------------------------------------------------
# The canary trial as shown in status, evidence and commands.


class Compared(Struct, frozen=True):
    """One measure, acting over not acting, with what the twin stated."""

    estimate: Annotated[float | None, Meta(description="Null: too short to say, or not known.")]
    low: float | None
    high: float | None
    acting: Annotated[float | None, Meta(description="The figure of the acting days.")]
    control: float | None
    stated: Annotated[
        dict[str, float] | None, Meta(description="The twin's estimate, low and high.")
    ] = None
    within: Annotated[
        bool | None, Meta(description="Whether the estimate is in the stated interval.")
    ] = None
    agrees: Annotated[
        bool | None,
        Meta(
            description="Whether the two estimates differ by no more than both intervals allow: "
            "their half widths in quadrature, on the logarithm."
        ),
    ] = None


class TrialOutcome(Struct, frozen=True):
    """Outcome of a trial by measure."""

    pairs: Annotated[int, Meta(description="Pairs of days in which any work was completed.")]
    measures: dict[str, Compared]
    too_short: Annotated[str, Meta(description="Why there is no ratio; empty: there is one.")] = ""


class TrialShown(Struct, frozen=True, kw_only=True):
    """A canary trial by days, registered in advance and compared only at its end."""

    state: Literal["running", "ended", "broken_off"]
    why: Annotated[str, Meta(description="Why it was broken off; else empty.")]
    policy: str
    registered_s: Annotated[float, Meta(description="Unix seconds by the site's clock.")]
    begins_s: Annotated[float, Meta(description="The midnight at which its first day begins.")]
    ends_s: Annotated[float, Meta(description="When its outcome is computed.")]
    days: Annotated[int, Meta(description="Its registered length.")]
    days_done: int
    seed: Annotated[int, Meta(description="Random seed of the drawn days.")]
    restarts: Annotated[int, Meta(description="Restarts of the daemon during the trial.")]
    acts_now: Annotated[bool, Meta(description="True if it acts today.")]
    next_change_s: Annotated[
        float | None, Meta(description="When acting next begins or ends; null: never.")
    ]
    stated_as: Annotated[
        str,
        Meta(
            description="The twin's statement at registration: next: a forecast; past: a "
            "simulated past; empty: nothing."
        ),
    ]
    outcome: Annotated[
        TrialOutcome | None,
        Meta(description="Acting / not acting; null until it ends at its registered length."),
    ]
    summary: Annotated[str, Meta(description="In the status: the trial as a sentence.")] = ""
    results: Annotated[
        list[str], Meta(description="In the status: the result of each measure, for people.")
    ] = []


# -- evidence --------------------------------------------------------------------------------------
# The evidence on raising the mode by one step, shown before it and with its command.


class GuardFigure(Struct, frozen=True):
    """One guard of `[acting]`: a figure of the last hours against its bound."""

    name: str
    value: Annotated[float | None, Meta(description="Null: too few events.")]
    bound: Annotated[float | None, Meta(description="Null: not guarded.")]
    broken: bool


class SourceFigure(Struct, frozen=True):
    """One source of events."""

    label: str
    up: bool
    why: Annotated[str, Meta(description="Why it is down; empty: it is up.")]


class PolicyFigures(Struct, frozen=True):
    """Decisions of one policy, and their agreement with the batch system's."""

    name: str
    decisions: int
    agreed: int
    disagreed: int
    agreement_ratio: float | None
    would_act: Annotated[int, Meta(description="Decisions that the gate would allow.")]
    would_refuse: Annotated[
        dict[str, int], Meta(description="Decisions it would refuse, by reason.")
    ]
    failed: Annotated[str | None, Meta(description="Why it is disabled; null: it is not.")]


class TwinFigures(Struct, frozen=True, kw_only=True):
    """Results of the shadow twin for the policies that would act."""

    needed: Annotated[bool, Meta(description="True if its result is required.")]
    most_overhead_ratio: Annotated[float, Meta(description="promote_most_overhead_ratio.")]
    asked_s: Annotated[float | None, Meta(description="Unix seconds; null: no answer yet.")] = None
    window: Annotated[Window | None, Meta(description="The period of the past.")] = None
    stale: bool = False
    refused: Annotated[dict[str, str], Meta(description="Why there is no result, by policy.")] = {}
    past: Annotated[
        dict[str, Ratios],
        Meta(description="Past period: policy / current scheduler, by policy."),
    ] = {}


class Evidence(Struct, frozen=True, kw_only=True):
    """All evidence on raising the mode by one step, and the objections to it."""

    mode: Annotated[str, Meta(description="The effective mode.")]
    mode_since_s: Annotated[float | None, Meta(description="Unix seconds; null: not known.")]
    configured_mode: Annotated[str, Meta(description="The configured mode: the ceiling.")]
    next_mode: Annotated[str | None, Meta(description="The next step; null: there is none.")]
    watched_s: Annotated[
        float,
        Meta(
            description="For how long the policy has decided here in this mode or above, with "
            "every source up, since a guard last broke or the policy was another."
        ),
    ]
    needed_s: Annotated[float, Meta(description="The required watched_s (promote_after_s).")]
    policies: list[PolicyFigures]
    guards: list[GuardFigure]
    sources: list[SourceFigure]
    trouble: Annotated[list[str], Meta(description="Other reasons why it cannot act.")] = []
    twin: Annotated[
        TwinFigures | None,
        Meta(description="Results of the shadow twin; null: there are none, and none are needed."),
    ] = None
    trial: Annotated[
        TrialShown | None,
        Meta(description="The last canary trial by days, as in the status; null: there was none."),
    ] = None
    against: Annotated[list[str], Meta(description="Objections; empty: it may be raised.")] = []
