"""The whole reproduction: which runs, and the rows and claims that come of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from outrider.simulation.estimates import EXACT, oracle_used
from outrider_lab.papers.vengerov.grid import (
    BAD,
    BUSY,
    CELLS,
    CONTINUOUS,
    FROZEN,
    FULL,
    ONE_OR_BOTH,
    OVER,
    PREEMPT,
    ZERO,
    Scene,
    Size,
    Treatment,
    aggressive,
    beyond,
    learned,
    none,
    replan,
    treatments,
)
from outrider_lab.papers.vengerov.machine_run import spec_of
from outrider_lab.reporting import claims
from outrider_lab.reporting.claims import (
    Claim,
    Stated,
    Statistic,
    counted,
    least,
    less,
    ratio,
    standard_error,
)
from outrider_lab.running.run_all import by_seed
from outrider_lab.running.run_spec import RunSpec

# -- rows ------------------------------------------------------------------------------------------
# Rows of the output: figures of a treatment over the seeds.

Report = Mapping[str, Any]
Seed = Mapping[Treatment, Report]
"""Reports of the treatments with one seed."""


def row_of(treatment: Treatment, runs: Mapping[int, Report]) -> dict[str, Any]:
    """Return a treatment's row of the report, with productivity, windows and rule outputs.

    Args:
        treatment: what ran.
        runs: by seed, at least one.
    """
    reports = list(runs.values())
    row: dict[str, Any] = {"variant": str(treatment), "label": treatment.label}
    row |= treatment.scene._asdict() | {"policy": treatment.policy} | treatment.deeds._asdict()
    row |= {"inputs": treatment.inputs or None, "start": treatment.start}
    row |= {"beyond": treatment.beyond, "runs": len(reports)}
    is_linear = treatment.scene.shape == "linear"
    row["plain"] = treatment.start == ZERO and is_linear and not treatment.beyond
    row["utility_k"] = _summed_up([report["utility_k"] for report in reports])
    for name in ("utilisation_ratio", "productivity", "completed"):
        row[name] = fmean(report[name] for report in reports)
    windows = zip(*(report["by_window"] for report in reports), strict=True)
    row["by_window"] = [fmean(values) for values in windows]
    outputs = [report["outputs"] for report in reports]
    trained = None not in outputs
    row["outputs"] = [fmean(o) for o in zip(*outputs, strict=True)] if trained else None
    return row


def _summed_up(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "mean": fmean(values),
        "se": standard_error(values),
        "least": min(values),
        "most": max(values),
    }


# -- reproduction ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.run_all.Study`; a row is a treatment.

    Args:
        size: `outrider_lab.papers.vengerov.grid.FULL` or `QUICK`.
        seeds: one a run, below 10,000; training takes those from 10,000 on.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[Treatment, int]]:
        """Return every treatment, seed by seed."""
        return [(treatment, seed) for seed in self.seeds for treatment in treatments(self.size)]

    def spec_of(self, row: Treatment, seed: int) -> RunSpec:
        """Return the run of a treatment with a seed."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Mapping[Treatment, Mapping[int, Report]]) -> dict[str, Any]:
        """Return rows and claims; a row has the seeds that did not fail."""
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
                "truth": oracle_used("none", EXACT),
            },
            "rows": [
                row_of(treatment, results[treatment])
                for treatment in treatments(self.size)
                if treatment in results
            ],
            "claims": claims,
            "verdicts": counted(claims),
        }


# -- claims ----------------------------------------------------------------------------------------
# Every claim of the paper, and the goals of ours, judged on ratios paired by seed.

LEAST_RUNS: Final = 10
"""Fewer decide nothing: the paper took 50."""
LATE_WINDOWS: Final = slice(10, None)
"""Windows in which a value function that began wrong must have recovered."""


def judged(size: Size, seeds: Mapping[int, Seed]) -> list[dict[str, Any]]:
    """Return every claim with what was measured, its interval over the seeds, and the verdict."""
    too_small = None
    if size.quick:
        too_small = f"{size.test_steps:,} steps are too few; {FULL.test_steps:,} decide"
    elif len(seeds) < LEAST_RUNS:
        too_small = f"{len(seeds)} runs are too few; {LEAST_RUNS} decide, the paper took 50"
    return claims.judged([*_of_the_paper(size), *_of_ours()], seeds.values(), too_small)


