"""Panel kinds of the dashboards: charts, figures, bars and tables.

Each takes a title, what it shows (for the description), the time span, the unit as Grafana names
it, and queries. A query gets its refId from its position.
"""

from typing import Final, NamedTuple, TypeAlias, TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.dashboard.expressions import at_site

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")

# Time span of a panel, as its description words it.
NOW: Final = "Now."
MOMENT: Final = "At each point in time."
STEP: Final = "Each point covers one step of time."
WINDOW: Final = "Each point covers the last $window."
SPAN: Final = "Over the time range shown."
EVER: Final = "Since Outrider first ran here."

Steps: TypeAlias = tuple[tuple[float | None, str], ...]
"""Thresholds: first value of each colour; the first begins at None, minus infinity."""

NEUTRAL: Final[Steps] = ((None, "blue"),)
"""Colour of neutral values; without it Grafana shows red from 80 on."""
NONE_IS_GOOD: Final[Steps] = ((None, "green"), (1, "red"))

AnyPanel: TypeAlias = timeseries.Panel | stat.Panel | bargauge.Panel | table.Panel
_P = TypeVar("_P", timeseries.Panel, stat.Panel, bargauge.Panel, table.Panel)


class Query(NamedTuple):
    """One query of a panel, and the names of its series (`{{label}}` is replaced by a value)."""

    expr: str
    legend: str


class Row(NamedTuple):
    """A row of the dashboard.

    Attributes:
        title: title of the row.
        mode: meaning of its figures in each mode; ends the description of each panel.
        panels: panels from left to right, line by line of 24 columns.
    """

    title: str
    mode: str
    panels: list[AnyPanel]


def lines(
    title: str,
    shows: str,
    over: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    steps: Steps = NEUTRAL,
    stacked: bool = False,
    from_zero: bool = True,
) -> timeseries.Panel:
    """Return a chart over time; thresholds are dashed lines.

    Args:
        title: title of the panel.
        shows: first part of the description.
        over: second part of the description, one of `NOW` and so on.
        unit: Grafana's name of the unit.
        queries: queries over the whole time range.
        width: in 24ths of the page.
        steps: thresholds.
        stacked: True to stack the series, if their sum has a meaning.
        from_zero: True if the axis begins at zero.
    """
    panel = timeseries.Panel().legend(
        common.VizLegendOptions()
        .display_mode(looks.LegendDisplayMode.LIST)
        .placement(looks.LegendPlacement.BOTTOM)
        .show_legend(True)
    )
    panel.color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    if stacked:
        panel.fill_opacity(50).stacking(
            common.StackingConfig().mode(looks.StackingMode.NORMAL).group("A")
        )
    if from_zero:
        panel.min(0)
    if len(steps) > 1:
        dashed = looks.GraphTresholdsStyleMode.DASHED
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(dashed))
    for number, query in enumerate(queries):
        panel.with_target(_target(number, query).range())
    return _framed(panel, title, f"{shows} {over}", unit, steps).span(width).height(8)


def figures(
    title: str,
    shows: str,
    over: str,
    unit: str,
    *queries: Query,
    width: int = 6,
    steps: Steps = NEUTRAL,
    text: looks.BigValueTextMode = looks.BigValueTextMode.AUTO,
) -> stat.Panel:
    """Return big numbers, one current value per series; arguments as for `lines`."""
    panel = stat.Panel().graph_mode(looks.BigValueGraphMode.NONE).text_mode(text)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    for number, query in enumerate(queries):
        panel.with_target(_target(number, query).instant())
    return _framed(panel, title, f"{shows} {over}", unit, steps).span(width).height(4)


def bars(
    title: str,
    shows: str,
    over: str,
    unit: str,
    *queries: Query,
    width: int = 6,
    steps: Steps = NEUTRAL,
) -> bargauge.Panel:
    """Return horizontal bars, one current value per series; arguments as for `lines`."""
    panel = bargauge.Panel().display_mode(looks.BarGaugeDisplayMode.BASIC)
    panel.orientation(looks.VizOrientation.HORIZONTAL)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    for number, query in enumerate(queries):
        panel.with_target(_target(number, query).instant())
    return _framed(panel, title, f"{shows} {over}", unit, steps).span(width).height(8)


def rows_and_columns(
    title: str,
    shows: str,
    over: str,
    unit: str,
    *queries: Query,
    width: int = 24,
    steps: Steps = NEUTRAL,
) -> table.Panel:
    """Return a table of current values: one row per set of labels, one column per query.

    Arguments as for `lines`. The queries must have the same labels; legends name the columns.
    """
    coloured = models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})
    panel = table.Panel().show_header(True).override_by_field_type("number", [coloured])
    names = {}
    for number, query in enumerate(queries):
        target = _target(number, query).instant().format(PromQueryFormat.TABLE)
        panel.with_target(target)
        names[f"Value #{_letter(number)}"] = query.legend
    merged = models.DataTransformerConfig(id_val="merge", options={})
    named = models.DataTransformerConfig(
        id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": names}
    )
    panel.with_transformation(merged).with_transformation(named)
    return _framed(panel, title, f"{shows} {over}", unit, steps).span(width).height(8)


def _target(number: int, query: Query) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(at_site(query.expr)).legend_format(query.legend)
    return target.ref_id(_letter(number)).datasource(DATASOURCE)


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _framed(panel: _P, title: str, description: str, unit: str, steps: Steps) -> _P:
    thresholds = [models.Threshold(value=value, color=color) for value, color in steps]
    return (
        panel.title(title)
        .description(description)
        .unit(unit)
        .no_value("not known")
        .datasource(DATASOURCE)
        .thresholds(dashboard.ThresholdsConfig().steps(thresholds))
    )
