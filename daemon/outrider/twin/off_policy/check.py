"""Off-policy check of one candidate: estimates, or reasons for refusing them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import copysign, log, sqrt
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from outrider.model.student import student_quantile
from outrider.twin.off_policy.starts import Floats, Ints, StartTable

# -- propensity check ------------------------------------------------------------------------------
# Check whether starts fell on machines with the probabilities that the incumbent claims.
#
# An estimate by weights divides by those probabilities, so wrong ones make it useless. Under the
# claim the starts on a machine are a sum of independent draws: its count is compared with its
# expectation.

BOUND: Final = 4.0
"""Maximal |z| of a group that is accepted as chance: one in 16,000."""


class PropensityCheck(msgspec.Struct, frozen=True):
    """Deviation of counts from their expectation.

    Attributes:
        groups: z by machine group: standard errors by which starts there exceed expectation.
        groups_bound: maximal |z| of a group.
        machine: the machine with the greatest |z|; None without starts.
        machine_z: its z.
        machines_bound: maximal |z| of a machine: the probability of `groups_bound`, divided by
            the number of machines (Bonferroni).
    """

    groups: Mapping[str, float]
    groups_bound: float
    machine: str | None
    machine_z: float
    machines_bound: float

    def failures(self) -> list[str]:
        """Return a sentence for each contradiction to the claim; empty if there is none."""
        found = [
            f"machine group {name}: z = {z:+.1f}, expected at most {self.groups_bound:g}"
            for name, z in self.groups.items()
            if abs(z) > self.groups_bound
        ]
        if abs(self.machine_z) > self.machines_bound:
            found.append(
                f"machine {self.machine}: z = {self.machine_z:+.1f}, expected at most "
                f"{self.machines_bound:.1f}"
            )
        return found


class ChoiceCounts:
    """Counter of choices between alternatives, with the expectation of each."""

    def __init__(self) -> None:
        self._chosen: Counter[int] = Counter()
        self._open: Counter[int] = Counter()
        self._expected: defaultdict[int, float] = defaultdict(float)
        self._variance: defaultdict[int, float] = defaultdict(float)

    def add(self, chosen: int, chances: Mapping[int, float]) -> None:
        """Count a choice; `chances` are the probabilities of all alternatives, including it."""
        if len(chances) < 2:  # no alternative, so no information
            return
        self._chosen[chosen] += 1
        for alternative, chance in chances.items():
            self._open[alternative] += 1
            self._expected[alternative] += chance
            self._variance[alternative] += chance * (1.0 - chance)

    def add_uniform(self, chosen: int, alternatives: Collection[int]) -> None:
        """Count a choice between equally likely alternatives."""
        self.add(chosen, dict.fromkeys(alternatives, 1.0 / len(alternatives)))

    def z(self) -> dict[int, float]:
        """Return standard errors by which each was chosen too often (+) or too rarely (-).

        The signed root of the deviance of a binomial count with half a count of continuity, which
        is nearer to normal in the tails of small counts than (observed - expected) / error is
        (McCullagh and Nelder, "Generalized Linear Models", 1989, section 2.4.3), scaled to the
        variance of the unequal chances.
        """
        return {
            which: _signed_root(self._chosen[which], expected, self._open[which])
            * sqrt(expected * (1.0 - expected / self._open[which]) / self._variance[which])
            for which, expected in self._expected.items()
        }


def _signed_root(observed: int, expected: float, of: int) -> float:
    beyond = abs(observed - expected) - 0.5
    if beyond <= 0.0:
        return 0.0
    sign = copysign(1.0, observed - expected)
    count = expected + sign * beyond
    own = count * log(count / expected)
    rest = (of - count) * log((of - count) / (of - expected))
    return sign * sqrt(2.0 * (own + rest))


def checked(
    groups: ChoiceCounts,
    machines: ChoiceCounts,
    group_names: Mapping[int, str],
    machine_names: Mapping[int, str],
) -> PropensityCheck:
    """Return the check of all counted choices; names are by number."""
    of_machines = machines.z()
    worst = max(of_machines, key=lambda which: abs(of_machines[which]), default=None)
    tail = NormalDist().cdf(-BOUND) / max(1, len(of_machines))
    return PropensityCheck(
        {group_names[which]: z for which, z in sorted(groups.z().items())},
        BOUND,
        None if worst is None else machine_names[worst],
        0.0 if worst is None else of_machines[worst],
        -NormalDist().inv_cdf(tail),
    )


# -- estimates -------------------------------------------------------------------------------------
# Estimates of a candidate's effect, by weights: SNIPS and DR, with intervals over clusters.
#
# Swaminathan and Joachims, "The Self-Normalized Estimator for Counterfactual Learning", NIPS 2015;
# Dudik, Langford and Li, "Doubly Robust Policy Evaluation and Learning", ICML 2011.

_FOLDS: Final = 5
_PRIOR_N: Final = 5.0
"""Starts of the coarser share that are added to the finer one, as a prior."""
_HOURS: Final = 24


class Estimate(msgspec.Struct, frozen=True):
    """Value with its confidence interval."""

    value: float
    low: float
    high: float


class Estimates(NamedTuple):
    """Estimates for one candidate.

    Attributes:
        incumbent: share of starts whose runs completed.
        candidate: the same, if the candidate had chosen the machine of one start at a time (DR).
        difference: candidate less incumbent, by DR.
        snips_difference: the same by SNIPS, which needs no model.
    """

    incumbent: Estimate
    candidate: Estimate
    difference: Estimate
    snips_difference: Estimate


def effective_n(weights: Floats) -> float:
    """Return the effective sample size, (sum w)^2 / sum w^2 (Kish 1965); 0 without weights."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def completion_shares(table: StartTable) -> Floats:
    """Return (starts, groups) the share of runs that complete at the hour of each start.

    Cross-fitted: the share for a start uses only starts of other days, one day in five left out at
    a time. A group's hour has few starts: its share is shrunk towards the group's, and that towards
    the site's.
    """
    out = np.zeros((len(table), table.groups_n))
    fold = table.day % _FOLDS
    for left_out in range(_FOLDS):
        own, others = fold == left_out, fold != left_out
        shape = (table.groups_n, _HOURS)
        seen, good = np.zeros(shape), np.zeros(shape)
        at = table.group[others], table.hour[others]
        np.add.at(seen, at, 1.0)
        np.add.at(good, at, table.completed[others])
        site = (good.sum() + 1.0) / (seen.sum() + 2.0)
        group = (good.sum(axis=1) + _PRIOR_N * site) / (seen.sum(axis=1) + _PRIOR_N)
        share = (good + _PRIOR_N * group[:, None]) / (seen + _PRIOR_N)
        out[own] = share[:, table.hour[own]].T
    return out


