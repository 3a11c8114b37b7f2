"""Declaration type of a metric: name, kind, help text and labels."""

import enum
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from outrider.service.core.core import Core

PREFIX: Final = "outrider_"
SITE: Final[tuple[str, ...]] = ()
"""Marks a label whose values depend on the site: its clusters, VOs, policies, adapters."""
UNKNOWN: Final = math.nan

_UNITS: Final = ("seconds", "joules", "watts", "bytes", "ratio")


class Kind(enum.Enum):
    """The kind of a metric; the value is its OpenMetrics type."""

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
        kind: the kind of metric.
        help: one sentence that describes what is measured, with its unit if it has one.
        labels: label names, in order, each with its closed list of values or `SITE`.
        bounds: upper bounds of a histogram's buckets, ascending, without infinity.
        begin: value of a series before it is first set; nan if nothing is known yet.
        of: computes the value from the daemon's core, for a metric without labels; None: the
            exporter sets the value. A result of None is unknown, and shown as NaN.
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
        """The name with its prefix, as in queries."""
        return PREFIX + self.name

    @property
    def family_name(self) -> str:
        """The name of the OpenMetrics family: without ``_total`` or ``_info``."""
        if self.kind is Kind.COUNTER:
            return self.full_name.removesuffix("_total")
        if self.kind is Kind.INFO:
            return self.full_name.removesuffix("_info")
        return self.full_name

    @property
    def unit(self) -> str:
        """The base unit at the end of the name, or an empty string."""
        last = self.family_name.rpartition("_")[2]
        return last if last in _UNITS else ""


def counter(
    name: str,
    text: str,
    begin: float = 0.0,
    of: "Callable[[Core], float | None] | None" = None,
    **labels: tuple[str, ...],
) -> Metric:
    """Declare a counter, a number that only grows."""
    return Metric(name, Kind.COUNTER, text, labels, begin=begin, of=of)


def gauge(
    name: str,
    text: str,
    of: "Callable[[Core], float | None] | None" = None,
    **labels: tuple[str, ...],
) -> Metric:
    """Declare a gauge, a number that goes up and down; nan until it is known."""
    return Metric(name, Kind.GAUGE, text, labels, begin=UNKNOWN, of=of)
