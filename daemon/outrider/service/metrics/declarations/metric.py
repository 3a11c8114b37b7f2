"""What the declaration of a metric says."""

import enum
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from outrider.service.core.core import Core

PREFIX: Final = "outrider_"
SITE: Final[tuple[str, ...]] = ()
"""The values of a label that only the site knows: its clusters, VOs, policies, adapters."""
UNKNOWN: Final = math.nan

_UNITS: Final = ("seconds", "joules", "watts", "bytes", "ratio")


class Kind(enum.Enum):
    """What a metric is; the value is its OpenMetrics type."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    STATE_SET = "stateset"
    INFO = "info"


class Metric(msgspec.Struct, frozen=True):
    """The declaration of one metric.

    Attributes:
        name: without the prefix; with its unit, and ``_total`` or ``_info`` where the kind has it.
        kind: what it is.
        help: one sentence that says what is measured, and its unit where it has one.
        labels: label names, in order, each with its closed list of values or `SITE`.
        bounds: upper bounds of a histogram's buckets, ascending, without infinity.
        begin: value of a series before it is first set; nan where nothing is known yet.
        of: its value by the daemon's core, where one expression has it and it has no labels; else
            the exporter sets it. None from it is unknown, and shown as NaN.
    """

    name: str
    kind: Kind
    help: str
    labels: Mapping[str, tuple[str, ...]] = {}
    bounds: tuple[float, ...] = ()
    begin: float = 0.0
    of: "Callable[[Core], float | None] | None" = None

    @property
    def full_name(self) -> str:
        """The name with its prefix, as queries spell it."""
        return PREFIX + self.name

    @property
    def family_name(self) -> str:
        """The full name as OpenMetrics spells it: without ``_total`` or ``_info``."""
        if self.kind is Kind.COUNTER:
            return self.full_name.removesuffix("_total")
        if self.kind is Kind.INFO:
            return self.full_name.removesuffix("_info")
        return self.full_name

    @property
    def unit(self) -> str:
        """The base unit the name ends with, or an empty string."""
        last = self.family_name.rpartition("_")[2]
        return last if last in _UNITS else ""


def counter(
    name: str,
    text: str,
    begin: float = 0.0,
    of: "Callable[[Core], float | None] | None" = None,
    **labels: tuple[str, ...],
) -> Metric:
    """A number that only grows."""
    return Metric(name, Kind.COUNTER, text, labels, begin=begin, of=of)


def gauge(
    name: str,
    text: str,
    of: "Callable[[Core], float | None] | None" = None,
    **labels: tuple[str, ...],
) -> Metric:
    """A number that goes up and down; nan until it is known."""
    return Metric(name, Kind.GAUGE, text, labels, begin=UNKNOWN, of=of)
