"""Policies over several traces: on how many each is better or worse, and by what factor."""

from collections import Counter
from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from outrider_lab.comparison.difference import BETTER, TOO_SMALL, UNDECIDED, WORSE
from outrider_lab.comparison.on_a_trace import TraceComparison
from outrider_lab.reporting.bootstrap import Interval, student_interval


def over_traces(traces: Sequence[TraceComparison], reference: str) -> list[dict[str, Any]]:
    """A row for each policy, with its mean bounded slowdown against the reference and the best.

    Each row has `policy`, and `against_reference` and `against_best_published` (None where there
    is nobody else on any trace) with

    * traces, better, worse, undecided, too small: how many, by the verdict of each;
    * not_worse_ratio: traces whose interval holds 0 or lies below it, over those that have one;
    * ratio: geometric mean over the traces of the ratio of means, and its 95 % interval, from
      resamples of every trace's blocks. It speaks of these traces, not of all that there could be.
    """
    return [
        {
            "policy": policy,
            "against_reference": _against(traces, policy, [reference] * len(traces)),
            "against_best_published": _against(
                traces, policy, [trace.best_published for trace in traces]
            ),
        }
        for policy in dict.fromkeys(name for trace in traces for name in trace.jobs.policies)
    ]


def _against(
    traces: Sequence[TraceComparison], policy: str, others: Sequence[str | None]
) -> dict[str, Any] | None:
    pairs = [
        (trace, other)
        for trace, other in zip(traces, others, strict=True)
        if other is not None and other != policy and {policy, other} <= {*trace.jobs.policies}
    ]
    if not pairs:
        return None
    verdicts = Counter(t.slowdown.between(policy, other)["verdict"] for t, other in pairs)
    judged = len(pairs) - verdicts[TOO_SMALL]
    not_worse = judged - verdicts[WORSE]
    logs = [np.log(t.slowdown.mean(policy) / t.slowdown.mean(other)) for t, other in pairs]
    drawn = [t.slowdown.log_ratios(policy, other) for t, other in pairs]
    found = None
    if judged == len(pairs):
        fewest = min(trace.slowdown.blocks_n(policy, other) for trace, other in pairs)
        together = np.mean([d for d in drawn if d is not None], axis=0)
        low, high = student_interval(together, float(np.mean(logs)), fewest)
        found = Interval(exp(low), exp(high))
    return {
        "traces": len(pairs),
        **{name: verdicts[name] for name in (BETTER, WORSE, UNDECIDED, TOO_SMALL)},
        "not_worse_ratio": not_worse / judged if judged else None,
        "ratio": float(np.exp(np.mean(logs))),
        "interval": found,
    }
