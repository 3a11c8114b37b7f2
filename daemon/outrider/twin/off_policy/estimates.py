"""What a candidate would have changed, by weights: SNIPS and DR, with intervals over clusters.

Swaminathan and Joachims, "The Self-Normalized Estimator for Counterfactual Learning", NIPS 2015;
Dudik, Langford and Li, "Doubly Robust Policy Evaluation and Learning", ICML 2011.
"""

from math import sqrt
from typing import Final, NamedTuple

import msgspec
import numpy as np

from outrider.model.student import student_quantile
from outrider.twin.off_policy.starts import Floats, Ints, StartTable

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
