"""The shape of what the shadow twin last answered, in the status."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.web.shapes.values import Unknown
from outrider.twin.answer_file import Fidelity, Ratios, Window


class TwinShown(Struct):
    """What the shadow twin last answered: the candidates' totals over the incumbent's.

    `past` is what would have been in `window`; `next` is a forecast of the window to come. Each
    figure is a ratio with its interval; null: it is undefined.
    """

    asked_s: Annotated[float, Meta(description="When, Unix seconds.")]
    took_s: Unknown
    asking_since_s: Annotated[Unknown, Meta(description="Null: nobody asks it now.")]
    stale: Annotated[bool, Meta(description="Older than [twin] stale_after_s.")]
    refused: Annotated[str | None, Meta(description="Why there is no answer; null: there is.")]
    incumbent: str | None
    window: Window | None
    past: dict[str, Ratios]
    next: dict[str, Ratios] | None
    next_weeks: Annotated[Unknown, Meta(description="Length of the window that is forecast.")]
    next_refused: str | None
    next_expired: Annotated[
        str | None,
        Meta(description="Why the forecast holds no more: load or waste are others now."),
    ]
    candidates_refused: dict[str, str]
    other_settings: Annotated[
        list[str], Meta(description="Policies that are configured otherwise now, or not any more.")
    ]
    fidelity: Fidelity | None
