"""Minimal parser of PromQL, to check queries against the declared metrics."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.declarations.metric import Kind, Metric

COUNTING = frozenset({"rate", "irate", "increase"})
"""Functions that take a decrease for a restart, so they are only for counters."""
MOVING = frozenset({"delta", "idelta", "deriv"})
AGGREGATING = frozenset({"by", "without"})
GROUPING = AGGREGATING | {"on", "ignoring", "group_left", "group_right"}
ANYWHERE = frozenset({"job", "instance"})
"""Labels that Prometheus adds to every series."""

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")          # a label's value
    |   (?P<word>[a-zA-Z_:$][\w:$]*)
    |   (?P<mark>[(){}])
    """,
    re.VERBOSE,
)


class Sample(NamedTuple):
    """A sample name in queries: the kind of its values, and its labels."""

    only_grows: bool
    may_fall: bool
    labels: frozenset[str]


class Use(NamedTuple):
    """One use of a metric in a query.

    Attributes:
        name: as it is spelled.
        inside: functions and aggregations around it, from the outermost.
        matched: labels in its braces.
        grouped: labels of the aggregations around it.
    """

    name: str
    inside: tuple[str, ...]
    matched: frozenset[str]
    grouped: frozenset[str]


def _samples_of(metric: Metric) -> Iterator[tuple[str, Sample]]:
    labels = frozenset(metric.labels) | ANYWHERE
    name = metric.full_name
    if metric.kind is Kind.HISTOGRAM:
        yield f"{name}_bucket", Sample(True, False, labels | {"le"})
        yield f"{name}_sum", Sample(True, False, labels)
        yield f"{name}_count", Sample(True, False, labels)
    elif metric.kind is Kind.SUMMARY:  # its observations may be negative
        yield f"{name}_sum", Sample(False, True, labels)
        yield f"{name}_count", Sample(True, True, labels)
    else:
        counts = metric.kind is Kind.COUNTER
        yield name, Sample(counts, not counts, labels)


DECLARED = {name: sample for metric in METRICS for name, sample in _samples_of(metric)}
VALUES = {metric.full_name: metric.labels for metric in METRICS}
"""Closed lists of label values, by metric; empty where they depend on the site."""


def uses(expression: str) -> list[Use]:
    """Yield every use of one of Outrider's metrics, with its context.

    Raises:
        ValueError: an aggregation names its labels last, which is not looked at here.
    """
    found: list[Use] = []
    calls: list[tuple[str, frozenset[str]]] = []  # one for each open bracket
    tokens = [(match.lastgroup, match[0]) for match in _TOKEN.finditer(expression)]
    place = 0
    while place < len(tokens):
        kind, token = tokens[place]
        if token == "(":
            calls.append(_call_before(tokens, place))
        elif token == ")":
            calls.pop()
        elif token in GROUPING and tokens[place + 1][1] == "(":
            if token in AGGREGATING and tokens[place - 1][1] == ")":
                raise ValueError(f"write sum {token} (label) (vector): {expression}")
            place = _closing(tokens, place)  # labels are no metrics
        elif kind == "word" and token.startswith("outrider_"):
            matched: frozenset[str] = frozenset()
            if place + 1 < len(tokens) and tokens[place + 1][1] == "{":
                end = next(i for i in range(place, len(tokens)) if tokens[i][1] == "}")
                matched = frozenset(t for k, t in tokens[place + 2 : end] if k == "word")
                place = end
            grouped = frozenset[str]().union(*(labels for _, labels in calls))
            found.append(Use(token, tuple(name for name, _ in calls), matched, grouped))
        place += 1
    return found


def errors(expression: str) -> Iterator[str]:
    """Return the mistakes of a query, as far as the declarations show them."""
    for use in uses(expression):
        sample = DECLARED.get(use.name)
        if sample is None:
            yield f"{use.name} is no declared metric"
            continue
        for label in sorted((use.matched | use.grouped) - sample.labels):
            yield f"{use.name} has no label {label}"
        for function in use.inside:
            if function in COUNTING and not sample.only_grows:
                yield f"{function}() over {use.name}, which is no counter"
            if function in MOVING and not sample.may_fall:
                yield f"{function}() over {use.name}, which is a counter: a restart would show"


def _call_before(tokens: list[tuple[str | None, str]], opening: int) -> tuple[str, frozenset[str]]:
    """Return the function or aggregation of this bracket, and the labels it groups by."""
    before = opening - 1
    labels: frozenset[str] = frozenset()
    if before >= 0 and tokens[before][1] == ")":  # sum by (label, label) (
        start = max(i for i in range(before) if tokens[i][1] == "(")
        if start and tokens[start - 1][1] in AGGREGATING:
            labels = frozenset(token for _, token in tokens[start + 1 : before])
            before = start - 2
    if before >= 0 and tokens[before][0] == "word":
        return tokens[before][1], labels
    return "", labels


def _closing(tokens: list[tuple[str | None, str]], start: int) -> int:
    return next(i for i in range(start, len(tokens)) if tokens[i][1] == ")")
