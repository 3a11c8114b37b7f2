"""Settings of the `logtail` adapter."""

from typing import Annotated, Literal

from msgspec import Meta

from outrider.api import AdapterSettings


class LogtailSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings of the `logtail` adapter: which logs to follow, and how."""

    paths: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            min_length=1,
            description="Log files, or patterns such as /home/*/jobs/*.log. Name the live files "
            "only: rotated ones (.old, .1, .20261121T031700) are found automatically.",
            examples=[["/var/log/condor/EventLog"]],
        ),
    ]
    format: Annotated[
        str,
        Meta(description="Name of the reader for the logs, or auto to detect it for each file."),
    ] = "auto"
    timezone: Annotated[
        str | None,
        Meta(
            description="IANA name of the time zone of dates that name none, "
            "such as Europe/Berlin. Unset: the reader's default (HTCondor: UTC).",
            examples=["Europe/Berlin"],
        ),
    ] = None
    system: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="System of the jobs, if the records do not name it: the schedd "
            "(as condor_status -schedd shows it), the Slurm cluster. It is the prefix of every "
            "job's number. Unset: the schedd's host in the records, else the file's name.",
            examples=["schedd.example.org"],
        ),
    ] = None
    start_at: Annotated[
        Literal["now", "beginning"],
        Meta(
            description="How the first start treats records that are already written: now takes "
            "them as history, which builds state silently; beginning treats them as news."
        ),
    ] = "now"
    poll_s: Annotated[
        float,
        Meta(
            ge=0.05,
            le=60.0,
            description="Seconds between two checks of the files. Shorter intervals see changes "
            "sooner if inotify is off or does not work (network file systems).",
        ),
    ] = 1.0
    settle_s: Annotated[
        float,
        Meta(
            ge=0.0,
            le=60.0,
            description="Quiet seconds after which the last records are passed on although a later "
            "one might still explain them, and a rotated file is left for its successor.",
        ),
    ] = 2.0
    inotify: Annotated[
        bool,
        Meta(
            description="Let the kernel report file changes. Off: only poll. The events are the "
            "same."
        ),
    ] = True
