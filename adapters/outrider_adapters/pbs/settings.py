"""Settings of the `pbs` adapter."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider.api import AdapterSettings
from outrider_adapters.polling import StartAt


class PBSSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of a watched PBS server: its commands, intervals and actions."""

    commands: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Folder of qstat, pbsnodes and qalter. Unset: found by PATH.",
            examples=["/opt/pbs/bin"],
        ),
    ] = None
    server: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="The server's host, for the commands (PBS_DEFAULT and PBS_SERVER). Unset: "
            "by the environment or their own configuration.",
            examples=["pbs.example.org"],
        ),
    ] = None
    dialect: Annotated[
        Literal["auto", "openpbs", "torque"],
        Meta(
            description="Family of the commands: OpenPBS and PBS Pro answer in JSON (-F json), "
            "Torque in XML (-x). auto queries their version."
        ),
    ] = "auto"
    timezone: Annotated[
        str | None,
        Meta(
            description="Zone of the server's clock, an IANA name: OpenPBS reports local times. "
            "Unset: UTC.",
            examples=["Europe/Berlin"],
        ),
    ] = None
    machine_clusters: Annotated[
        dict[str, str],
        Meta(
            description="Clusters of nodes: pattern of the node's name (as in a shell) to cluster, "
            'such as "gpu*" = "gpus". Otherwise all are in "default".'
        ),
    ] = field(default_factory=dict)
    start_at: StartAt = "now"
    look_s: Annotated[
        float,
        Meta(ge=1, le=300, description="Seconds from one look at the jobs to the next."),
    ] = 30.0
    nodes_s: Annotated[
        float, Meta(ge=1, description="Seconds from one look at the nodes to the next.")
    ] = 60.0
    answer_within_s: Annotated[
        float,
        Meta(ge=1, le=600, description="Seconds after which a silent command is terminated."),
    ] = 20.0
    lease_s: Annotated[
        float,
        Meta(
            ge=5,
            description="In the modes canary and active: how far ahead a job's execution time is "
            "set. It takes effect unless it is renewed.",
        ),
    ] = 300.0
    updates_per_s: Annotated[
        float,
        Meta(
            gt=0,
            le=1000,
            description="In these modes: maximum number of jobs altered per second. More are "
            "spread over the lease.",
        ),
    ] = 100.0
