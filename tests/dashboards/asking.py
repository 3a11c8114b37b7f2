"""Queries of a dashboard's panels to a real Prometheus, as Grafana sends them."""

import math
import re
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tests.dashboards.lint import panels_of
from tests.peers.prometheus import Prometheus

RANGE_S = 40
BUILT_IN = {"__range": f"{RANGE_S}s", "__rate_interval": "5s", "__interval": "1s", "window": "1m"}
NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})
Series = list[tuple[dict[str, str], list[float]]]


def filled(expression: str, chosen: dict[str, str]) -> str:
    """Return a query as Grafana sends it, with its variables replaced."""
    values = BUILT_IN | chosen
    return re.sub(r"\$(\w+)", lambda found: values[found[1]], expression)


def ask(prometheus: Prometheus, target: dict[str, Any], chosen: dict[str, str]) -> Series:
    """Send a query as Grafana does: a figure for now, a chart for its whole range."""
    expression = filled(target["expr"], chosen)
    if target["instant"]:
        return [(labels, [value]) for labels, value in prometheus.query(expression)]
    now_s = time.time()
    return prometheus.query_range(expression, now_s - RANGE_S, now_s, 1.0)


def holes(
    dashboard: dict[str, Any],
    prometheus: Prometheus,
    chosen: dict[str, str],
    empty: Mapping[tuple[str, str], str] = NOTHING,
) -> Iterator[str]:
    """Return queries without data, with values that are no numbers, or with an empty legend.

    Args:
        dashboard: whose panels are asked.
        prometheus: is asked.
        chosen: values of the variables.
        empty: queries that may show nothing, by the panel's title and refId, with the reason.
    """
    for panel in panels_of(dashboard):
        for target in panel["targets"]:
            place = f"{panel['title']} {target['refId']}"
            series = ask(prometheus, target, chosen)
            found = any(math.isfinite(value) for _, values in series for value in values)
            if not found and (panel["title"], target["refId"]) not in empty:
                yield f"{place} shows nothing: {filled(target['expr'], chosen)}"
            for labels, values in series:
                if not all(map(math.isfinite, values)):
                    yield f"{place} shows what is no number: {labels} {values}"
                missing = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - set(labels)
                if missing:
                    yield f"{place} has no {sorted(missing)} for its legend"
