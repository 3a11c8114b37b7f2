"""Settings of every adapter that watches an HTCondor pool."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider.api import AdapterSettings
from outrider_adapters.polling import StartAt


class WatchSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings for watching an HTCondor pool."""

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
            "now, as a probe of the site measures them. Unset: the ads contain no reading.",
            examples=["MachineWatts"],
        ),
    ] = None
    active_w_attribute: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Attribute of the slot ads with the watts of the whole machine while it "
            "works. It takes precedence over active_w of [clusters.NAME].",
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
            description="Seconds for which a machine's ads must be missing before it counts as "
            "gone. A restarted collector knows none until the next update (300 s by default).",
        ),
    ] = 600.0
    ads_fresh_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Up to this age the newest slot ad counts as fresh: startds update the "
            "collector every UPDATE_INTERVAL (300 s by default). An older one is stale input.",
        ),
    ] = 400.0
    snapshot_s: Annotated[
        float,
        Meta(gt=0, description="Seconds between two reads of the whole queue, which repair gaps."),
    ] = 300.0
    queue_s: Annotated[
        float,
        Meta(
            ge=1,
            description="Seconds between two queries for changes in a queue whose event log cannot "
            "be read.",
        ),
    ] = 30.0
    repair_after_s: Annotated[
        float,
        Meta(
            ge=5,
            description="Seconds for which the queue must contradict the event log before it is "
            "believed. The log may be written late.",
        ),
    ] = 60.0


# -- real pool settings ----------------------------------------------------------------------------
# The settings of the `htcondor` adapter.


class HTCondorSettings(WatchSettings, frozen=True, kw_only=True):
    """Settings of the `htcondor` adapter: the pool, and which part of it."""

    collector: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Host, or host:port, of the collector. Unset: from CONDOR_CONFIG.",
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
            description="Event log of each access point, by its name. An access point on this host "
            "whose configuration names its log can be left out. Without a log its queue and "
            "history are queried."
        ),
    ] = field(default_factory=dict)
    start_at: StartAt = "now"
    answer_within_s: Annotated[
        int,
        Meta(ge=1, le=600, description="Timeout in seconds of a call to a daemon of the pool."),
    ] = 10
    look_s: Annotated[
        float, Meta(ge=1, le=60, description="Seconds between two reads of logs and slots.")
    ] = 5.0
    lease_s: Annotated[
        float,
        Meta(
            ge=10,
            description="In the modes canary and active: seconds after which an attribute that "
            "Outrider set expires if it is not renewed.",
        ),
    ] = 300.0
    start_by: Annotated[
        Literal["prefer", "pin"],
        Meta(
            description="In the modes canary and active, a job that is to start: prefer makes it "
            "prefer the machine group of the decision; pin lets it start only there."
        ),
    ] = "prefer"
    start_first: Annotated[
        bool,
        Meta(
            description="In the modes canary and active, a job that is to start comes before all "
            "others of its user, regardless of their JobPrio."
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
