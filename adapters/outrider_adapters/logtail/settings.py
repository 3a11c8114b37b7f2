"""The settings of the `logtail` adapter."""

from typing import Annotated, Literal

from msgspec import Meta

from outrider.api import AdapterSettings


class LogtailSettings(AdapterSettings, frozen=True, kw_only=True):
    """Which logs to follow, and how."""

    paths: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            min_length=1,
            description="Log files, or patterns such as /home/*/jobs/*.log. Name the live files "
            "only: rotated ones (.old, .1, .20261121T031700) are found by themselves.",
            examples=[["/var/log/condor/EventLog"]],
        ),
    ]
    format: Annotated[
        str,
        Meta(description="Which reader understands them: its name, or auto to look at each file."),
    ] = "auto"
    timezone: Annotated[
        str | None,
        Meta(
            description="IANA name of the zone whose clock the dates show where they name none, "
            "such as Europe/Berlin. Unset: the reader's default (HTCondor: UTC).",
            examples=["Europe/Berlin"],
        ),
    ] = None
    system: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Whose jobs these are, where the records do not name it: the schedd "
            "(as condor_status -schedd shows it), the Slurm cluster. It stands in front of every "
            "job's number. Unset: a schedd's host as its records tell it, else the file's name.",
            examples=["schedd.example.org"],
        ),
    ] = None
    start_at: Annotated[
        Literal["now", "beginning"],
        Meta(
            description="What the first start makes of what is already written: now takes it as "
            "history, which builds state silently; beginning treats it as news."
        ),
    ] = "now"
    poll_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=60.0,
            description="Seconds between two looks at the files. Shorter sees a change sooner "
            "where inotify is off or cannot tell (network file systems).",
        ),
    ] = 1.0
    settle_s: Annotated[
        float,
        Meta(
            ge=0.0,
            le=60.0,
            description="Quiet seconds after which the last records are given out though a later "
            "one might still explain them, and a rotated file is left for its successor.",
        ),
    ] = 2.0
    inotify: Annotated[
        bool,
        Meta(
            description="Let the kernel say when a file changes. Off: only poll. The events are "
            "the same."
        ),
    ] = True
