"""Settings of the `slurm` adapter."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider.api import AdapterSettings
from outrider_adapters.polling import StartAt


class SlurmSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of a watched Slurm: its commands, intervals and actions."""

    config: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="slurm.conf of the cluster, for its commands. Unset: SLURM_CONF of the "
            "environment, else what they were built with.",
            examples=["/etc/slurm/slurm.conf"],
        ),
    ] = None
    commands: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Folder of squeue, scontrol, sdiag and sacct. Unset: found by PATH.",
            examples=["/opt/slurm/bin"],
        ),
    ] = None
    machine_clusters: Annotated[
        dict[str, str],
        Meta(
            description="Clusters of nodes: pattern of the node's name (as in a shell) to cluster, "
            'such as "gpu*" = "gpus". Otherwise the first partition that has the node.'
        ),
    ] = field(default_factory=dict)
    start_at: StartAt = "now"
    look_s: Annotated[
        float,
        Meta(
            ge=1,
            le=60,
            description="Seconds from one look at the jobs to the next. With more than 10,000 rows "
            "of jobs, or while the controller is busy, it is three times as long.",
        ),
    ] = 10.0
    nodes_s: Annotated[
        float, Meta(ge=1, description="Seconds from one look at the nodes to the next.")
    ] = 30.0
    limits_s: Annotated[
        float,
        Meta(
            ge=1,
            description="Seconds from one look at partitions, reservations and the configuration "
            "to the next.",
        ),
    ] = 300.0
    answer_within_s: Annotated[
        float,
        Meta(
            ge=1,
            le=600,
            description="Seconds after which a silent command is terminated. Slurm's own timeout "
            "for a controller that is down is half a minute and more.",
        ),
    ] = 10.0
    lease_s: Annotated[
        float,
        Meta(
            ge=5,
            description="In the modes canary and active: how far ahead a job's start time is set. "
            "It takes effect unless it is renewed.",
        ),
    ] = 300.0
    updates_per_s: Annotated[
        float,
        Meta(
            gt=0,
            le=1000,
            description="In these modes: maximum number of job updates per second; "
            "array tasks in the same state count once. More updates are spread over the "
            "lease.",
        ),
    ] = 100.0
    fence: Annotated[
        bool,
        Meta(
            description="Let one Outrider act on this Slurm at a time: it keeps a job named "
            "outrider-acts in the queue, which never runs, and others that find it change "
            "nothing. Off: for a user who may not submit a job; make sure then that there is no "
            "second one.",
        ),
    ] = True
    fence_partition: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="Partition of that job. Unset: Slurm's default.", examples=["batch"]),
    ] = None
    keeps_age: Annotated[
        bool,
        Meta(
            description="Give a job that was deferred its age back: where Slurm enforces limits of "
            "accounts, a new start time resets the job's age, which counts for its priority. Its "
            "site factor is raised by the loss, until it starts, leaves or is as old again. That "
            "does not expire automatically: see `outrider release --stale`.",
        ),
    ] = False
    order_by: Annotated[
        Literal["none", "site_factor", "nice"],
        Meta(
            description="How a job that the policy starts comes before the others in Slurm's own "
            "order: by its site factor, or by its nice value if the site factor has to be left "
            "alone. That does not expire automatically: see `outrider release --stale`. none: "
            "Slurm's order.",
        ),
    ] = "none"
    helper: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Socket of the helper that updates jobs where the daemon's user may not: "
            "a site without slurmdbd, where only SlurmUser has that right. Unset: its own right.",
            examples=["/run/outrider-slurm.sock"],
        ),
    ] = None

    @property
    def changes_last(self) -> bool:
        """True if something is changed that does not expire automatically."""
        return self.keeps_age or self.order_by != "none"
