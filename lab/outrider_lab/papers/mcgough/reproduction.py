"""The whole reproduction: runs on all years, rows, choices and claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outrider_lab.papers.mcgough.choices import Choices, choose
from outrider_lab.papers.mcgough.claims import judged
from outrider_lab.papers.mcgough.grid import RANDOM, Size, policies, spec_of
from outrider_lab.papers.mcgough.rows import Report, Year, row_of, year_figures
from outrider_lab.reporting.verdicts import counted
from outrider_lab.running.run_spec import PolicySpec, RunSpec

Reports = Mapping[PolicySpec, Mapping[int, Report]]
"""Run reports by policy and year."""


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.study.Study`; a row is a policy.

    Args:
        size: `outrider_lab.papers.mcgough.grid.FULL` or `QUICK`.
        seeds: one a year; the policies' chance has the same seed.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[PolicySpec, int]]:
        """Every policy, year by year, random first."""
        return [(policy, seed) for seed in self.seeds for policy in policies(self.size)]

    def spec_of(self, row: PolicySpec, seed: int) -> RunSpec:
        """The run of a policy in a year."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Reports) -> dict[str, Any]:
        """Rows and claims; a row has the years that did not fail."""
        size, years = self.size, _years(results)
        rows = {}
        for policy in policies(size):
            of_years = [year[policy] for year in years.values() if policy in year]
            if of_years:
                report = next(iter(results[policy].values()))
                rows[policy] = row_of(policy, of_years, report)
        choices = choose(size, rows)
        claims = judged(size, choices, years)
        return {
            "paper": "mcgough",
            "settings": {
                "quick": size.quick,
                "seeds": list(self.seeds),
                "campus": dict(size.campus),
                "epsilons": size.epsilons,
                "sigmas": size.sigmas,
                "choices": _named(choices),
                "class_source": "none",
                "truth": [],
            },
            "rows": list(rows.values()),
            "claims": claims,
            "verdicts": counted(claims),
        }


def _years(results: Reports) -> dict[int, Year]:
    """Figures by year, of years in which random ran: all others are held against it."""
    random = results.get(RANDOM, {})
    return {
        seed: {
            policy: year_figures(of_years[seed], random[seed])
            for policy, of_years in results.items()
            if seed in of_years
        }
        for seed in sorted(random)
    }


def _named(choices: Choices) -> dict[str, dict[str, float]]:
    """The epsilon chosen for every case and level."""
    return {
        case: {level: dict(policy.settings)["epsilon"] for level, policy in chosen.items()}
        for case, chosen in choices.items()
    }
