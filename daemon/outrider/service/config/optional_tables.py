"""The optional tables of a configuration file: ``[acting]``, ``[mqtt]`` and ``[twin]``."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from outrider.model.deployment import BrokerSettings

# -- acting settings -------------------------------------------------------------------------------
# ``[acting]``: which jobs Outrider may change in the modes canary and active, and how many.


class ActingSettings(Struct, frozen=True, kw_only=True):
    """Limits of the changes to the batch system in the modes canary and active.

    With `canary_by = "jobs"` a job is in the canary if any one of `canary_clusters`,
    `canary_users`, `canary_vos` and `canary_fraction` selects it.
    """

    canary_by: Annotated[
        Literal["jobs", "days"],
        Meta(
            description="jobs: the canary is the jobs that the settings below select, for as long "
            "as the mode lasts. days: a trial of canary_days, registered in advance. It acts on "
            "all jobs on days drawn at random, and on none on the other days, and compares the "
            "two."
        ),
    ] = "jobs"
    canary_days: Annotated[
        int,
        Meta(
            ge=14,
            le=364,
            multiple_of=14,
            description="Length of a trial by days, in whole fortnights: each day is paired with "
            "the same weekday of the next week.",
        ),
    ] = 28
    canary_seed: Annotated[
        int,
        Meta(ge=0, description="Random seed of a trial's days; it is registered with the trial."),
    ] = 0
    canary_washout_s: Annotated[
        float,
        Meta(
            ge=0,
            lt=86400,
            description="Seconds after a change between acting and not acting in a trial by days: "
            "jobs and runs that begin in this time count for neither side.",
        ),
    ] = 3600.0
    canary_clusters: Annotated[
        tuple[str, ...],
        Meta(
            description="Machine groups of the canary: it acts on starts decided for one of them.",
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
            description="Fraction of all jobs in the canary. A hash of a job's name decides "
            "whether it is.",
        ),
    ] = 0.0
    admission_control: Annotated[
        bool,
        Meta(
            description="true: keep each job in the queue until the policy starts it, even while "
            "no machine is free. The policy then sets the order of starts, and each start costs "
            "a poll and a cycle of the batch system. false: a job that waits for a machine gets "
            "the next one from the batch system; only jobs that the policy chose to defer are kept."
        ),
    ] = False
    promote_first: Annotated[
        bool,
        Meta(
            description="true: the mode of this file is only the ceiling. The daemon begins in "
            "shadow and acts only after `outrider promote`, which checks the evidence. false: the "
            "mode of this file is active immediately, unless a command or a guard has lowered it."
        ),
    ] = False
    promote_after_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds for which the policy must have decided here before `outrider "
            "promote` lets it act, with every source up and no guard broken: in shadow or above "
            "for the canary, in the canary or above for all jobs.",
        ),
    ] = 86400.0
    promote_by_twin: Annotated[
        bool,
        Meta(
            description="true: `outrider promote` lets the policy act only if the shadow twin's "
            "result supports it. The result must be fresh and of these settings, its interval "
            "must show less energy or less waste, and overhead may not grow too much. false: the "
            "result is only shown."
        ),
    ] = True
    promote_most_overhead_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="For promote_by_twin: largest mean overhead of jobs, as a ratio to that of "
            "the current scheduler, by the upper end of its interval.",
        ),
    ] = 1.25
    acts_per_minute: Annotated[
        float, Meta(gt=0, description="Most jobs changed in a minute, renewals included.")
    ] = 6000.0
    deferred_at_once: Annotated[
        float, Meta(ge=0, description="Most jobs that are deferred at one time.")
    ] = 1000.0
    longest_deferral_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Most seconds for which a job is deferred in total. Then it runs as its "
            "user submitted it, whatever the policy decides.",
        ),
    ] = 14400.0

    guard_mean_wait_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Guard: the mode falls back to shadow if jobs that started within "
            "guard_window_s waited longer than this on average. Unset: no guard.",
        ),
    ] = None
    guard_badput_ratio: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(
            description="Guard: the mode falls back to shadow if evictions wasted more than this "
            "fraction of CPU time. Unset: no guard.",
        ),
    ] = None
    guard_fairness_least: Annotated[
        Annotated[float, Meta(ge=0, lt=1)] | None,
        Meta(
            description="Guard: the mode falls back to shadow if windowed fairness is below this; "
            "1 is fair. Unset: no guard.",
        ),
    ] = None
    guard_error_ratio: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(
            description="Guard: the mode falls back to shadow if more than this fraction of "
            "changes was refused or failed.",
        ),
    ] = 0.5
    guard_window_s: Annotated[
        float, Meta(ge=60, description="Length of the recent time that guards judge, event time.")
    ] = 21600.0

    @property
    def names_jobs(self) -> bool:
        """True if the settings select jobs for a canary by jobs."""
        named = self.canary_clusters or self.canary_users or self.canary_vos
        return bool(named) or self.canary_fraction > 0.0

    @property
    def has_canary(self) -> bool:
        """True if any job can be in the canary."""
        return self.canary_by == "days" or self.names_jobs


# -- mqtt settings ---------------------------------------------------------------------------------
# ``[mqtt]``: the broker that the daemon publishes to, the topics, and the rate.

_WILD: Final = "+#"


class PublishSettings(BrokerSettings, frozen=True, kw_only=True):
    """Publishing over MQTT: mode and health, decisions and evictions; off without this table."""

    topic: Annotated[
        str, Meta(min_length=1, description="First part of every topic; may contain slashes.")
    ] = "outrider"
    site: Annotated[
        str,
        Meta(
            min_length=1,
            description="Second part of every topic: the name of this site on the broker. Two "
            "daemons must not share it.",
        ),
    ] = "site"
    health_every_s: Annotated[
        float, Meta(ge=1, description="Seconds between two messages on the topic `health`.")
    ] = 30.0
    most_per_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Most decisions and evictions published in a second. This limits the "
            "backlog that a broker receives when it is back.",
        ),
    ] = 500.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, value, forbidden in (
            ("topic", self.topic, _WILD), ("site", self.site, _WILD + "/")
        ):  # fmt: skip
            if any(sign in value for sign in forbidden) or value != value.strip():
                raise ValueError(
                    f"{key} = {value!r}: must not contain {' '.join(forbidden)} nor begin or end "
                    'with a space; expected a name like "north-campus"'
                )
        if self.site == "in":
            raise ValueError(
                'site = "in": reserved for messages from machines to Outrider; expected '
                'a name like "north-campus"'
            )
        if self.topic.startswith(("$", "/")) or self.topic.endswith("/"):
            raise ValueError(
                f"topic = {self.topic!r}: must not begin with $ or /, nor end with /; expected "
                'a name like "outrider"'
            )

    @property
    def base(self) -> str:
        """The prefix of all topics of the daemon, without the last slash."""
        return f"{self.topic}/{self.site}"


# -- twin settings ---------------------------------------------------------------------------------
# ``[twin]``: how often the shadow twin evaluates the policies, and with how much effort.

SHORTEST_S: Final = 5.0


class TwinSettings(Struct, frozen=True, kw_only=True):
    """The shadow twin: a simulation of the site's past under each policy.

    A separate process runs it (`outrider run-twin`, `outrider-twin.service`), at low priority.
    """

    every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one run of the twin to the next, at least 5, and never less "
            "than a run takes. 0: never run.",
        ),
    ] = 86_400.0
    starts_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one forecast of the starts of waiting jobs to the next. A "
            "slow forecast is followed by a pause twice as long. 0, or `every_s = 0`: never.",
        ),
    ] = 60.0
    candidates_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one forecast of starts under each policy to the next, and "
            "never less than twice what a forecast takes. 0: never.",
        ),
    ] = 600.0
    candidates_budget_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3_600,
            description="Seconds of simulation in such a forecast, all policies together. A policy "
            "whose 10 replicates take more than twice its share is left out.",
        ),
    ] = 60.0
    replicates: Annotated[
        int,
        Meta(
            ge=2,
            le=1000,
            description="Simulations of the past under each policy. More of them take longer and "
            "make the intervals of policies that choose at random narrower.",
        ),
    ] = 20
    next_weeks: Annotated[
        float, Meta(gt=0, le=520, description="Length of the forecast window, weeks.")
    ] = 8.0
    seed: Annotated[int, Meta(ge=0, description="Random seed of all simulations.")] = 0
    stale_after_s: Annotated[
        float,
        Meta(
            gt=0,
            description="A result older than this is shown as stale, and is no evidence for "
            "`outrider promote`.",
        ),
    ] = 259_200.0
    nice: Annotated[
        int,
        Meta(
            ge=0,
            le=19,
            description="Nice value of the twin process, read at its start. With 19 it only gets "
            "CPU time that no other process wants: on a host whose cores are always busy that is "
            "almost none, and expected starts are late. Under systemd, Nice= and "
            "CPUSchedulingPolicy= of outrider-twin.service apply too.",
        ),
    ] = 19

    @property
    def asks_about_starts(self) -> bool:
        """True if the starts of waiting jobs are forecast."""
        return self.every_s > 0 and self.starts_every_s > 0

    def __post_init__(self) -> None:
        if 0 < self.every_s < SHORTEST_S:
            raise ValueError(
                f"every_s = {self.every_s:g}: expected {SHORTEST_S:g} or more, or 0 for never"
            )
