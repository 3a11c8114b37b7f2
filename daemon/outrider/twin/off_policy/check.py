"""What an off-policy check answers of one candidate, and when it refuses to."""

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
# Whether starts fell on machines as the incumbent's claimed chances say.
#
# An estimate by weights divides by those chances, so wrong ones make it worthless. Under the claim
# the starts on a machine are a sum of independent draws: its count is compared with its
# expectation.

BOUND: Final = 4.0
"""The greatest |z| of a group that is believed to be chance: one in 16,000."""


class PropensityCheck(msgspec.Struct, frozen=True):
    """How far counts are from what chance allows.

    Attributes:
        groups: z by machine group: standard errors by which starts there exceed expectation.
        groups_bound: their |z| may not be greater.
        machine: the machine with the greatest |z|; None without starts.
        machine_z: its z.
        machines_bound: |z| of a machine may not be greater: the probability of `groups_bound`,
            divided by the number of machines (Bonferroni).
    """

    groups: Mapping[str, float]
    groups_bound: float
    machine: str | None
    machine_z: float
    machines_bound: float

    def failures(self) -> list[str]:
        """What contradicts the claim, as sentences; empty where nothing does."""
        told = [
            f"machine group {name}: z = {z:+.1f}, and at most {self.groups_bound:g} is chance"
            for name, z in self.groups.items()
            if abs(z) > self.groups_bound
        ]
        if abs(self.machine_z) > self.machines_bound:
            told.append(
                f"machine {self.machine}: z = {self.machine_z:+.1f}, and at most "
                f"{self.machines_bound:.1f} is chance"
            )
        return told


class ChoiceCounts:
    """Counts choices between alternatives, and what to expect of each."""

    def __init__(self) -> None:
        self._chosen: Counter[int] = Counter()
        self._open: Counter[int] = Counter()
        self._expected: defaultdict[int, float] = defaultdict(float)
        self._variance: defaultdict[int, float] = defaultdict(float)

    def add(self, chosen: int, chances: Mapping[int, float]) -> None:
        """One choice; `chances` are the probabilities of all alternatives, `chosen` among them."""
        if len(chances) < 2:  # there was no other: it tells nothing
            return
        self._chosen[chosen] += 1
        for alternative, chance in chances.items():
            self._open[alternative] += 1
            self._expected[alternative] += chance
            self._variance[alternative] += chance * (1.0 - chance)

    def add_uniform(self, chosen: int, alternatives: Collection[int]) -> None:
        """One choice between alternatives that are equally likely."""
        self.add(chosen, dict.fromkeys(alternatives, 1.0 / len(alternatives)))

    def z(self) -> dict[int, float]:
        """Standard errors by which each alternative was chosen too often (+) or too rarely (-).

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
    """The check of all choices counted; names are by number."""
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
# What a candidate would have changed, by weights: SNIPS and DR, with intervals over clusters.
#
# Swaminathan and Joachims, "The Self-Normalized Estimator for Counterfactual Learning", NIPS 2015;
# Dudik, Langford and Li, "Doubly Robust Policy Evaluation and Learning", ICML 2011.

_FOLDS: Final = 5
_PRIOR_N: Final = 5.0
"""So many starts of the coarser share are added to the finer one."""
_HOURS: Final = 24


class Estimate(msgspec.Struct, frozen=True):
    """A value and the interval that should hold the truth."""

    value: float
    low: float
    high: float


class Estimates(NamedTuple):
    """What is estimated of one candidate.

    Attributes:
        incumbent: share of starts whose runs completed.
        candidate: the same, had the candidate chosen the machine of one start at a time (DR).
        difference: candidate less incumbent, by DR.
        snips_difference: the same by SNIPS, which needs no model.
    """

    incumbent: Estimate
    candidate: Estimate
    difference: Estimate
    snips_difference: Estimate


def effective_n(weights: Floats) -> float:
    """The effective sample size of weights, (sum w)^2 / sum w^2 (Kish 1965); 0 without any."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def completion_shares(table: StartTable) -> Floats:
    """(starts, groups) The share of runs that complete, at the hour of each start on each group.

    Cross-fitted: that of a start is made of the starts of other days alone, one day in five left
    out at a time. A group's hour has few starts: its share is drawn towards the group's, and that
    towards the site's.
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
    """What a candidate would have changed.

    Args:
        table: the starts.
        clusters: (starts,) number of the cluster of each.
        level: the probability with which the intervals should hold the truth.

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
    """By the cluster-robust error of a mean of influences (Liang and Zeger 1986)."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=influence)
    n = len(sums)
    if n < 2:
        raise ValueError("an interval needs two clusters")
    error = sqrt(n / (n - 1) * float((sums**2).sum())) / len(influence)
    half = student_quantile((1.0 + level) / 2.0, n - 1) * error
    return Estimate(value, value - half, value + half)


# -- check -----------------------------------------------------------------------------------------

LEAST_EFFECTIVE_N: Final = 100.0
"""With a smaller effective sample size nothing is said."""
LEAST_CLUSTERS: Final = 5
"""With fewer clusters the interval would not be to be believed."""
MOST_OUTSIDE_RATIO: Final = 0.01
"""If more starts than this fall where, by the record, the job could not start, it is refused."""
BATCHES: Final = "batches"
DAYS: Final = "days"


class OffPolicyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the starts of a record say of one candidate, or why they say nothing.

    Estimates are of one step: the candidate chooses the machine of one start, and all else happens
    as it did. Shares are of starts whose runs completed; the others were evicted or killed.

    Attributes:
        policy: the candidate.
        incumbent: the policy that chose; None: not known.
        level: the probability with which the intervals should hold the truth.
        refused: why nothing is estimated, as sentences; empty where it is.
        starts_n: starts whose runs ended, and which the candidate would make, too.
        running_n: starts whose runs went on when the record ended; they are left out.
        outside_n: starts where, by the record, the job could not start; they are left out.
        acted_n: starts of jobs on which Outrider acted; they are left out.
        silent_n: starts that the candidate would not make, by what is on record of it: it deferred
            the job, had not decided yet, or named a group that was full; they are left out.
        effective_n: effective sample size of the weights; None where there are none.
        mean_weight: mean weight: 1 but for chance.
        clusters: over what the intervals are taken, `BATCHES` or `DAYS`: the fewer.
        clusters_n: how many of them there are.
        propensities: whether the starts fell as the incumbent's chances say.
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
        """As plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def clusters_of(table: StartTable) -> tuple[str, Ints]:
    """Batches or days, whichever are fewer, and the number of that of each start."""
    batches, days = len(set(table.batch.tolist())), len(set(table.day.tolist()))
    return (DAYS, table.day) if days <= batches else (BATCHES, table.batch)


