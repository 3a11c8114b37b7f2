"""Habits of a site: what machines and runs do there by rule, which no event tells."""

from typing import Annotated

from msgspec import Meta, Struct

_Seconds = Annotated[float, Meta(ge=0)]


class SiteHabits(Struct, frozen=True):
    """What is known of the habits of a site; None: it is not known. Opening hours are elsewhere.

    Attributes:
        reboot: local time of the nightly reboot, ``HH:MM``; ``never``: there is none.
        idle_before_job_open_s: seconds after a log-out or reboot before jobs may use a machine
            whose cluster is open then.
        idle_before_job_closed_s: the same, where it is closed.
        reconsider_s: seconds after which a job that was deferred is decided again.
        wake_s: seconds that a job waits for a machine that has to be woken.
        wake_j: joules of waking it.
        transfer_s: seconds that a job copies its data at every start.
        suspend_s: seconds that a job stays suspended after a log-in before it is evicted.
        checkpoint_every_s: seconds of work between two checkpoints of a run.
    """

    reboot: str | None = None
    idle_before_job_open_s: _Seconds | None = None
    idle_before_job_closed_s: _Seconds | None = None
    reconsider_s: Annotated[float, Meta(gt=0)] | None = None
    wake_s: _Seconds | None = None
    wake_j: _Seconds | None = None
    transfer_s: _Seconds | None = None
    suspend_s: _Seconds | None = None
    checkpoint_every_s: Annotated[float, Meta(gt=0)] | None = None

    def completed_by(self, other: "SiteHabits") -> "SiteHabits":
        """These habits; what is not known of them is as `other` has it."""
        return SiteHabits(
            *(
                getattr(other, name) if getattr(self, name) is None else getattr(self, name)
                for name in self.__struct_fields__
            )
        )
