"""The optional tables of a configuration file: ``[acting]``, ``[mqtt]`` and ``[twin]``."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from outrider.model.deployment import BrokerSettings

# -- acting settings -------------------------------------------------------------------------------
# ``[acting]``: on which jobs, and how much, in the modes that change something.


class ActingSettings(Struct, frozen=True, kw_only=True):
    """Bounds of what is changed in the batch system in the modes canary and active.

    With `canary_by = "jobs"` a job is in the canary by any one of `canary_clusters`,
    `canary_users`, `canary_vos` and `canary_fraction`.
    """

    canary_by: Annotated[
        Literal["jobs", "days"],
        Meta(
            description="jobs: the canary is the jobs that the settings below name, for as long as "
            "the mode lasts. days: a trial of a length that is registered beforehand, in which it "
            "acts on all jobs on days that are drawn at random, and on none on the others, and "
            "compares the two."
        ),
    ] = "jobs"
    canary_days: Annotated[
        int,
        Meta(
            ge=14,
            le=364,
            multiple_of=14,
            description="Length of a trial by days: whole fortnights, for each day has the same "
            "weekday of the next week as its partner.",
        ),
    ] = 28
    canary_seed: Annotated[
        int, Meta(ge=0, description="Seed of the draw of a trial's days; it is registered.")
    ] = 0
    canary_washout_s: Annotated[
        float,
        Meta(
            ge=0,
            lt=86400,
            description="Of a trial by days: what begins so soon after a change from acting to not "
            "acting, or back, counts for neither.",
        ),
    ] = 3600.0
    canary_clusters: Annotated[
        tuple[str, ...],
        Meta(
            description="Machine groups of the canary: starts that were decided for one of them.",
            examples=[["lab-1"]],
        ),
    ] = ()
    canary_users: Annotated[
        tuple[str, ...],
        Meta(description="Users whose jobs are in the canary.", examples=[["alice"]]),
    ] = ()
    canary_vos: Annotated[
        tuple[str, ...],
        Meta(
            description="VOs (accounting groups, accounts) whose jobs are in the canary.",
            examples=[["physics"]],
        ),
    ] = ()
    canary_fraction: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Of all jobs, the part that is in the canary. Which ones is settled by "
            "their names.",
        ),
    ] = 0.0
    admission_control: Annotated[
        bool,
        Meta(
            description="Keep each job in the queue until the policy starts it, also while no "
            "machine is free: the order of starts is the policy's then, at the price of a look and "
            "of a cycle of the batch system for each. Else a job that waits for a machine gets the "
            "next one from the batch system, and only what the policy chose to defer is kept."
        ),
    ] = False
    promote_first: Annotated[
        bool,
        Meta(
            description="Let the mode of this file be the ceiling alone: the daemon begins in "
            "shadow, and acts only after `outrider promote`, which looks at the evidence. Else the "
            "mode of this file is in force at once, unless a command or a guard has lowered it."
        ),
    ] = False
    promote_after_s: Annotated[
        float,
        Meta(
            ge=0,
            description="For how long the policy must have decided here, with every source up and "
            "no guard broken since, before `outrider promote` lets it act: in shadow or above for "
            "the canary, in the canary or above for all jobs.",
        ),
    ] = 86400.0
    promote_by_twin: Annotated[
        bool,
        Meta(
            description="Let `outrider promote` have the policy act only where the shadow twin "
            "speaks for it: its answer is fresh, is about these settings, says that energy or "
            "waste would surely have been less, and overhead not too much more. Else what it "
            "answers is only shown."
        ),
    ] = True
    promote_most_overhead_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="Of that: how many times the incumbent's the mean overhead of jobs may "
            "be, by the upper end of its interval.",
        ),
    ] = 1.25
    acts_per_minute: Annotated[
        float, Meta(gt=0, description="Most jobs changed within a minute; renewals count.")
    ] = 6000.0
    deferred_at_once: Annotated[
        float, Meta(ge=0, description="Most jobs that are kept in the queue at one time.")
    ] = 1000.0
    longest_deferral_s: Annotated[
        float,
        Meta(
            ge=0,
            description="For how long a job is kept in the queue at most, all together: then it "
            "runs as its user submitted it, whatever the policy wants.",
        ),
    ] = 14400.0

    guard_mean_wait_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Guard: where jobs that started in the last hours waited longer than this "
            "in the mean, the mode falls back to shadow. Unset: no guard.",
        ),
    ] = None
    guard_badput_ratio: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(
            description="Guard: the part of CPU time that was thrown away by evictions. Unset: no "
            "guard.",
        ),
    ] = None
    guard_fairness_least: Annotated[
        Annotated[float, Meta(ge=0, lt=1)] | None,
        Meta(
            description="Guard: windowed fairness below this, 1 being fair. Unset: no guard.",
        ),
    ] = None
    guard_error_ratio: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(
            description="Guard: the part of changes that were refused or failed.",
        ),
    ] = 0.5
    guard_window_s: Annotated[
        float, Meta(ge=60, description="The last hours of the guards, seconds of event time.")
    ] = 21600.0

    @property
    def names_jobs(self) -> bool:
        """True if it names jobs for a canary by jobs."""
        named = self.canary_clusters or self.canary_users or self.canary_vos
        return bool(named) or self.canary_fraction > 0.0

    @property
    def has_canary(self) -> bool:
        """True if any job can be in the canary."""
        return self.canary_by == "days" or self.names_jobs


# -- mqtt settings ---------------------------------------------------------------------------------
# ``[mqtt]``: to which broker the daemon publishes, below which topic, and how fast.

_WILD: Final = "+#"


class PublishSettings(BrokerSettings, frozen=True, kw_only=True):
    """Publishing over MQTT: mode and health, decisions and evictions; off without this table."""

    topic: Annotated[
        str, Meta(min_length=1, description="The first part of every topic; may have slashes.")
    ] = "outrider"
    site: Annotated[
        str,
        Meta(
            min_length=1,
            description="The second part of every topic: this site among others on the broker. "
            "Two daemons must not share it.",
        ),
    ] = "site"
    health_every_s: Annotated[
        float, Meta(ge=1, description="Seconds between two messages on the topic `health`.")
    ] = 30.0
    most_per_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Most decisions and evictions published in a second: what a broker that "
            "was away gets at once when it is back.",
        ),
    ] = 500.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, value, forbidden in (
            ("topic", self.topic, _WILD), ("site", self.site, _WILD + "/")
        ):  # fmt: skip
            if any(sign in value for sign in forbidden) or value != value.strip():
                raise ValueError(
                    f"{key} = {value!r}: a topic's part has none of {' '.join(forbidden)} and no "
                    'space around it; expected a name like "north-campus"'
                )
        if self.site == "in":
            raise ValueError(
                'site = "in": machines tell Outrider what happens below that name; expected '
                'a name like "north-campus"'
            )
        if self.topic.startswith(("$", "/")) or self.topic.endswith("/"):
            raise ValueError(
                f"topic = {self.topic!r}: must not begin with $ or /, nor end with /; expected "
                'a name like "outrider"'
            )

    @property
    def base(self) -> str:
        """What all topics of the daemon begin with, without the last slash."""
        return f"{self.topic}/{self.site}"


# -- twin settings ---------------------------------------------------------------------------------
# ``[twin]``: how often the shadow twin is asked about the policies, and how thoroughly.

SHORTEST_S: Final = 5.0


class TwinSettings(Struct, frozen=True, kw_only=True):
    """The shadow twin: the site's past simulated anew under each policy, beside the daemon.

    A process of its own asks it (`outrider run-twin`, `outrider-twin.service`), at low priority.
    """

    every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one asking to the next, at least 5; and never less than an "
            "asking takes. 0: it is never asked.",
        ),
    ] = 86_400.0
    starts_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one look at when waiting jobs will start to the next; a look "
            "that takes long is followed by a rest twice as long. 0, or `every_s = 0`: none.",
        ),
    ] = 60.0
    candidates_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one look at when waiting jobs would start under each policy "
            "to the next, and never less than twice what a look takes. 0: none.",
        ),
    ] = 600.0
    candidates_budget_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3_600,
            description="Seconds in which such a look simulates, all policies together. A policy "
            "with which 10 replicates take twice its part is left out.",
        ),
    ] = 60.0
    replicates: Annotated[
        int,
        Meta(
            ge=2,
            le=1000,
            description="How often the past is simulated under each policy. More makes intervals "
            "narrower where policies draw by chance, and takes longer.",
        ),
    ] = 20
    next_weeks: Annotated[
        float, Meta(gt=0, le=520, description="Length of the window that is forecast, weeks.")
    ] = 8.0
    seed: Annotated[int, Meta(ge=0, description="Seed of everything that is drawn.")] = 0
    stale_after_s: Annotated[
        float,
        Meta(
            gt=0,
            description="An answer that is older is shown as stale, and is no evidence for "
            "`outrider promote`.",
        ),
    ] = 259_200.0
    nice: Annotated[
        int,
        Meta(
            ge=0,
            le=19,
            description="How far that process gives way to others on this host, as nice(1) counts; "
            "read at its start. With 19 it takes what nobody else wants: on a host whose cores are "
            "always busy that is next to nothing, and starts are said late. Under systemd Nice= "
            "and CPUSchedulingPolicy= of outrider-twin.service hold beside it.",
        ),
    ] = 19

    @property
    def asks_about_starts(self) -> bool:
        """True if anybody looks at when waiting jobs will start."""
        return self.every_s > 0 and self.starts_every_s > 0

    def __post_init__(self) -> None:
        if 0 < self.every_s < SHORTEST_S:
            raise ValueError(
                f"every_s = {self.every_s:g}: expected {SHORTEST_S:g} or more, or 0 for never"
            )
