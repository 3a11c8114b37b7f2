"""The mode, which stands on top of each dashboard, and the rows of the site as it is now."""

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

SEEN: Final = "As it happened at the batch system, whatever Outrider's mode."
ALWAYS: Final = "In every mode."
HOURLY: Final = "3600"
AGE: Final[Steps] = ((None, "green"), (60, "yellow"), (300, "red"))
UP: Final[Steps] = ((None, "red"), (1, "green"))

MACHINES: Final = 'outrider_machines{cluster=~"$cluster"}'
BUSY: Final = 'outrider_machines{state="busy", cluster=~"$cluster"}'
FREE: Final = 'outrider_machines{state="free", cluster=~"$cluster"}'


def now_rows(source: Source) -> list[Row]:
    """The rows, in their order on the page."""
    return [
        Row("Outrider and what is wrong now", ALWAYS, [mode(), *inputs(), _alerts()]),
        _jobs(),
        _machines(source),
        _lately(source),
    ]


def mode() -> stat.Panel:
    """What Outrider may do now."""
    return figures(
        "Mode", "What Outrider may do: in observe and shadow, nothing.", NOW, "none",
        Query("outrider_mode == 1", "{{outrider_mode}}"),
        width=4, text=BigValueTextMode.NAME,
    )  # fmt: skip


def inputs() -> list[stat.Panel]:
    """Return whether Outrider sees its site."""
    up = models.ValueMap({
        "0": models.ValueMappingResult(text="down"),
        "1": models.ValueMappingResult(text="up"),
    })  # fmt: skip
    adapters = figures(
        "Adapters", "Whether each adapter reaches its source.", NOW, "none",
        Query("outrider_adapter_up", "{{adapter}}"), steps=UP,
    ).mappings([up])  # fmt: skip
    age = figures(
        "Input age", "How old the newest information of each adapter is. "
        "Nothing acts on stale input.", NOW, "s",
        Query("outrider_input_age_seconds", "{{adapter}}"), steps=AGE,
    )  # fmt: skip
    return [adapters, age]


def _alerts() -> stat.Panel:
    # An Outrider that has gone from the configuration has no instance any more.
    firing = 'ALERTS{alertname=~"Outrider.*", alertstate="firing", instance=~"$instance|"}'
    return figures(
        "Alerts that fire", "From the rules of `outrider.rules.yml`, where Prometheus has them; "
        "nothing: none fires.", NOW, "none",
        Query(firing, "{{alertname}}"), width=8, steps=NONE_IS_GOOD, text=BigValueTextMode.NAME,
    ).no_value("none")  # fmt: skip


def _jobs() -> Row:
    by_state = Query("sum by (state) (outrider_jobs)", "{{state}}")
    return Row("Jobs known", SEEN, [
        figures("Jobs", "Jobs known, by state.", NOW, "none", by_state, width=8).height(8),
        lines("Jobs by state", "Jobs known, by state.", MOMENT, "none", by_state, width=12),
        figures("Black holes", "Machines on which far more starts failed within minutes in the "
                "last day than elsewhere.", NOW, "none",
                Query("sum(outrider_black_hole_machines)", "machines"), width=4,
                steps=NONE_IS_GOOD).height(8),
    ])  # fmt: skip


def _machines(source: Source) -> Row:
    panels: list[AnyPanel] = [
        lines("Machines by state", "Machines of the chosen clusters; closed: on, without owner, "
              "but not open to jobs.", MOMENT, "none",
              Query(f"sum by (state) {known(MACHINES)}", "{{state}}"), stacked=True, width=9),
        lines("Free machines by cluster", "Machines that could take a job.", MOMENT, "none",
              Query(f"sum by (cluster) {known(FREE)}", "{{cluster}}"), width=9),
        bars("Machines that work, by cluster", "Share of a cluster's machines that run a job.",
             NOW, "percentunit",
             Query(share(f"sum by (cluster) {known(BUSY)}", f"sum by (cluster) {known(MACHINES)}"),
                   "{{cluster}}")),
    ]  # fmt: skip
    return Row("Machines", SEEN, panels if source.sees_slots else [])


def _lately(source: Source) -> Row:
    begun = "outrider_job_wait_seconds_{}"
    evicted = "sum by (reason) (rate(outrider_evictions_total[$window]))"
    return Row("Lately", SEEN, [
        lines("First starts an hour, by class", "Jobs that began to run.", WINDOW, "none",
              Query(f"sum by (class) (rate({begun.format('count')}[$window])) * {HOURLY}",
                    "{{class}}"), width=8),
        lines("Wait of nine in ten", "By class: nine of ten jobs that started waited less.",
              WINDOW, "s",
              Query(quantile(0.9, begun.format("bucket"), "$window", "class"), "{{class}}"),
              width=8),
        lines("Evictions an hour", "By reason. What the source does not say is unknown.", WINDOW,
              "none", Query(f"{evicted} * {HOURLY}", "{{reason}}"), width=8, stacked=True),
        *only(source.has_watts, lines(
              "Power now", "Measured by meters, and by the table for machines that none measures. "
              "One of them whose watts are unknown hides the table's part.", MOMENT, "watt",
              Query(known("outrider_power_watts"), "{{source}}"), width=24, stacked=True)),
    ])  # fmt: skip
