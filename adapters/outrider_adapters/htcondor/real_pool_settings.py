"""The settings of the `htcondor` adapter."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outrider_adapters.htcondor.settings import WatchSettings


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
    start_at: Annotated[
        Literal["now", "beginning"],
        Meta(
            description="What the first start makes of what was there before: now takes it as "
            "history, which builds state silently; beginning treats it as news."
        ),
    ] = "now"
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