# -- statistics ---------------------------------------------------------------------------------


def _of(treatment: Treatment, name: str) -> Statistic[Seed]:
    return lambda seed: float(seed[treatment][name])


def _ratio(ours: Treatment, theirs: Treatment, name: str = "utility_k") -> Statistic[Seed]:
    return ratio(_of(ours, name), _of(theirs, name))


def _late(ours: Treatment, theirs: Treatment) -> Statistic[Seed]:
    """Return ratio of utility in the second half of the run."""

    def late(treatment: Treatment) -> Statistic[Seed]:
        return lambda seed: float(sum(seed[treatment]["by_window"][LATE_WINDOWS]))

    return ratio(late(ours), late(theirs))


def _rule(treatment: Treatment, more: str, fewer: str) -> Statistic[Seed]:
    """Return the difference of the outputs of two rules."""
    places = {f"{a}{b}{c}": n for n, (a, b, c) in enumerate(
        (a, b, c) for a in "SL" for b in "SL" for c in "SL")}  # fmt: skip

    def output(rule: str) -> Statistic[Seed]:
        return lambda seed: float(seed[treatment]["outputs"][places[rule]])

    return less(output(more), output(fewer))


# -- the paper's claims -------------------------------------------------------------------------


def _of_the_paper(size: Size) -> Iterator[Stated[Seed]]:
    both, plain = learned(3), none()
    over, preempt = learned(3, deeds=OVER), learned(3, deeds=PREEMPT)
    yield Stated(
        Claim("the best learned policy does preempt and shrink", "5, figure 2", "highest bar",
              "learned both over the better of learned over and learned preempt", 1.0),
        least([_ratio(both, over), _ratio(both, preempt)]),
    )  # fmt: skip
    yield Stated(
        Claim("either deed alone is better than none", "5, figure 2", "higher bars",
              "the worse of learned over and learned preempt over none", 1.0),
        least([_ratio(over, plain), _ratio(preempt, plain)]),
    )  # fmt: skip
    for label, deeds in ONE_OR_BOTH.items():
        yield Stated(
            Claim(f"learned beats aggressive ({label})", "5, figure 2", "higher bar",
                  f"learned {label}, 3 inputs, over aggressive {label}, rate .1", 1.0),
            _ratio(learned(3, deeds=deeds), aggressive(deeds=deeds)),
        )  # fmt: skip
    yield Stated(
        Claim("who uses the machine most is not the most productive", "5, figure 3",
              "always oversubscribing has the highest utilisation, the learned policy the highest "
              "productivity",
              "utilisation of aggressive over, over that of learned both, rate .1", 1.0),
        _ratio(aggressive(deeds=OVER), both, "utilisation_ratio"),
    )  # fmt: skip
    yield Stated(
        Claim("utilisation comes arbitrarily close to 1 with enough arrivals", "5", "close to 1",
              "utilisation of learned both, 3 inputs, at the highest rate, over that at .1", 1.0),
        _ratio(learned(3, Scene(rate=size.rates[-1])), both, "utilisation_ratio"),
    )  # fmt: skip
    yield from _of_the_curve(size)
    yield from _of_shapes_and_learning(both)


def _of_the_curve(size: Size) -> Iterator[Stated[Seed]]:
    rates = size.rates
    ours = [learned(3, Scene(rate=rate)) for rate in rates]
    yield Stated(
        Claim("the learned policy's productivity rises over all arrival rates", "5, figure 4",
              "rises", "least ratio of its utility at a rate to that at the next lower", 1.0),
        least(_ratio(more, fewer) for fewer, more in pairwise(ours)),
    )  # fmt: skip
    yield Stated(
        Claim("at high loads the productivity of none falls", "5, figure 4", "decreases",
              "none at the highest rate over none at .1; hopeless jobs stay in the queue", None,
              1.0),
        _ratio(none(Scene(rate=rates[-1])), none()),
    )  # fmt: skip
    lull, rush = (none(Scene(rate=rate, drop_hopeless=True)) for rate in (0.1, rates[-1]))
    yield Stated(
        Claim("at high loads the productivity of none falls, if hopeless jobs are withdrawn",
              "5, figure 4", "decreases (the paper does not say which rule held)",
              "the same, where users withdraw what can earn nothing any more", None, 1.0),
        _ratio(rush, lull),
    )  # fmt: skip
    yield Stated(
        Claim("the benefit grows with the arrival rate", "5, figure 4", "increases",
              "learned both over none, at .2 less at .1", 0.0),
        less(_ratio(learned(3, BUSY), none(BUSY)), _ratio(learned(3), none())),
    )  # fmt: skip


