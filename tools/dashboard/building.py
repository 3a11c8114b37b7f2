"""Parts that all dashboards share: variables at the top, links, and rows."""

import json
from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard.expressions import at_site
from tools.dashboard.panels import DATASOURCE, Row
from tools.dashboard.sources import Source

TAG: Final = "outrider"
"""Tag that links the dashboards to each other."""
ALL: Final = models.VariableOption(selected=True, text="All", value="$__all")
WINDOWS: Final = ("5m", "15m", "1h", "6h", "1d")
CLUSTER: Final = ("cluster", "Cluster", "label_values(outrider_machines, cluster)")
VO: Final = ("vo", "VO", "label_values(outrider_vo_target_ratio, vo)")
CLASS: Final = ("class", "Class", "label_values(outrider_job_wait_seconds_count, class)")
POLICY: Final = ("policy", "Policy", "label_values(outrider_decisions_total, policy)")

DOCS: Final = "https://outrider.example.org/docs"
"""Placeholder for the address at which a site serves the pages that `make docs` builds."""
MODE_CHANGED: Final = at_site(
    "outrider_mode == 1 and last_over_time(outrider_mode[15m] offset 5m) == 0"
)
"""True for five minutes after a change of the mode.

Grafana queries at most 11,000 points of a range; in 30 days they are four minutes apart. The last
known value survives a restart of a few minutes."""


def page(
    title: str, uid: str, about: str, since: str, refresh: str, source: Source
) -> dashboard.Dashboard:
    """Return an empty dashboard for one Outrider in a Prometheus, both chosen at its top.

    Args:
        title: title of the dashboard.
        uid: its name in addresses.
        about: its description.
        since: initial begin of the time range, as Grafana writes it.
        refresh: refresh interval.
        source: kind of source that the site has.
    """
    return (
        dashboard.Dashboard(title + source.title_suffix)
        .uid(uid + source.uid_suffix)
        .description(about)
        .tags([TAG + source.uid_suffix])
        .links(_links(source))
        .annotation(_mode_changes())
        .time(since, "now")
        .refresh(refresh)
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
        .with_variable(
            _query("instance", "Site", "label_values(outrider_build_info, instance)")
            .description("The Outrider of a site, by the address that Prometheus scrapes.")
            .multi(False)
        )
        .with_variable(
            dashboard.TextBoxVariable("docs")
            .label("Documentation at")
            .description("Address of the pages that `make docs` builds; links lead there.")
            .default_value(DOCS)
            .current(models.VariableOption(selected=True, text=DOCS, value=DOCS))
            .hide(models.VariableHide.HIDE_VARIABLE)
        )
    )


def _links(source: Source) -> list[Builder[models.DashboardLink]]:
    others = dashboard.DashboardLink("Outrider").type(models.DashboardLinkType.DASHBOARDS)
    to = models.DashboardLinkType.LINK
    return [
        others.tags([TAG + source.uid_suffix]).include_vars(True).keep_time(True),
        dashboard.DashboardLink("What to do about an alert").type(to).url("$docs/alerts.html"),
        dashboard.DashboardLink("What each figure means")
        .type(to)
        .url("$docs/reference/definitions.html"),
        dashboard.DashboardLink("Outrider's page").type(to).url("http://$instance/"),
    ]


def _mode_changes() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Mode changes")
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color("purple")
        .expr(MODE_CHANGED)
    )


def choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """Return a variable with several of the values that a query finds, initially all."""
    return (
        _query(name, label, of_site(query))
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(ALL)
    )


def single_or_more(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """Return a variable whose values have separate charts: initially one, more on request."""
    return _query(name, label, of_site(query)).multi(True).include_all(False)


def of_site(query: str) -> str:
    """Restrict a `label_values` query to the chosen Outrider."""
    metric, _, label = query.removeprefix("label_values(").partition(",")
    return f"label_values({at_site(metric)},{label}"


def _query(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": "StandardVariableQuery"})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def window() -> dashboard.IntervalVariable:
    """Return the variable for the time window of each point."""
    options = [models.VariableOption(text=w, value=w, selected=w == "1h") for w in WINDOWS]
    return (
        dashboard.IntervalVariable("window")
        .label("Window")
        .description("Time window of each point of a wait, a share or a reward.")
        .values(",".join(WINDOWS))
        .options(options)
        .current(options[WINDOWS.index("1h")])
    )


def written(site: dashboard.Dashboard, rows: list[Row]) -> str:
    """Return the dashboard with these rows as JSON for Grafana, always the same bytes."""
    number = 0
    for row in rows:
        if row.panels:
            number = _add(site, row, number)
    made = json.loads(JSONEncoder().encode(site.build()))
    for annotation in made["annotations"]["list"]:  # the library has no field for it
        annotation["titleFormat"] = "Mode: {{outrider_mode}}"
    return json.dumps(made, sort_keys=True, indent=2) + "\n"


def _add(site: dashboard.Dashboard, row: Row, number: int) -> int:
    """Add a row and its panels, numbered after `number`, and return the last number."""
    number += 1
    site.with_row(dashboard.Row(row.title).id(number))
    for panel in row.panels:
        number += 1
        panel.id(number)
        panel.description(f"{panel.build().description} {row.mode}")
        site.with_panel(panel)
    return number
