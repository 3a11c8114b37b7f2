"""Rows of the output as points of a chart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from outrider_lab.reporting.drawing import Series, there
from outrider_lab.running.run_spec import PolicySpec

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
"""Rows by the policy's words."""

MEAN_OVERHEAD: Final = "mean overhead [minutes]"
OVERHEAD: Final = "mean overhead [% of random's]"
SAVING: Final = "energy saved against random [%]"
EPSILON_AXIS: Final = "epsilon [ratio of decisions]"


def series(
    label: str,
    points: Iterable[tuple[float, PolicySpec]],
    rows: Rows,
    y: Callable[[Row], float],
    error: Callable[[Row], float | None] = lambda row: None,
) -> Series:
    """A line of points (x, policy); one without a row is not drawn."""
    known = [(x, rows[str(policy)]) for x, policy in points if str(policy) in rows]
    return Series(
        label,
        [x for x, _ in known],
        [y(row) for _, row in known],
        [error(row) for _, row in known],
    )


def energy_series(
    label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows, name: str
) -> Series:
    """A line of one of the energies, MWh, with its standard errors."""
    return series(label, points, rows, lambda row: row[name], lambda row: row[f"{name}_se"])


def overhead_series(label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows) -> Series:
    """A line of mean overheads, minutes, with their standard errors."""
    return series(
        label,
        points,
        rows,
        lambda row: row["overhead_min"]["mean"],
        lambda row: row["overhead_min_se"]["mean"],
    )


def energy_by_overhead(label: str, policies: Sequence[PolicySpec], rows: Rows) -> Series:
    """Points (mean overhead in minutes, energy in MWh)."""
    known = there(policies, rows)
    overheads = [row["overhead_min"]["mean"] for row in known]
    return Series(label, overheads, [row["total_mwh"] for row in known])


def percent_series(
    label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows, name: str
) -> Series:
    """A line of one of the ratios to random, in per cent, with its standard errors."""

    def error(row: Row) -> float | None:
        known: float | None = row[f"{name}_se"]
        return None if known is None else 100.0 * known

    return series(label, points, rows, lambda row: 100.0 * row[name], error)


def saving_by_overhead(label: str, policy: PolicySpec, rows: Rows) -> Series:
    """The point (overhead, saving) of one policy, both in per cent."""
    known = there([policy], rows)
    overheads = [100.0 * row["overhead_ratio"] for row in known]
    return Series(label, overheads, [100.0 * row["saving_ratio"] for row in known])
