"""``[acting]``: on which jobs, and how much, in the modes that change something."""

from typing import Annotated

from msgspec import Meta, Struct


class ActingSettings(Struct, frozen=True, kw_only=True):
    """Bounds of what is changed in the batch system in the modes canary and active.

    A job is in the canary by any one of the four.
    """

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
    def has_canary(self) -> bool:
        """Whether any job can be in the canary."""
        named = self.canary_clusters or self.canary_users or self.canary_vos
        return bool(named) or self.canary_fraction > 0.0
