"""The settings of the `slurm` adapter."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider.api import AdapterSettings


class SlurmSettings(AdapterSettings, frozen=True, kw_only=True):
    """Which Slurm, and how it is watched."""

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
            description="Folder of squeue, scontrol, sdiag and sacct. Unset: as PATH has it.",
            examples=["/opt/slurm/bin"],
        ),
    ] = None
    machine_clusters: Annotated[
        dict[str, str],
        Meta(
            description="Clusters of nodes: pattern of the node's name (as in a shell) to cluster, "
            'such as "gpu*" = "gpus". Else the first partition that has the node.'
        ),
    ] = field(default_factory=dict)
    start_at: Annotated[
        Literal["now", "beginning"],
        Meta(
            description="What the first start makes of what was there before: now takes it as "
            "history, which builds state silently; beginning treats it as news."
        ),
    ] = "now"
    look_s: Annotated[
        float,
        Meta(
            ge=1,
            le=60,
            description="Seconds from one look at the jobs to the next. With more than 10,000 rows "
            "of jobs, or while the controller has much to do, it is three times as long.",
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
            description="Seconds after which a command that is silent is ended. Slurm's own wait "
            "for a controller that is down is half a minute and more.",
        ),
    ] = 10.0
    lease_s: Annotated[
        float,
        Meta(
            ge=5,
            description="In the modes canary and active: for how long a job's start time lies "
            "ahead when it is not renewed.",
        ),
    ] = 300.0
