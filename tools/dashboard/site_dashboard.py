"""The dashboard: its variables, and the rows of `site_rows` and `daemon_rows`."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard.daemon_rows import daemon_rows
from tools.dashboard.panels import DATASOURCE, Row
from tools.dashboard.site_rows import site_rows

WINDOWS = ("5m", "15m", "1h", "6h", "1d")
CHOICES = {
    "cluster": ("Cluster", "label_values(outrider_machines, cluster)"),
    "vo": ("VO", "label_values(outrider_vo_target_ratio, vo)"),
    "policy": ("Policy", "label_values(outrider_decisions_total, policy)"),
}
ALL = models.VariableOption(selected=True, text="All", value="$__all")


def site_dashboard() -> str:
    """The dashboard as the JSON that Grafana imports; the same bytes each time."""
    return JSONEncoder(sort_keys=True, indent=2).encode(_built()) + "\n"


def _built() -> models.Dashboard:
    site = (
        dashboard.Dashboard("Outrider: a site")
        .uid("outrider-site")
        .description("What a site's jobs, machines and energy do, and what Outrider decides.")
        .tags(["outrider"])
        .time("now-24h", "now")
        .refresh("1m")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
        )
    )
    for name, (label, query) in CHOICES.items():
        site.with_variable(_choice(name, label, query))
    site.with_variable(_window())
    number = 0
    for row in [*site_rows(), *daemon_rows()]:
        number = _add(site, row, number)
    return site.build()


def _choice(name: str, label: str, query: str) -> dashboard.QueryVariable:
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


def _window() -> dashboard.IntervalVariable:
    options = [models.VariableOption(text=w, value=w, selected=w == "1h") for w in WINDOWS]
    return (
        dashboard.IntervalVariable("window")
        .label("Window")
        .description("How far each point of a wait, a share or a reward looks back.")
        .values(",".join(WINDOWS))
        .options(options)
        .current(options[WINDOWS.index("1h")])
    )


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
