"""``[acting]``: on which jobs, and how much, in the modes that change something."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


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
        """Whether it names jobs for a canary by jobs."""
        named = self.canary_clusters or self.canary_users or self.canary_vos
        return bool(named) or self.canary_fraction > 0.0

    @property
    def has_canary(self) -> bool:
        """Whether any job can be in the canary."""
        return self.canary_by == "days" or self.names_jobs
