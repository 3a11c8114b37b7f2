"""``[twin]``: how often the shadow twin is asked about the policies, and how thoroughly."""

from typing import Annotated, Final

from msgspec import Meta, Struct

SHORTEST_S: Final = 5.0


class TwinSettings(Struct, frozen=True, kw_only=True):
    """The shadow twin: the site's past simulated anew under each policy, beside the daemon.

    A process of its own asks it (`outrider run-twin`, `outrider-twin.service`), at low priority.
    """

    every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one asking to the next, at least 5; and never less than an "
            "asking takes. 0: it is never asked.",
        ),
    ] = 86_400.0
    starts_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one look at when waiting jobs will start to the next; a look "
            "that takes long is followed by a rest twice as long. 0, or `every_s = 0`: none.",
        ),
    ] = 60.0
    candidates_every_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds from one look at when waiting jobs would start under each policy "
            "to the next, and never less than twice what a look takes. 0: none.",
        ),
    ] = 600.0
    candidates_budget_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3_600,
            description="Seconds in which such a look simulates, all policies together. A policy "
            "with which 10 replicates take twice its part is left out.",
        ),
    ] = 60.0
    replicates: Annotated[
        int,
        Meta(
            ge=2,
            le=1000,
            description="How often the past is simulated under each policy. More makes intervals "
            "narrower where policies draw by chance, and takes longer.",
        ),
    ] = 20
    next_weeks: Annotated[
        float, Meta(gt=0, le=520, description="Length of the window that is forecast, weeks.")
    ] = 8.0
    seed: Annotated[int, Meta(ge=0, description="Seed of everything that is drawn.")] = 0
    stale_after_s: Annotated[
        float,
        Meta(
            gt=0,
            description="An answer that is older is shown as stale, and is no evidence for "
            "`outrider promote`.",
        ),
    ] = 259_200.0
    nice: Annotated[
        int,
        Meta(
            ge=0,
            le=19,
            description="How far that process gives way to others on this host, as nice(1) counts; "
            "read at its start. With 19 it takes what nobody else wants: on a host whose cores are "
            "always busy that is next to nothing, and starts are said late. Under systemd Nice= "
            "and CPUSchedulingPolicy= of outrider-twin.service hold beside it.",
        ),
    ] = 19

    @property
    def asks_about_starts(self) -> bool:
        """Whether anybody looks at when waiting jobs will start."""
        return self.every_s > 0 and self.starts_every_s > 0

    def __post_init__(self) -> None:
        if 0 < self.every_s < SHORTEST_S:
            raise ValueError(
                f"every_s = {self.every_s:g}: right would be {SHORTEST_S:g} or more, or 0 for never"
            )
