"""The dashboard of a site: its variables, and the rows of `site_rows` and `daemon_rows`."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard.building import choice, page, written
from tools.dashboard.daemon_rows import daemon_rows
from tools.dashboard.site_rows import site_rows

WINDOWS = ("5m", "15m", "1h", "6h", "1d")
CHOICES = {
    "cluster": ("Cluster", "label_values(outrider_machines, cluster)"),
    "vo": ("VO", "label_values(outrider_vo_target_ratio, vo)"),
    "policy": ("Policy", "label_values(outrider_decisions_total, policy)"),
}


def site_dashboard() -> str:
    """The dashboard as the JSON that Grafana imports; the same bytes each time."""
    about = "What a site's jobs, machines and energy do, and what Outrider decides."
    site = page("Outrider: a site", "outrider-site", about, "now-24h", "1m")
    for name, (label, query) in CHOICES.items():
        site.with_variable(choice(name, label, query))
    site.with_variable(_window())
    return written(site, [*site_rows(), *daemon_rows()])


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