def check_of(
    asked: OffPolicyCheck, table: StartTable, counted: PropensityCheck, left_out: Mapping[str, int]
) -> OffPolicyCheck:
    """The check of one candidate.

    Args:
        asked: policy, incumbent, level, and why it is refused already.
        table: its starts.
        counted: of the incumbent's choices.
        left_out: `running_n`, `outside_n`, `acted_n` and `silent_n`.
    """
    kind, clusters = clusters_of(table)
    clusters_n, n = len(set(clusters.tolist())), len(table)
    told: dict[str, Any] = {
        "starts_n": n, "clusters": kind, "clusters_n": clusters_n, "propensities": counted,
        **left_out,
    }  # fmt: skip
    refused = [
        *asked.refused,
        *_unlike_chance(counted, n + left_out["silent_n"], left_out["outside_n"]),
    ]
    if not asked.refused:
        told["effective_n"] = effective = effective_n(table.weights)
        told["mean_weight"] = float(table.weights.mean()) if n else None
        if effective < LEAST_EFFECTIVE_N:
            refused.append(
                f"the effective sample size is {effective:.1f}, and less than "
                f"{LEAST_EFFECTIVE_N:g} say nothing; a longer record would"
            )
        if clusters_n < LEAST_CLUSTERS:
            refused.append(f"{clusters_n} {kind} are too few for an interval; a longer record is")
        if not refused:
            made = estimated(table, clusters, asked.level)
            told["incumbent_ratio"], told["candidate_ratio"] = made.incumbent, made.candidate
            told["difference"], told["snips_difference"] = made.difference, made.snips_difference
    return msgspec.structs.replace(asked, refused=tuple(refused), **told)


def _unlike_chance(counted: PropensityCheck, n: int, outside_n: int) -> list[str]:
    told = [f"the incumbent does not choose by chance: {why}" for why in counted.failures()]
    if outside_n > MOST_OUTSIDE_RATIO * (n + outside_n):
        told.append(
            f"{outside_n} starts are on machines that by the record were not free: what could have "
            "been chosen is not known"
        )
    return told
