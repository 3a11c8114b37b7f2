"""The whole reproduction: which runs, and the rows and claims that come of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean
from typing import Any, Final

import msgspec

from outrider_lab.papers.automata.claims import judged
from outrider_lab.papers.automata.grid import (
    DRIFT,
    STATIONARY,
    TURNS,
    USERS,
    Case,
    Figures,
    Size,
    cases,
)
from outrider_lab.papers.automata.polling import FORGET
from outrider_lab.reporting.claims import counted, standard_error
from outrider_lab.running.run_all import by_seed
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.run_all.Study`; a row is a case.

    Args:
        size: `outrider_lab.papers.automata.grid.FULL` or `QUICK`.
        seeds: 0 or more; of arrivals and of the schedulers' chance.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[Case, int]]:
        """Return every case, seed by seed."""
        return [(case, seed) for seed in self.seeds for case in cases(self.size)]

    def spec_of(self, row: Case, seed: int) -> RunSpec:
        """Return the run of a case with a seed."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Mapping[Case, Mapping[int, Figures]]) -> dict[str, Any]:
        """Return rows and claims; a row has the seeds that did not fail."""
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
    """Return the effective settings; in the users' experiment without those it sets itself."""
    policy = case.treatment.policy_spec.make(0, case.treatment.scheme)
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    return settings


# -- specs -----------------------------------------------------------------------------------------
# From a case and a seed to the run that measures it.

_PACKAGE: Final = __name__.rpartition(".")[0]


def spec_of(case: Case, size: Size, seed: int) -> RunSpec:
    """Return the run; the seed is of the arrivals and of the scheduler's chance."""
    if case.experiment == STATIONARY:
        return _stationary(case, size, seed)
    return _polls(case, size, seed) if case.experiment == USERS else _nodes(case, size, seed)


def _stationary(case: Case, size: Size, seed: int) -> RunSpec:
    options = (
        ("scheme", case.treatment.scheme),
        ("may_lock", case.treatment.scheme.startswith("L_R-I")),
        ("steps", size.steps),
        ("repeats", size.repeats),
    )
    drawn = DrawnWorkload("penalties", seed)
    work = f"{_PACKAGE}.nodes:play_stationary"
    return RunSpec(work, drawn, case.treatment.policy_spec, seed, options)


def _polls(case: Case, size: Size, seed: int) -> RunSpec:
    policy = case.treatment.policy_spec
    if policy.policy != TURNS:
        settings = {**dict(policy.settings), "forget_user_s": FORGET}
        policy = PolicySpec.of(policy.policy, settings, policy.preset)
    drawn = DrawnWorkload("polls", seed, (("pattern", case.pattern), ("polls", size.polls)))
    options = (("scheme", case.treatment.scheme), ("poll", case.poll))
    return RunSpec(f"{_PACKAGE}.polling:play_polls", drawn, policy, seed, options)


def _nodes(case: Case, size: Size, seed: int) -> RunSpec:
    options = (("nodes", size.nodes), ("jobs", size.jobs), ("permuted", case.experiment == DRIFT))
    drawn = DrawnWorkload("nodes", seed, options)
    shared = (("scheme", case.treatment.scheme), ("schedulers", case.treatment.schedulers))
    work = f"{_PACKAGE}.nodes:play_on_nodes"
    return RunSpec(work, drawn, case.treatment.policy_spec, seed, shared)


# -- rows ------------------------------------------------------------------------------------------
# From runs to rows: means over the seeds, beside each its standard error and the worst seed.

Row = Mapping[str, Any]
_MORE_IS_BETTER: Final = {"p_best", "capacity_correlation", "within_mean_ratio"}


def row_of(case: Case, settings: Mapping[str, Any], runs: Sequence[Figures]) -> dict[str, Any]:
    """Return a row of the output.

    Args:
        case: what ran.
        settings: of its policy, as they took effect.
        runs: what each seed's run measured, at least one.

    Returns:
        experiment, scheme, users (their pattern) and poll, policy, preset, schedulers, settings,
        runs; every figure as ``{"mean", "se", "worst"}``, curves as means over the seeds.
    """
    treatment = case.treatment
    out: dict[str, Any] = {
        "experiment": case.experiment,
        "scheme": treatment.scheme,
        "users": case.pattern or None,
        "poll": case.poll or None,
        "policy": treatment.policy,
        "preset": treatment.preset,
        "schedulers": treatment.schedulers,
        "settings": dict(settings),
        "runs": len(runs),
    }
    for name, first in runs[0].items():
        if isinstance(first, list):
            columns = zip(*(run[name] for run in runs), strict=True)
            out[name] = [fmean(column) for column in columns]
        else:
            out[name] = _summed_up(name, [run[name] for run in runs])
    return out


def _summed_up(name: str, values: Sequence[float]) -> dict[str, float | None]:
    known = [value for value in values if isfinite(value)]
    if not known:
        return {"mean": None, "se": None, "worst": None}
    worst = min if name in _MORE_IS_BETTER else max
    return {"mean": fmean(known), "se": standard_error(known), "worst": worst(known)}
