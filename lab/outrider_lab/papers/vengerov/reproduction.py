"""The whole reproduction: which runs, and the rows and claims that come of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outrider.simulation.estimates import EXACT
from outrider.simulation.truth_told import truth_told
from outrider_lab.papers.vengerov.claims import judged
from outrider_lab.papers.vengerov.grid import Size, Treatment, treatments
from outrider_lab.papers.vengerov.machine_run import spec_of
from outrider_lab.papers.vengerov.rows import Report, row_of
from outrider_lab.reporting.verdicts import counted
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.study import by_seed


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.study.Study`; a row is a treatment.

    Args:
        size: `outrider_lab.papers.vengerov.grid.FULL` or `QUICK`.
        seeds: one a run, below 10,000; training takes those from 10,000 on.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[Treatment, int]]:
        """Every treatment, seed by seed."""
        return [(treatment, seed) for seed in self.seeds for treatment in treatments(self.size)]

    def spec_of(self, row: Treatment, seed: int) -> RunSpec:
        """The run of a treatment with a seed."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Mapping[Treatment, Mapping[int, Report]]) -> dict[str, Any]:
        """Rows and claims; a row has the seeds that did not fail."""
        claims = judged(self.size, by_seed(results, self.seeds))
        return {
            "paper": "vengerov",
            "settings": {
                "quick": self.size.quick,
                "seeds": list(self.seeds),
                "rates": list(self.size.rates),
                "train_steps": self.size.train_steps,
                "test_steps": self.size.test_steps,
                "class_source": "none",
                "truth": truth_told("none", EXACT),
            },
            "rows": [
                row_of(treatment, results[treatment])
                for treatment in treatments(self.size)
                if treatment in results
            ],
            "claims": claims,
            "verdicts": counted(claims),
        }