def estimated(table: StartTable, clusters: Ints, level: float) -> Estimates:
    """Estimate what a candidate would have changed.

    Args:
        table: the starts.
        clusters: (starts,) number of the cluster of each.
        level: coverage probability of the intervals.

    Raises:
        ValueError: there are fewer than two clusters, or all weights are 0.
    """
    completed, weights, by_policy = table.completed, table.weights, table.by_policy
    model = completion_shares(table)
    surprise = completed - model[np.arange(len(table)), table.group]
    moved = ((by_policy - table.by_chance) * model).sum(axis=1)
    difference = moved + (weights - 1.0) * surprise
    candidate = (by_policy * model).sum(axis=1) + weights * surprise
    mean_weight = float(weights.mean())
    if not mean_weight:
        raise ValueError("all weights are 0")
    mean = float(completed.mean())
    snips = float((weights * completed).mean()) / mean_weight
    influence = weights * (completed - snips) / mean_weight - (completed - mean)
    return Estimates(
        _mean(completed, clusters, level),
        _mean(candidate, clusters, level),
        _mean(difference, clusters, level),
        _interval(snips - mean, influence, clusters, level),
    )


def _mean(values: Floats, clusters: Ints, level: float) -> Estimate:
    mean = float(values.mean())
    return _interval(mean, values - mean, clusters, level)


