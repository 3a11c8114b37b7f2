"""What every adapter that watches an HTCondor pool lets its site choose."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider.api import AdapterSettings
from outrider_adapters.polling import StartAt


class WatchSettings(AdapterSettings, frozen=True, kw_only=True):
    """How an HTCondor pool is watched."""

    cluster_attribute: Annotated[
        str,
        Meta(min_length=1, description="Attribute of the slot ads that names a machine's cluster."),
    ] = "MachineCluster"
    machine_clusters: Annotated[
        dict[str, str],
        Meta(
            description="Clusters of machines whose ads name none: pattern of the machine's name "
            '(as in a shell) to cluster, such as "lab-*" = "labs". Else "default".'
        ),
    ] = field(default_factory=dict)
    estimate_attribute: Annotated[
        str | None,
        Meta(
            description="Attribute of the job ads with the user's estimate of the run time, "
            "seconds. Unset: estimates are not known.",
            examples=["EstimatedRunTime"],
        ),
    ] = None
    watts_attribute: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Attribute of the slot ads with the watts that the whole machine draws "
            "now, as a probe of the site measures them. Unset: the ads tell no reading.",
            examples=["MachineWatts"],
        ),
    ] = None
    active_w_attribute: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Attribute of the slot ads with the watts of the whole machine while it "
            "works. What it says comes before active_w of [clusters.NAME].",
            examples=["ActiveWatts"],
        ),
    ] = None
    idle_w_attribute: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The same while it is on and unused.", examples=["IdleWatts"]),
    ] = None
    sleep_w_attribute: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(description="The same while it sleeps.", examples=["SleepWatts"]),
    ] = None
    left_after_s: Annotated[
        float,
        Meta(
            ge=0,
            description="How long a machine's ads must be missing before it counts as gone. A "
            "collector that restarts knows none until the next update (300 s by default).",
        ),
    ] = 600.0
    ads_fresh_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Up to this age the newest slot ad counts as fresh: startds tell the "
            "collector anew every UPDATE_INTERVAL (300 s by default). An older one is stale input.",
        ),
    ] = 400.0
    snapshot_s: Annotated[
        float,
        Meta(gt=0, description="From one look at the whole queue to the next, to mend gaps."),
    ] = 300.0
    queue_s: Annotated[
        float,
        Meta(
            ge=1,
            description="From one look at what changed in a queue to the next, where its event log "
            "cannot be read.",
        ),
    ] = 30.0
    repair_after_s: Annotated[
        float,
        Meta(
            ge=5,
            description="For how long the queue must say otherwise than the event log before it "
            "is believed; the log may be written late.",
        ),
    ] = 60.0


# -- real pool settings ----------------------------------------------------------------------------
# The settings of the `htcondor` adapter.


class HTCondorSettings(WatchSettings, frozen=True, kw_only=True):
    """Which pool, and what of it."""

    collector: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Host, or host:port, of the collector. Unset: as CONDOR_CONFIG has it.",
            examples=["cm.example.org:9618"],
        ),
    ] = None
    access_points: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Schedds whose jobs are watched, by name or pattern (as in a shell), as "
            "condor_status -schedd shows them. Empty: all that the collector knows.",
            examples=[["ap*.example.org"]],
        ),
    ] = ()
    event_logs: Annotated[
        dict[str, Annotated[str, Meta(min_length=1)]],
        Meta(
            description="Event log of each access point, by its name. One on this host that says "
            "where its log is need not be named. Without a log its queue and history are asked."
        ),
    ] = field(default_factory=dict)
    start_at: StartAt = "now"
    answer_within_s: Annotated[
        int,
        Meta(ge=1, le=600, description="Seconds after which a daemon that is silent is given up."),
    ] = 10
    look_s: Annotated[
        float, Meta(ge=1, le=60, description="Seconds from one look at logs and slots to the next.")
    ] = 5.0
    lease_s: Annotated[
        float,
        Meta(
            ge=10,
            description="In the modes canary and active: for how long what Outrider sets lasts "
            "when it is not renewed.",
        ),
    ] = 300.0
    start_by: Annotated[
        Literal["prefer", "pin"],
        Meta(
            description="In the modes canary and active, a job that is to start: prefer makes it "
            "prefer the machine group that was decided for; pin lets it start there alone."
        ),
    ] = "prefer"
    start_first: Annotated[
        bool,
        Meta(
            description="In the modes canary and active, a job that is to start comes before all "
            "others of its user, whatever their JobPrio says."
        ),
    ] = False
    defer_by: Annotated[
        Literal["idle", "hold"],
        Meta(
            description="In the modes canary and active, a job that is kept in the queue: idle "
            "leaves it Idle, and it starts nowhere; hold lets HTCondor also show it as held, with "
            "the reason, which takes up to PERIODIC_EXPR_INTERVAL of the schedd, and as long again "
            "to end."
        ),
    ] = "idle"
