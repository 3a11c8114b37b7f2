"""Run time estimates for policies: their only information on the run times of unfinished jobs."""

import dataclasses
import hashlib
import math
from typing import Final, NamedTuple

import numpy as np

from outrider.formats.job_classes import ByTruth
from outrider.formats.workload import Floats, Workload
from outrider.model.errors import ConfigurationError, nearest

EXACT: Final = "exact"
REQUESTED: Final = "requested"
LOGNORMAL: Final = "lognormal"
LEARNED: Final = "learned"

_RULES: Final = (EXACT, REQUESTED, f"{LOGNORMAL}:SIGMA", LEARNED)


class EstimateRule(NamedTuple):
    """Rule from which run time estimates come.

    Attributes:
        kind: ``exact``: the true run time. ``requested``: the user's request, if any.
            ``lognormal``: the true run time times exp(sigma N(0, 1)), drawn once for each job.
            ``learned``: here the same as ``requested``; the estimator plugin replaces it when the
            job is submitted.
        sigma: of ``lognormal``.
    """

    kind: str = EXACT
    sigma: float = 0.0

    @property
    def word(self) -> str:
        """Name of the rule, as `estimate_rule` reads it: ``lognormal:0.5``."""
        return f"{self.kind}:{self.sigma:g}" if self.kind == LOGNORMAL else self.kind


def estimate_rule(text: str, where: str = "estimates") -> EstimateRule:
    """Parse an estimate rule: ``exact``, ``requested``, ``lognormal:1.0`` or ``learned``.

    Raises:
        ConfigurationError: unknown rule, or sigma is not a number from 0 to 10.

    >>> estimate_rule("lognormal:0.5")
    EstimateRule(kind='lognormal', sigma=0.5)
    """
    kind, colon, number = text.partition(":")
    if kind == LOGNORMAL:
        try:
            sigma = float(number)
        except ValueError:
            sigma = math.nan
        if not 0.0 <= sigma <= 10.0:
            raise ConfigurationError(
                f'{where} "{text}": expected {LOGNORMAL}:SIGMA with SIGMA from 0 to 10, as '
                f"{LOGNORMAL}:0.5"
            )
        return EstimateRule(kind, sigma)
    if colon or kind not in (EXACT, REQUESTED, LEARNED):
        raise ConfigurationError(f'{where} "{text}": no such rule; {nearest(text, _RULES)}')
    return EstimateRule(kind)


def default_rule(workload: Workload) -> EstimateRule:
    """Return the rule where none is given: users' requests, if any; else the true run time."""
    return EstimateRule(EXACT if np.isnan(workload.requested_s).all() else REQUESTED)


def estimated(workload: Workload, rule: EstimateRule, seed: int) -> Workload:
    """Return a copy of the workload with the estimates of a rule; other columns are shared.

    Args:
        workload: not changed.
        rule: where estimates come from.
        seed: for ``lognormal``, which has its own random stream: every policy of a run gets the
            same estimates, and no policy's own draws change.
    """
    estimates = _estimates(workload, rule, seed)
    return dataclasses.replace(workload, estimate_s=estimates, estimate_source=rule.word)


def _estimates(workload: Workload, rule: EstimateRule, seed: int) -> Floats:
    if rule.kind == EXACT:
        return workload.run_s.copy()
    if rule.kind in (REQUESTED, LEARNED):  # an estimator then learns from these
        return workload.requested_s.copy()
    digest = hashlib.sha256(f"{seed}:estimates".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    noisy: Floats = workload.run_s * np.exp(rule.sigma * rng.standard_normal(len(workload.run_s)))
    return noisy


# -- oracle labels ---------------------------------------------------------------------------------
# Labels for oracle information that a run gives to policies, shown in every output. No user, and so
# no daemon, could know any of it: such figures are upper bounds, not promises.


def oracle_used(class_source: str, estimate_source: str) -> list[str]:
    """Return the oracle information in use, in words; empty without any.

    Args:
        class_source: where classes come from, as `Workload.class_source`.
        estimate_source: where estimates come from, as `Workload.estimate_source`.

    >>> oracle_used("requested:900", "requested")
    []
    >>> oracle_used("truth:900", "exact")
    ['classes are made of true run times (truth:900)', 'estimates are the true run times (exact)']
    """
    labels = []
    if class_source.startswith(f"{ByTruth.__struct_config__.tag}:"):
        labels.append(f"classes are made of true run times ({class_source})")
    if estimate_source == EXACT:
        labels.append(f"estimates are the true run times ({EXACT})")
    if estimate_source.startswith(f"{LOGNORMAL}:"):
        labels.append(f"estimates are the true run times with random errors ({estimate_source})")
    return labels


def in_words(labels: list[str]) -> str:
    """Return the labels as one text for tables and pages; empty without any.

    >>> in_words(oracle_used("none", "exact"))
    'TRUE RUN TIMES USED: estimates are the true run times (exact)'
    """
    return f"TRUE RUN TIMES USED: {'; '.join(labels)}" if labels else ""
