"""What all dashboards are built with: the choices at the top, links, and rows on the page."""

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
"""By it the dashboards find each other."""
ALL: Final = models.VariableOption(selected=True, text="All", value="$__all")
WINDOWS: Final = ("5m", "15m", "1h", "6h", "1d")
CLUSTER: Final = ("cluster", "Cluster", "label_values(outrider_machines, cluster)")
VO: Final = ("vo", "VO", "label_values(outrider_vo_target_ratio, vo)")
CLASS: Final = ("class", "Class", "label_values(outrider_job_wait_seconds_count, class)")
POLICY: Final = ("policy", "Policy", "label_values(outrider_decisions_total, policy)")

DOCS: Final = "https://outrider.example.org/docs"
"""Stands for where a site keeps the pages that `make docs` builds."""
MODE_CHANGED: Final = at_site(
    "outrider_mode == 1 and last_over_time(outrider_mode[15m] offset 5m) == 0"
)
"""True for five minutes after a change: Grafana asks for at most 11,000 moments of a range, which
of 30 days are four minutes apart. What was last known survives a restart of a few minutes."""


def page(
    title: str, uid: str, about: str, since: str, refresh: str, source: Source
) -> dashboard.Dashboard:
    """An empty page that asks about one Outrider in a Prometheus, both chosen at its top.

    Args:
        title: of the page.
        uid: its name in addresses.
        about: its description.
        since: where the time range begins at first, as Grafana writes it.
        refresh: how often it asks again.
        source: what tells of the site.
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
            .description("The Outrider of a site, by the address at which Prometheus scrapes it.")
            .multi(False)
        )
        .with_variable(
            dashboard.TextBoxVariable("docs")
            .label("Documentation at")
            .description("Where the pages that `make docs` builds are served; links lead there.")
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
    """A variable that takes several of the values which a query finds, all of them at first."""
    return (
        _query(name, label, of_site(query))
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(ALL)
    )


def single_or_more(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A variable for charts of their own: one at first, and as many more as are wanted."""
    return _query(name, label, of_site(query)).multi(True).include_all(False)


def of_site(query: str) -> str:
    """`label_values` of the chosen Outrider alone."""
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
    """How far points look back."""
    options = [models.VariableOption(text=w, value=w, selected=w == "1h") for w in WINDOWS]
    return (
        dashboard.IntervalVariable("window")
        .label("Window")
        .description("How far each point of a wait, a share or a reward looks back.")
        .values(",".join(WINDOWS))
        .options(options)
        .current(options[WINDOWS.index("1h")])
    )


def written(site: dashboard.Dashboard, rows: list[Row]) -> str:
    """The page with these rows as the JSON that Grafana imports; the same bytes each time."""
    number = 0
    for row in rows:
        if row.panels:
            number = _add(site, row, number)
    made = json.loads(JSONEncoder().encode(site.build()))
    for annotation in made["annotations"]["list"]:  # the library has no field for it
        annotation["titleFormat"] = "Mode: {{outrider_mode}}"
    return json.dumps(made, sort_keys=True, indent=2) + "\n"


def _add(site: dashboard.Dashboard, row: Row, number: int) -> int:
    """Add a row and its panels, numbered from after `number`; returns the last number."""
    number += 1
    site.with_row(dashboard.Row(row.title).id(number))
    for panel in row.panels:
        number += 1
        panel.id(number)
        panel.description(f"{panel.build().description} {row.mode}")
        site.with_panel(panel)
    return number