def _interval(value: float, influence: Floats, clusters: Ints, level: float) -> Estimate:
    """Return the interval by the cluster-robust error of a mean (Liang and Zeger 1986)."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=influence)
    n = len(sums)
    if n < 2:
        raise ValueError("an interval needs two clusters")
    error = sqrt(n / (n - 1) * float((sums**2).sum())) / len(influence)
    half = student_quantile((1.0 + level) / 2.0, n - 1) * error
    return Estimate(value, value - half, value + half)


# -- check -----------------------------------------------------------------------------------------

MIN_EFFECTIVE_N: Final = 100.0
"""Minimal effective sample size for an estimate."""
MIN_CLUSTERS: Final = 5
"""Minimal number of clusters for a valid interval."""
MAX_OUTSIDE_RATIO: Final = 0.01
"""Maximal share of starts on machines that, by the record, were not free for the job."""
BATCHES: Final = "batches"
DAYS: Final = "days"


class OffPolicyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Off-policy check of one candidate from recorded starts, or the reasons for refusing it.

    Estimates are of one step: the candidate chooses the machine of one start, and all else stays
    the same. Shares are of starts whose runs completed; the others were evicted or killed.

    Attributes:
        policy: the candidate.
        incumbent: the policy that chose; None: not known.
        level: coverage probability of the intervals.
        refused: reasons for which there is no estimate, as sentences; empty if there is one.
        starts_n: starts whose runs ended, and which the candidate would make, too.
        running_n: starts whose runs continued at the end of the record; they are left out.
        outside_n: starts where, by the record, the job could not start; they are left out.
        acted_n: starts of jobs on which Outrider acted; they are left out.
        silent_n: starts that the candidate would not make, by its decisions on record: it deferred
            the job, had not decided yet, or named a group that was full; they are left out.
        effective_n: effective sample size of the weights; None where there are none.
        mean_weight: mean weight; its expectation is 1.
        clusters: unit of the intervals, `BATCHES` or `DAYS`: whichever are fewer.
        clusters_n: number of clusters.
        propensities: whether the starts agree with the incumbent's probabilities.
        incumbent_ratio, candidate_ratio: shares under both.
        difference: candidate less incumbent, doubly robust.
        snips_difference: the same by the self-normalised weights alone.
    """

    policy: str
    incumbent: str | None
    level: float
    refused: tuple[str, ...] = ()
    starts_n: int = 0
    running_n: int = 0
    outside_n: int = 0
    acted_n: int = 0
    silent_n: int = 0
    effective_n: float | None = None
    mean_weight: float | None = None
    clusters: str = ""
    clusters_n: int = 0
    propensities: PropensityCheck | None = None
    incumbent_ratio: Estimate | None = None
    candidate_ratio: Estimate | None = None
    difference: Estimate | None = None
    snips_difference: Estimate | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the check as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def clusters_of(table: StartTable) -> tuple[str, Ints]:
    """Return batches or days, whichever are fewer, and the number of it for each start."""
    batches, days = len(set(table.batch.tolist())), len(set(table.day.tolist()))
    return (DAYS, table.day) if days <= batches else (BATCHES, table.batch)


def check_of(
    asked: OffPolicyCheck, table: StartTable, counted: PropensityCheck, left_out: Mapping[str, int]
) -> OffPolicyCheck:
    """Return the check of one candidate.

    Args:
        asked: policy, incumbent, level, and reasons for refusing it so far.
        table: its starts.
        counted: check of the incumbent's choices.
        left_out: `running_n`, `outside_n`, `acted_n` and `silent_n`.
    """
    kind, clusters = clusters_of(table)
    clusters_n, n = len(set(clusters.tolist())), len(table)
    fields: dict[str, Any] = {
        "starts_n": n, "clusters": kind, "clusters_n": clusters_n, "propensities": counted,
        **left_out,
    }  # fmt: skip
    refused = [
        *asked.refused,
        *_unlike_chance(counted, n + left_out["silent_n"], left_out["outside_n"]),
    ]
    if not asked.refused:
        fields["effective_n"] = effective = effective_n(table.weights)
        fields["mean_weight"] = float(table.weights.mean()) if n else None
        if effective < MIN_EFFECTIVE_N:
            refused.append(
                f"the effective sample size is {effective:.1f}; expected at least "
                f"{MIN_EFFECTIVE_N:g}, so use a longer record"
            )
        if clusters_n < MIN_CLUSTERS:
            refused.append(f"{clusters_n} {kind} are too few for an interval; use a longer record")
        if not refused:
            made = estimated(table, clusters, asked.level)
            fields["incumbent_ratio"], fields["candidate_ratio"] = made.incumbent, made.candidate
            fields["difference"], fields["snips_difference"] = (
                made.difference,
                made.snips_difference,
            )
    return msgspec.structs.replace(asked, refused=tuple(refused), **fields)


def _unlike_chance(counted: PropensityCheck, n: int, outside_n: int) -> list[str]:
    reasons = [f"the incumbent does not choose at random: {why}" for why in counted.failures()]
    if outside_n > MAX_OUTSIDE_RATIO * (n + outside_n):
        reasons.append(
            f"{outside_n} starts are on machines that by the record were not free, so the possible "
            "choices are not known"
        )
    return reasons
