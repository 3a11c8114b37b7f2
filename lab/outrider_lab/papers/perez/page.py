"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider.report.page import heading, prose, table
from outrider.simulation.truth_told import in_words
from outrider_lab.papers.perez.drawings import drawings
from outrider_lab.papers.perez.grid import WINDOW
from outrider_lab.reporting.page import shown
from outrider_lab.reporting.paper_page import PaperPage

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
        f"Rows 0.2, 0.4 and 0.5 of table I: {settings['jobs']} jobs on 50 processors, drawn anew "
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
            "what the paper tells of it: 6000 sequential jobs on 100 processors, 62 % shorter "
            "than 15 minutes with less than 3 % of the work. The native scheduler is sdj."
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
    """Rows by situation, in their order."""
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
