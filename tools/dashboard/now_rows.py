"""The mode panel of every dashboard, and the rows of the site's current state."""

from typing import Final

from grafana_foundation_sdk.builders import stat
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import known, quantile, share
from tools.dashboard.panels import (
    MOMENT,
    NONE_IS_GOOD,
    NOW,
    WINDOW,
    AnyPanel,
    Query,
    Row,
    Steps,
    bars,
    figures,
    lines,
)
from tools.dashboard.sources import Source, only

SEEN: Final = "Observed at the batch system, in every mode of Outrider."
ALWAYS: Final = "In every mode."
HOURLY: Final = "3600"
AGE: Final[Steps] = ((None, "green"), (60, "yellow"), (300, "red"))
UP: Final[Steps] = ((None, "red"), (1, "green"))

MACHINES: Final = 'outrider_machines{cluster=~"$cluster"}'
BUSY: Final = 'outrider_machines{state="busy", cluster=~"$cluster"}'
FREE: Final = 'outrider_machines{state="free", cluster=~"$cluster"}'


def now_rows(source: Source) -> list[Row]:
    """Return the rows in their order on the dashboard."""
    return [
        Row("Outrider and current alerts", ALWAYS, [mode(), *inputs(), _alerts()]),
        _jobs(),
        _machines(source),
        _recent_events(source),
    ]


def mode() -> stat.Panel:
    """Return the panel of the daemon's mode."""
    return figures(
        "Mode", "Outrider's mode: in observe and shadow it changes nothing.", NOW, "none",
        Query("outrider_mode == 1", "{{outrider_mode}}"),
        width=4, text=BigValueTextMode.NAME,
    )  # fmt: skip


def inputs() -> list[stat.Panel]:
    """Return the panels of the adapters' states and input ages."""
    up = models.ValueMap({
        "0": models.ValueMappingResult(text="down"),
        "1": models.ValueMappingResult(text="up"),
    })  # fmt: skip
    adapters = figures(
        "Adapters", "up: the adapter reaches its source.", NOW, "none",
        Query("outrider_adapter_up", "{{adapter}}"), steps=UP,
    ).mappings([up])  # fmt: skip
    age = figures(
        "Input age", "Age of the newest information of each adapter. "
        "Outrider does not act on stale input.", NOW, "s",
        Query("outrider_input_age_seconds", "{{adapter}}"), steps=AGE,
    )  # fmt: skip
    return [adapters, age]


def _alerts() -> stat.Panel:
    # An Outrider that is no longer in Prometheus' configuration has no instance.
    firing = 'ALERTS{alertname=~"Outrider.*", alertstate="firing", instance=~"$instance|"}'
    return figures(
        "Active alerts", "From the rules in `outrider.rules.yml`, if Prometheus loads them.", NOW,
        "none",
        Query(firing, "{{alertname}}"), width=8, steps=NONE_IS_GOOD, text=BigValueTextMode.NAME,
    ).no_value("none")  # fmt: skip


def _jobs() -> Row:
    by_state = Query(f"sum by (state) {known('outrider_jobs')}", "{{state}}")
    return Row("Jobs known", SEEN, [
        figures("Jobs", "Jobs known, by state; none while an adapter has no data.", NOW, "none",
                by_state, width=8).height(8).no_value("no data"),
        lines("Jobs by state", "Jobs known, by state.", MOMENT, "none", by_state, width=12),
        figures("Black holes", "Machines where far more starts failed within minutes in the last "
                "day than elsewhere.", NOW, "none",
                Query(f"sum{known('outrider_black_hole_machines')}", "machines"), width=4,
                steps=NONE_IS_GOOD).height(8).no_value("no data"),
    ])  # fmt: skip


def _machines(source: Source) -> Row:
    panels: list[AnyPanel] = [
        lines("Machines by state", "Machines of the chosen clusters. closed: on and without an "
              "owner, but accepts no jobs.", MOMENT, "none",
              Query(f"sum by (state) {known(MACHINES)}", "{{state}}"), stacked=True, width=9),
        lines("Free machines by cluster", "Machines that could take a job.", MOMENT, "none",
              Query(f"sum by (cluster) {known(FREE)}", "{{cluster}}"), width=9),
        bars("Busy machines by cluster", "Share of a cluster's machines that run a job.",
             NOW, "percentunit",
             Query(share(f"sum by (cluster) {known(BUSY)}", f"sum by (cluster) {known(MACHINES)}"),
                   "{{cluster}}")),
    ]  # fmt: skip
    return Row("Machines", SEEN, panels if source.sees_slots else [])


def _recent_events(source: Source) -> Row:
    begun = "outrider_job_wait_seconds_{}"
    evicted = "sum by (reason) (rate(outrider_evictions_total[$window]))"
    return Row("Recent events", SEEN, [
        lines("First starts per hour, by class", "Jobs that started to run.", WINDOW, "none",
              Query(f"sum by (class) (rate({begun.format('count')}[$window])) * {HOURLY}",
                    "{{class}}"), width=8),
        lines("Wait, 90th percentile", "By class: nine of ten jobs that started waited less.",
              WINDOW, "s",
              Query(quantile(0.9, begun.format("bucket"), "$window", "class"), "{{class}}"),
              width=8),
        lines("Evictions per hour", "By reason. unknown: the source reports none.", WINDOW,
              "none", Query(f"{evicted} * {HOURLY}", "{{reason}}"), width=8, stacked=True),
        *only(source.has_watts, lines(
              "Power now", "Measured by meters, and from the table for machines without one. If "
              "watts of one of those are unknown, the table's part is hidden.", MOMENT, "watt",
              Query(known("outrider_power_watts"), "{{source}}"), width=24, stacked=True)),
    ])  # fmt: skip
