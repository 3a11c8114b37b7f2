"""What both dashboards are built with: the choices at the top, and rows put onto the page."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard.panels import DATASOURCE, Row

TAG = "outrider"
"""By it the dashboards find each other."""
ALL = models.VariableOption(selected=True, text="All", value="$__all")


def page(title: str, uid: str, about: str, since: str, refresh: str) -> dashboard.Dashboard:
    """An empty page that asks a Prometheus chosen at its top.

    Args:
        title: of the page.
        uid: its name in addresses.
        about: its description.
        since: where the time range begins at first, as Grafana writes it.
        refresh: how often it asks again.
    """
    others = dashboard.DashboardLink("Outrider").type(models.DashboardLinkType.DASHBOARDS)
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags([TAG])
        .link(others.tags([TAG]).include_vars(True).keep_time(True))
        .time(since, "now")
        .refresh(refresh)
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
    )


def choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
    """A variable that takes several of the values which a query finds, all of them at first."""
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": "StandardVariableQuery"})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(ALL)
    )


def written(site: dashboard.Dashboard, rows: list[Row]) -> str:
    """The page with these rows as the JSON that Grafana imports; the same bytes each time."""
    number = 0
    for row in rows:
        number = _add(site, row, number)
    return JSONEncoder(sort_keys=True, indent=2).encode(site.build()) + "\n"


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
