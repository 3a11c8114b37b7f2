"""Lint of dashboards for mistakes that Grafana would load silently."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.dashboards import promql

BUILT_IN = frozenset({"__rate_interval", "__interval", "__range"})
ALERT_LABELS = frozenset({"alertname", "alertstate"})
"""Labels of the alert series that Prometheus itself makes."""
COLUMNS = 24
_VARIABLE = re.compile(r"\$\{?(\w+)")
_LEGEND = re.compile(r"\{\{(\w+)\}\}")

Panel = dict[str, Any]


def panels_of(dashboard: dict[str, Any]) -> list[Panel]:
    """Return the panels with data, without rows, which are headings."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries_of(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Yield the queries of all panels."""
    return [target for panel in panels_of(dashboard) for target in panel["targets"]]


def problems(dashboard: dict[str, Any]) -> list[str]:
    """Return every mistake of a dashboard, each with the panel's title."""
    known = BUILT_IN | {variable["name"] for variable in dashboard["templating"]["list"]}
    found = list(_places(dashboard["panels"]))
    for what in ("id", "title"):
        counts = Counter(panel.get(what) for panel in dashboard["panels"])
        found += [f"{what} {value!r} is there {n} times" for value, n in counts.items() if n > 1]
    for panel in panels_of(dashboard):
        title = panel.get("title", "")
        mistakes = [*_frame(panel), *_targets(panel, known), *_names(panel, known)]
        found += [f"{title}: {problem}" for problem in mistakes]
    return found


def _frame(panel: Panel) -> Iterator[str]:
    for what in ("title", "description"):
        if not panel.get(what):
            yield f"no {what}"
    defaults = panel["fieldConfig"]["defaults"]
    if not defaults.get("unit"):
        yield "no unit"
    if not defaults.get("thresholds", {}).get("steps"):
        yield "no thresholds: Grafana would show red from 80 on"
    if not panel.get("targets"):
        yield "no query"


def _targets(panel: Panel, known: frozenset[str] | set[str]) -> Iterator[str]:
    targets = panel.get("targets", [])
    refs = Counter(target.get("refId", "") for target in targets)
    if "" in refs:
        yield "a query without refId"
    yield from (f"refId {ref} is there {n} times" for ref, n in refs.items() if n > 1)
    for target in targets:
        yield from promql.errors(target["expr"])
        if target.get("datasource", {}).get("uid") != "${datasource}":
            yield f"query {target.get('refId')} does not ask the chosen data source"
        for variable in _VARIABLE.findall(target["expr"]):
            if variable not in known:
                yield f"there is no variable ${variable}"
        if not target.get("legendFormat"):
            yield f"query {target.get('refId')} has no legend"
        labels = frozenset[str]().union(
            *(promql.DECLARED[u.name].labels for u in promql.uses(target["expr"])
              if u.name in promql.DECLARED)
        )  # fmt: skip
        if "ALERTS{" in target["expr"]:
            labels |= ALERT_LABELS
        for use in promql.uses(target["expr"]):
            if "instance" not in use.matched:
                yield f"{use.name} is asked of all sites at once"
        for label in _LEGEND.findall(target.get("legendFormat", "")):
            if label not in labels:
                yield f"the legend names {label}, which no metric of the query has"


def _names(panel: Panel, known: frozenset[str] | set[str]) -> Iterator[str]:
    """Return mistakes in a panel's references to its queries and variables."""
    targets = panel.get("targets", [])
    for transformation in panel.get("transformations", []):
        for column in transformation["options"].get("renameByName", {}):
            if column not in {f"Value #{target['refId']}" for target in targets}:
                yield f"the column {column} is of no query"
    series = {name for target in targets for name in _series_names(target)}
    for override in panel["fieldConfig"].get("overrides", []):
        for changed in override["properties"]:
            below = changed["value"] if changed["id"] == "custom.fillBelowTo" else None
            if below is not None and below not in series:
                yield f"the band ends at {below}, which no query is called"
        matcher = override["matcher"]
        refs = {target["refId"] for target in targets}
        if matcher["id"] == "byFrameRefID" and matcher["options"] not in refs:
            yield f"an override is for {matcher['options']}, which is no query"
        if matcher["id"] == "byName" and matcher["options"] not in series:
            yield f"an override is for {matcher['options']}, which no query is called"
    for text in (panel.get("title", ""), f"${panel['repeat']}" if panel.get("repeat") else ""):
        for variable in _VARIABLE.findall(text):
            if variable not in known:
                yield f"there is no variable ${variable}"


def _series_names(target: dict[str, Any]) -> Iterator[str]:
    """Return the names of a query's series, if its legend has a closed list or no label."""
    legend = target["legendFormat"]
    yield legend
    label = _LEGEND.fullmatch(legend)
    for use in promql.uses(target["expr"]) if label else ():
        yield from promql.VALUES.get(use.name, {}).get(label[1] if label else "", ())


def _places(panels: list[Panel]) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        at = panel["gridPos"]
        if at["x"] + at["w"] > COLUMNS:
            yield f"{panel['title']}: beyond the right edge"
        cells = [
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        ]
        for title in sorted({taken[cell] for cell in cells if cell in taken}):
            yield f"{panel['title']}: lies on {title}"
        taken.update((cell, panel["title"]) for cell in cells)
