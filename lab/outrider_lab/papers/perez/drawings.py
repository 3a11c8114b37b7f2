"""The paper's figures 3 to 7 redrawn, and the learning curve, from the rows of the output."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from outrider_lab.papers.perez.figures import CLASSES, QUANTILES, STRETCHES
from outrider_lab.papers.perez.grid import (
    COMPARED,
    EDF,
    EXACT,
    FEASIBLE,
    FIFO,
    FROZEN,
    INFEASIBLE,
    LITERAL,
    NATIVE,
    ROWS,
    SARSA,
    SJF,
    UNTRAINED,
    WINDOW,
)
from outrider_lab.reporting.drawing import Series, line_chart, there
from outrider_lab.reporting.page import Drawing
from outrider_lab.running.run_spec import PolicySpec

Row = Mapping[str, Any]
_SHOWN_ROW: Final = "0.2"
_ORDERS: Final = (FIFO, SJF, EDF, SARSA, LITERAL)
_LEARNERS: Final = (SARSA, FROZEN, UNTRAINED, LITERAL)
_RATIO: Final = [float(q) for q in QUANTILES]
_HOUR_S: Final = 3600.0


def drawings(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Every figure that the rows have runs for."""
    for row in ROWS:
        if feasible := _exact(rows, row, FEASIBLE):
            yield _waits(feasible, row)
            yield _overheads(feasible, row)
    feasible = _exact(rows, _SHOWN_ROW, FEASIBLE)
    if feasible:
        yield _fairness(4, feasible, FEASIBLE)
    if infeasible := _exact(rows, _SHOWN_ROW, INFEASIBLE):
        yield _fairness(5, infeasible, INFEASIBLE)
    if feasible:
        for name in CLASSES:
            yield _learning(feasible, name)
    for trace in dict.fromkeys(row["trace"] for row in rows if row["row"] == WINDOW):
        window = {r["variant"]: r for r in rows if r["row"] == WINDOW and r["trace"] == trace}
        yield from _of_window(window, trace)


def _exact(rows: Sequence[Row], row: str, targets: str) -> dict[str, Row]:
    return {
        r["variant"]: r
        for r in rows
        if (r["row"], r["targets"], r["estimates"]) == (row, targets, EXACT)
    }


def _distribution(row: Row, what: str, name: str, least: float) -> Series:
    """A cumulative distribution; values below `least` stand at it, for the axis is logarithmic."""
    values = row["curves"][what][name]
    known = [(max(v, least), q) for v, q in zip(values, _RATIO, strict=False) if v is not None]
    return Series(row["variant"], [v for v, _ in known], [100 * q for _, q in known])


def _waits(rows: Mapping[str, Row], row: str) -> Drawing:
    return Drawing(
        f"Figure 3, left: waits of interactive jobs, row {row}",
        "Cumulative distribution; each quantile is the mean over the seeds of that seed's own.",
        line_chart(
            "wait [s]",
            "interactive jobs that wait at most so long [%]",
            [_distribution(r, "wait_s", "interactive", 1.0) for r in there(_ORDERS, rows)],
            log_x=True,
        ),
    )


def _overheads(rows: Mapping[str, Row], row: str) -> Drawing:
    return Drawing(
        f"Figure 3, right: relative overhead of interactive jobs, row {row}",
        "Wait over run time, as on the left; 1 is a job that waited as long as it ran.",
        line_chart(
            "relative overhead [wait / run time]",
            "interactive jobs with at most so much [%]",
            [_distribution(r, "overhead", "interactive", 0.01) for r in there(_ORDERS, rows)],
            log_x=True,
        ),
    )


def _fairness(number: int, rows: Mapping[str, Row], targets: str) -> Drawing:
    return Drawing(
        f"Figure {number}: fairness over time, {targets} shares",
        f"Row {_SHOWN_ROW}, equation 4, after the first jobs; runs of different length are laid "
        "over one another at equal parts of their length.",
        line_chart("time [h]", "fairness utility [ratio]", _over_time(rows, _ORDERS)),
    )


def _over_time(rows: Mapping[str, Row], policies: Sequence[PolicySpec]) -> list[Series]:
    return [
        Series(row["variant"], [s / _HOUR_S for s in row["curves"]["moments_s"]],
               row["curves"]["fairness"])
        for row in there(policies, rows)
    ]  # fmt: skip


def _learning(rows: Mapping[str, Row], name: str) -> Drawing:
    return Drawing(
        f"Learning curve: {name} jobs",
        f"Row {_SHOWN_ROW}: mean wait of each twelfth of the arrivals, mean over the seeds. "
        f"{FROZEN}: the start net, which learns no more; {UNTRAINED}: no start net.",
        line_chart(
            "arrivals so far [%]",
            f"mean wait of {name} jobs [s]",
            [_course(row, name) for row in there((FIFO, *_LEARNERS), rows)],
        ),
    )


def _course(row: Row, name: str) -> Series:
    known = [(n, v) for n, v in enumerate(row["curves"]["course_s"][name], 1) if v is not None]
    return Series(row["variant"], [100 * n / STRETCHES for n, _ in known], [v for _, v in known])


def _of_window(rows: Mapping[str, Row], trace: str | None) -> Iterator[Drawing]:
    place = "generated windows" if trace is None else trace
    for name in CLASSES:
        yield Drawing(
            f"Figure 6, left: waits of {name} jobs on EGEE-like windows",
            f"Cumulative distribution, {place}.",
            line_chart(
                "wait [s]",
                f"{name} jobs that wait at most so long [%]",
                [_distribution(row, "wait_s", name, 1.0) for row in there(COMPARED, rows)],
                log_x=True,
            ),
        )
    if not there((NATIVE,), rows):
        return
    native = rows[str(NATIVE)]
    learners = there((SARSA, LITERAL, FROZEN), rows)
    yield Drawing(
        "Figure 6, right: wait under the native scheduler less that under RL",
        f"Interactive jobs, by twelfths of the arrivals, {place}.",
        line_chart(
            "arrivals so far [%]",
            "difference of the mean waits [s]",
            [_gain(native, row) for row in learners],
            level=("no difference", 0.0),
        ),
    )
    (base,) = _over_time(rows, (NATIVE,))
    yield Drawing(
        "Figure 7: fairness under RL less that under the native scheduler",
        f"After the first jobs, {place}.",
        line_chart(
            "time [h]",
            "difference of the fairness utilities [ratio]",
            [_less(one, base) for one in _over_time(rows, (SARSA, LITERAL, FROZEN))],
            level=("no difference", 0.0),
        ),
    )


def _gain(native: Row, learner: Row) -> Series:
    """By how much less interactive jobs wait under the learner."""
    gained = _less(_course(native, "interactive"), _course(learner, "interactive"))
    return gained._replace(label=learner["variant"])


def _less(first: Series, second: Series) -> Series:
    """The first less the second, where both are known."""
    at = dict(zip(second.x, second.y, strict=True))
    both = [(x, y - at[x]) for x, y in zip(first.x, first.y, strict=True) if x in at]
    return Series(first.label, [x for x, _ in both], [y for _, y in both])