def _of_shapes_and_learning(both: Treatment) -> Iterator[Stated[Seed]]:
    gain = {
        shape: _ratio(learned(3, Scene(shape=shape)), none(Scene(shape=shape)))
        for shape in ("concave", "linear", "convex")
    }
    yield Stated(
        Claim("the gain grows as the utility function becomes more convex", "5, figure 5", "grows",
              "the lesser of: gain linear less concave, gain convex less linear", 0.0),
        least([less(gain["linear"], gain["concave"]), less(gain["convex"], gain["linear"])]),
    )  # fmt: skip
    for what, more, fewer in (
        ("expected unit utility", "LSS", "SSS"),
        ("time until the next completion", "LLS", "LSS"),
    ):
        yield Stated(
            Claim(f"a machine's value rises with the {what}", "5, learned rules", "rises",
                  f"rule {more} less rule {fewer} after training, rate .1", 0.0),
            _rule(both, more, fewer),
        )  # fmt: skip
    yield Stated(
        Claim("a machine's value falls with its idle CPUs", "5, learned rules", "falls",
              "rule LLS less rule LLL after training, rate .1", 0.0),
        _rule(both, "LLS", "LLL"),
    )  # fmt: skip
    bad, frozen = (learned(3, BUSY, start=start) for start in (BAD, FROZEN))
    yield Stated(
        Claim("a value function that prefers bad states comes round by itself", "3.4",
              "values come down to their real levels",
              "second half of the run: bad start over trained from 0, rate .2", 0.98),
        _late(bad, learned(3, BUSY)),
    )  # fmt: skip
    yield Stated(
        Claim("it is learning that brings it round", "3.4", "some period of learning",
              "second half of the run: bad start over the same without learning, rate .2", 1.0),
        _late(bad, frozen),
    )  # fmt: skip
    yield Stated(
        Claim("utilities that rise with waiting make sure that every job gets its turn", "6",
              "every submitted job gets executed",
              "jobs completed under rising utilities over those under falling ones, rate .1", 1.0),
        _ratio(learned(3, Scene(shape="rising")), both, "completed"),
    )  # fmt: skip
    yield Stated(
        Claim("productivity in thousands of utility units", "5, figure 2", "bars of the figure",
              "learned both, 3 inputs, rate .1, thousands",
              incomparable="480 is the most the machine has, but jobs at rate .1 offer 180 at "
              "most: the figure's units cannot be those of the text"),
        _of(both, "utility_k"),
    )  # fmt: skip


# -- beyond the paper ---------------------------------------------------------------------------


def _of_ours() -> Iterator[Stated[Seed]]:
    for rate, goal in ((0.1, 1.11), (0.2, 1.70)):
        yield Stated(
            Claim(f"beyond the paper: learned both is {goal:g} of none at rate {rate:g}", "-", "-",
                  f"learned both, 3 inputs, over none, rate {rate:g}", goal),
            _ratio(learned(3, Scene(rate=rate)), none(Scene(rate=rate))),
        )  # fmt: skip
    for scene in CELLS:
        kind = "real-valued time" if scene.steps == CONTINUOUS else "whole steps"
        for ours, theirs in (
            (learned(5, scene), aggressive(scene)),
            (learned(5, scene), replan(scene)),
            (beyond(scene), replan(scene)),
        ):
            yield Stated(
                Claim(f"beyond the paper: {ours.label}, beats {theirs.policy} "
                      f"(rate {scene.rate:g}, {kind})", "-", "-",
                      f"{ours.label}, over {theirs.label}", 1.0),
                _ratio(ours, theirs),
            )  # fmt: skip
