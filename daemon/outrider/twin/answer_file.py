"""The twin's answer as its JSON has it, read back and checked."""

from typing import Annotated

from msgspec import Meta, Struct

Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
_Positive = Annotated[float, Meta(gt=0, le=1e300)]


class Ratio(Struct, frozen=True):
    """How many times as much a candidate takes as the incumbent, with its interval at a level."""

    estimate: _Positive
    low: _Positive
    high: _Positive
    level: Annotated[float, Meta(gt=0, lt=1)]

    def __post_init__(self) -> None:
        if not self.low <= self.estimate <= self.high:
            raise ValueError("the estimate lies outside its interval")


Ratios = dict[str, Ratio | None]
"""By the names of the measures; null: it is undefined, as where nothing was ever evicted."""


class Window(Struct, frozen=True):
    """The past that the answer is about, Unix seconds."""

    begin_s: Finite
    end_s: Finite

    def __post_init__(self) -> None:
        if self.end_s < self.begin_s:
            raise ValueError("the window ends before it begins")


class Fidelity(Struct, frozen=True):
    """How far the incumbent, simulated anew, is off what happened; no parts: it was not."""

    passed: bool
    parts: dict[str, Finite | None] = {}
    bounds: dict[str, Finite] = {}
    failed: list[str] = []


class Basis(Struct, frozen=True):
    """What a forecast rests on, and by how much its logarithms may change."""

    load_cpus: Finite | None = None
    waste_share: Finite | None = None
    most_log_change: Finite | None = None


class TwinAnswer(Struct, frozen=True, kw_only=True):
    """The answer of ``outrider twin --json``, as far as others show it: see docs/twin.md."""

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
