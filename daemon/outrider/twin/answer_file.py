"""Schema of the twin's JSON result, to read and check it."""

from typing import Annotated

from msgspec import Meta, Struct

Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
_Positive = Annotated[float, Meta(gt=0, le=1e300)]


class Ratio(Struct, frozen=True):
    """Ratio of a candidate to the incumbent, with its interval at a level."""

    estimate: _Positive
    low: _Positive
    high: _Positive
    level: Annotated[float, Meta(gt=0, lt=1)]

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.high:
            raise ValueError("the estimate lies outside its interval")


Ratios = dict[str, Ratio | None]
"""Ratios by the names of the measures; null: undefined, as without any evictions."""


class Window(Struct, frozen=True):
    """Past period that the result is about, Unix seconds."""

    begin_s: Finite
    end_s: Finite

    def __post_init__(self) -> None:
        if self.end_s < self.begin_s:
            raise ValueError("the window ends before it begins")


class Fidelity(Struct, frozen=True):
    """Deviations of the simulated incumbent from the record; no parts: it was not simulated."""

    passed: bool
    parts: dict[str, Finite | None] = {}
    bounds: dict[str, Finite] = {}
    failed: list[str] = []


class Basis(Struct, frozen=True):
    """Figures that a forecast rests on, and the maximal change of their logarithms."""

    load_cpus: Finite | None = None
    waste_share: Finite | None = None
    most_log_change: Finite | None = None


class TwinAnswer(Struct, frozen=True, kw_only=True):
    """Result of ``outrider twin --json``, those fields that are shown elsewhere (docs/twin.md)."""

    window: Window | None
    incumbent: str | None
    refused: str | None
    past: dict[str, Ratios]
    fidelity: Fidelity | None = None
    next: dict[str, Ratios] | None = None
    next_refused: str | None = None
    candidates_refused: dict[str, str] = {}
    basis: Basis = Basis()
    command: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        if self.window is None and self.refused is None:
            raise ValueError("it has no window")
