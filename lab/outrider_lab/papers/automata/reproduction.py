"""The whole reproduction: which runs, and the rows and claims that come of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from outrider_lab.papers.automata.claims import judged
from outrider_lab.papers.automata.grid import Case, Figures, Size, cases
from outrider_lab.papers.automata.rows import row_of
from outrider_lab.papers.automata.specs import spec_of
from outrider_lab.reporting.verdicts import counted
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.study import by_seed


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.study.Study`; a row is a case.

    Args:
        size: `outrider_lab.papers.automata.grid.FULL` or `QUICK`.
        seeds: 0 or more; of arrivals and of the schedulers' chance.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[Case, int]]:
        """Every case, seed by seed."""
        return [(case, seed) for seed in self.seeds for case in cases(self.size)]

    def spec_of(self, row: Case, seed: int) -> RunSpec:
        """The run of a case with a seed."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Mapping[Case, Mapping[int, Figures]]) -> dict[str, Any]:
        """Rows and claims; a row has the seeds that did not fail."""
        measured = {case.key: of_case for case, of_case in results.items()}
        claims = judged(self.size.quick, by_seed(measured, self.seeds))
        return {
            "paper": "automata",
            "settings": {
                "seeds": list(self.seeds),
                **self.size._asdict(),
                "class_source": "none",
                "truth": [],
            },
            "rows": [
                row_of(case, _settings(case), list(results[case].values()))
                for case in cases(self.size)
                if case in results
            ],
            "claims": claims,
            "verdicts": counted(claims),
        }


def _settings(case: Case) -> dict[str, Any]:
    """As they take effect; of the users' experiment without what the experiment itself asks for."""
    policy = case.treatment.policy_spec.make(0, case.treatment.scheme)
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    return settings
