"""The whole reproduction: which runs, and the rows and claims that come of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.formats.swf.reading import read_swf
from outrider.simulation.generators.grids.perez import PROXY
from outrider.simulation.truth_told import truth_told
from outrider_lab.papers.perez import calibration, grid_run
from outrider_lab.papers.perez.claims import judged
from outrider_lab.papers.perez.figures import RunFigures
from outrider_lab.papers.perez.grid import (
    EXACT,
    WINDOW,
    Row,
    Situation,
    Size,
    points,
    policies_of,
    situations,
)
from outrider_lab.papers.perez.measures import Unit
from outrider_lab.papers.perez.rows import row_of
from outrider_lab.reporting.verdicts import counted
from outrider_lab.running.run_spec import PolicySpec, RunSpec

Results = Mapping[Row, Mapping[int, Any]]
"""What runs brought, by row and seed."""
Figures = Mapping[Situation, Mapping[int, Mapping[PolicySpec, RunFigures]]]

_MOST_CALIBRATED: Final = 4
"""Generated windows on which calibration is shown; of files all are."""


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.study.Study`.

    Args:
        size: `outrider_lab.papers.perez.grid.FULL` or `QUICK`.
        seeds: of the arrivals; the policies' chance has the same seed.
        traces: workload files that take the place of the generated windows of section VI.C.
    """

    size: Size
    seeds: range
    traces: tuple[str, ...] = ()

    def points(self) -> list[tuple[Row, int]]:
        """Every row, seed by seed, then the calibrations."""
        return [*points(self.size, self.seeds, self.traces), *self._calibrations()]

    def _calibrations(self) -> Iterator[tuple[Row, int]]:
        drawn = self.seeds[:1] if self.traces else self.seeds[:_MOST_CALIBRATED]
        for situation in situations(self.size, self.traces):
            if situation.row == WINDOW:
                yield from ((Row(situation, None), seed) for seed in drawn)

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """The run of a row with a seed."""
        if row.policy is None:
            return calibration.spec_of(row.situation, self.size, seed)
        return grid_run.spec_of(row.situation, row.policy, self.size, seed)

    def _truth_told(self) -> list[str]:
        """What policies are told of the truth in some run: the paper's proxies."""
        rules = dict.fromkeys(one.estimates for one in situations(self.size, self.traces))
        told = (truth_told(PROXY.source, rule) for rule in rules)
        return list(dict.fromkeys(sentence for sentences in told for sentence in sentences))

    def check_traces(self) -> None:
        """Read the user's files. Raises `TraceError` before a long run, not after it."""
        for trace in self.traces:
            read_swf(Path(trace), class_by=PROXY)

    def sum_up(self, results: Results) -> dict[str, Any]:
        """Rows, claims and calibrations; a row has the seeds that did not fail."""
        figures = _figures(results)
        there = list(situations(self.size, self.traces))
        of_rows, of_windows = _units(figures)
        window_targets = next(one.targets for one in there if one.row == WINDOW)
        claims = judged(self.size, of_rows, of_windows, window_targets)
        return {
            "paper": "perez",
            "settings": {
                "quick": self.size.quick,
                "seeds": list(self.seeds),
                "jobs": self.size.jobs,
                "unreported": self.size.unreported,
                "windows": list(self.traces) or "generated",
                "class_source": PROXY.source,
                "truth": self._truth_told(),
            },
            "rows": [
                row_of(situation, policy, figures[situation], _settings(results, policy))
                for situation in there
                for policy in policies_of(situation)
                if Row(situation, policy) in results
            ],
            "claims": claims,
            "verdicts": counted(claims),
            "calibration": sorted(
                (one for row, found in results.items() if not row.policy for one in found.values()),
                key=lambda one: (one["trace"] or "", one["seed"]),
            ),
        }


def _figures(results: Results) -> Figures:
    """Figures of runs by situation, seed and policy."""
    figures: dict[Situation, dict[int, dict[PolicySpec, RunFigures]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (situation, policy), of_row in results.items():
        if policy is None:
            continue
        for seed, result in of_row.items():
            found = msgspec.convert(result["figures"], RunFigures)
            figures[situation][seed][policy] = found
    return figures


def _settings(results: Results, policy: PolicySpec) -> dict[str, Any]:
    """The settings of a policy as they took effect in one of its runs."""
    of_row = next(of_row for row, of_row in results.items() if row.policy == policy)
    settings: dict[str, Any] = next(iter(of_row.values()))["settings"]
    return settings


def _units(figures: Figures) -> tuple[dict[int, Unit], dict[str, Unit]]:
    """What claims are judged by: runs with exact estimates, by seed and by window."""
    seeds: dict[int, dict[tuple[str, str, PolicySpec], RunFigures]] = defaultdict(dict)
    windows: dict[str, dict[tuple[str, str, PolicySpec], RunFigures]] = defaultdict(dict)
    for situation, by_seed in figures.items():
        if situation.estimates != EXACT:
            continue
        for seed, by_policy in by_seed.items():
            is_window = situation.row == WINDOW
            unit = windows[situation.trace or str(seed)] if is_window else seeds[seed]
            for policy, found in by_policy.items():
                unit[situation.row, situation.targets, policy] = found
    return dict(seeds), dict(windows)
