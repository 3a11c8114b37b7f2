"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider.report.rendering import heading, prose, table
from outrider.simulation.estimates import in_words
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
from outrider_lab.reporting.page import Drawing, PaperPage, shown
from outrider_lab.running.run_spec import PolicySpec

_WAIT_PARTS: Final = ("mean", "se", "std", "median", "max", "worst")
_COLUMNS: Final = (
    "policy", "seeds",
    *(f"{name} wait, {part} [s]" for name in ("interactive", "batch") for part in _WAIT_PARTS),
    "interactive: wait <= run [%]", "batch: wait <= run [%]", "fairness", "worst", "collapsed runs",
    "gain over FIFO [ratio]", "95 %", "worst seed", "batch over FIFO [ratio]",
    "batch max over FIFO [ratio]", "a decision, p50 [ms]", "p99 [ms]",
)  # fmt: skip
_PAST_COLUMNS: Final = (
    "policy", "interactive wait, mean [s]", "batch wait, mean [s]", "bounded slowdown [ratio]",
    "less the shipped start's [ratio]", "95 %", "verdict",
)  # fmt: skip


def _how(settings: Mapping[str, Any]) -> Iterator[str]:
    yield in_words(settings["truth"]) + ". They are the paper's proxies for what users declare."
    seeds = ", ".join(map(str, settings["seeds"]))
    yield (
        f"Rows 0.2, 0.4 and 0.5 of table I: {settings['jobs']} jobs on 50 processors, drawn again "
        f"for each seed ({seeds}); all policies meet the same arrivals. The last "
        f"{settings['unreported']} arrivals are not reported, as in the paper. Figures are means "
        "over the seeds of each seed's own statistic, the maximum too; se is the standard error "
        "of the mean, worst the worst seed. A run has collapsed if interactive jobs waited as "
        "long as under FIFO or longer. Gains are ratios of the means over all seeds, their "
        "intervals from a paired bootstrap over the seeds; they are no stable yardstick, for "
        "FIFO's wait differs by about seven tenths of itself from seed to seed."
    )
    windows = settings["windows"]
    if windows == "generated":
        yield (
            "Section VI.C: the EGEE trace is not public; a generated window for each seed has "
            "the properties that the paper reports: 6000 sequential jobs on 100 processors, 62 % "
            "shorter than 15 minutes with less than 3 % of the work. The native scheduler is sdj."
        )
    else:
        yield "Section VI.C: the traces " + ", ".join(windows) + "; the native scheduler is sdj."
    yield (
        "Rows of sarsa literal are the paper's method as printed; sarsa has our defaults (reward "
        "by density of utility, guards against starvation, little exploration). Both start from "
        "a network trained off-line on earliest deadline first, on other seeds, unless a row "
        "says otherwise; learn=False learns no more from then on. A verdict is computed from the "
        "95 % interval over the seeds or windows (Student's t)."
    )


def _calibration(pasts: Sequence[Mapping[str, Any]]) -> Iterator[Markup]:
    if not pasts:
        return
    yield heading("Calibrated by the past")
    yield prose(
        "The idea of the paper's conclusion: sarsa trained on the first half of a window, from "
        "what its own scheduler did (where the trace has no waits, from FIFO in its place), and "
        "run on the second half, beside the shipped start, which knows synthetic grids only. The "
        "last column is its mean bounded slowdown less that of the shipped start that goes on "
        "learning, with its 95 % interval from stretches of time drawn together; fewer than ten of "
        "them give none."
    )
    for past in pasts:
        place = past["trace"] or f"generated window {past['seed']}"
        yield prose(f"{place}: {past['jobs']} jobs, decided by {past['behaviour_policy']}.")
        yield table(_PAST_COLUMNS, [_past_cells(row) for row in past["rows"]])


def _past_cells(row: Mapping[str, Any]) -> list[str]:
    less = row["less_shipped"]
    figures = (row["interactive_wait_s"], row["batch_wait_s"], row["bounded_slowdown"])
    interval = " to ".join(map(shown, less["interval"] or ()))
    difference = shown(less["difference"])
    return [row["variant"], *map(shown, figures), difference, interval, less["verdict"]]


def _by_situation(rows: list[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return rows by situation, in their order."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        place = row["trace"] or ("EGEE-like" if row["row"] == WINDOW else f"Row {row['row']}")
        title = f"{place}: {row['targets']} shares, run times {row['estimates']}"
        tables.setdefault(title, []).append(row)
    return tables


def _cells(row: Mapping[str, Any]) -> list[str]:
    gain, batch = row["gain_over_fifo"] or {}, row["batch_over_fifo"] or {}
    low, high = gain.get("interval") or (None, None)
    by_class = row["overhead_by_class"]
    return [
        row["variant"],
        str(row["seeds"]),
        *(
            shown(row[f"{name}_wait_s"][part])
            for name in ("interactive", "batch")
            for part in _WAIT_PARTS
        ),
        *(shown(_percent(by_class[name]["le_1_ratio"])) for name in ("interactive", "batch")),
        shown(row["fairness"]),
        shown(row["fairness_worst"]),
        "-" if row["collapsed"] is None else str(row["collapsed"]),
        shown(gain.get("ratio")),
        "-" if low is None else f"{shown(low)} to {shown(high)}",
        shown(gain.get("worst")),
        shown(batch.get("ratio")),
        shown((row["batch_max_over_fifo"] or {}).get("ratio")),
        *(shown(_ms(row["decision_s"][part])) for part in ("p50", "p99")),
    ]


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100.0 * ratio


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds


def _tables(result: Mapping[str, Any]) -> Iterator[Markup]:
    yield from _calibration(result["calibration"])
    for title, rows in _by_situation(result["rows"]).items():
        yield heading(title)
        yield table(_COLUMNS, [_cells(row) for row in rows])


PAGE: Final = PaperPage(
    title="Perez et al. (2008), reproduced",
    cited='J. Perez, C. Germain-Renaud, B. Kégl and C. Loomis: "Utility-based Reinforcement '
    'Learning for Reactive Grids", 5th International Conference on Autonomic Computing, '
    "Chicago, 2008.",
    quick="few jobs and seeds, too small for verdicts",
    how=_how,
    drawings=lambda result: drawings(result["rows"]),
    tables=_tables,
)


# -- drawings --------------------------------------------------------------------------------------
# The paper's figures 3 to 7 redrawn, and the learning curve, from the rows of the output.

Row = Mapping[str, Any]
_SHOWN_ROW: Final = "0.2"
_ORDERS: Final = (FIFO, SJF, EDF, SARSA, LITERAL)
_LEARNERS: Final = (SARSA, FROZEN, UNTRAINED, LITERAL)
_RATIO: Final = [float(q) for q in QUANTILES]
_HOUR_S: Final = 3600.0


def drawings(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Return every figure that the rows have runs for."""
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
    """Return a cumulative distribution; values below `least` count as `least` (log axis)."""
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
    """Return the reduction of interactive waits under the learner."""
    gained = _less(_course(native, "interactive"), _course(learner, "interactive"))
    return gained._replace(label=learner["variant"])


def _less(first: Series, second: Series) -> Series:
    """Return the first less the second, where both are known."""
    at = dict(zip(second.x, second.y, strict=True))
    both = [(x, y - at[x]) for x, y in zip(first.x, first.y, strict=True) if x in at]
    return Series(first.label, [x for x, _ in both], [y for _, y in both])
