"""The kinds of panel that the dashboards are made of, and what they share.

Each takes a title, what it shows (for the description), over what span, the unit as Grafana
names it, and queries. A query gets its refId by its place.
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

# Over what span a panel looks, in the words of its description.
NOW: Final = "Now."
MOMENT: Final = "At each moment."
STEP: Final = "Each point covers its own step of time."
WINDOW: Final = "Each point looks back over $window."
SPAN: Final = "Over the time range shown."
EVER: Final = "Since Outrider first ran here."

Steps: TypeAlias = tuple[tuple[float | None, str], ...]
"""Thresholds: from which value on, which colour; the first begins at None, minus infinity."""

NEUTRAL: Final[Steps] = ((None, "blue"),)
"""For what is neither good nor bad; without it Grafana would show red from 80 on."""
NONE_IS_GOOD: Final[Steps] = ((None, "green"), (1, "red"))

AnyPanel: TypeAlias = timeseries.Panel | stat.Panel | bargauge.Panel | table.Panel
_P = TypeVar("_P", timeseries.Panel, stat.Panel, bargauge.Panel, table.Panel)


class Query(NamedTuple):
    """One query of a panel, and the names of its series (`{{label}}` stands for a value)."""

    expr: str
    legend: str


class Row(NamedTuple):
    """A row of the dashboard.

    Attributes:
        title: of the row.
        mode: what its figures tell of in which mode; ends the description of each panel.
        panels: from left to right, line by line of 24 columns.
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
    """A chart over time; limits are dashed lines in it.

    Args:
        title: of the panel.
        shows: the first part of the description.
        over: its second part, one of `NOW` and so on.
        unit: Grafana's name of it.
        queries: asked for the whole time range.
        width: in 24ths of the page.
        steps: thresholds.
        stacked: areas on top of each other, where the sum means something.
        from_zero: whether the axis begins at zero.
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
    """Big numbers, one for each series as it is now; arguments as for `lines`."""
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
    """Lying bars, one for each series as it is now; arguments as for `lines`."""
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
    """A table as it is now: a row for each set of labels, and a column for each query.

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
