"""Previews of dashboards: they draw the given data, and say that Grafana did not draw them."""

import math
import re

import pytest

from tests.dashboards.watched_sites import dashboards
from tools.dashboard.drawing import chart, number
from tools.dashboard.previews import NOTE, POINTS, Site, preview


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.125, "percentunit", "12.5%"), (7_200.0, "s", "2 h"), (12_345.0, "watt", "12.3 kW"),
        (3.0, "kwatth", "3 kWh"), (1_330.0, "kwatth", "1.33 MWh"),
        (2.5, "currencyEUR", "2.5 EUR"), (1_500.0, "none", "1.5 k"),
        (math.nan, "watt", "not known"),
    ],
)  # fmt: skip
def test_a_value_is_told_in_its_unit(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


def test_a_chart_has_a_line_for_each_series_and_gaps_where_nothing_is_known() -> None:
    lines = [("a", [0.0, math.nan, 2.0]), ("<b>", [1.0, 1.0, 1.0])]
    drawn = chart(lines, "none", stacked=False, width=600, height=108)
    first, second = re.findall(r'<path d="(M[^"]+)" fill="none" stroke="#[0-9a-f]{6}" ', drawn)
    assert first == "M58.0,104.0 M600.0,4.0"
    assert second == "M58.0,54.0 L329.0,54.0 L600.0,54.0"
    assert "&lt;b&gt;" in drawn
    assert chart([("a", [math.nan])], "none", stacked=False, width=600, height=100) == "not known"


def test_stacked_lines_stand_upon_each_other() -> None:
    drawn = chart(
        [("a", [1.0, 1.0]), ("b", [math.nan, 1.0])], "none", stacked=True, width=600, height=108
    )
    assert 'd="M58.0,54.0 L600.0,4.0"' in drawn


class OfTests(Site):
    """Answers without a Prometheus: each query has one series, counting up."""

    def __init__(self) -> None:
        self._values = {}

    def _query(self, call: str, expression: str) -> list[tuple[dict[str, str], list[float]]]:
        n = 1 if call == "query" else POINTS + 1
        return [({"policy": "fifo", "outrider_mode": "shadow"}, [float(k) for k in range(n)])]


@pytest.mark.parametrize("name", sorted(dashboards("grafana")))
def test_each_panel_is_there_and_so_is_what_a_preview_is_not(name: str) -> None:
    dashboard = dashboards("grafana")[name]
    text, height = preview(dashboard, OfTests())
    assert NOTE in text
    assert "Not a picture of Grafana" in NOTE
    titles = re.findall(r"<h[23][^>]*>([^<]+)</h[23]>", text)
    assert len(titles) == len(dashboard["panels"])
    assert text.count("<svg") == sum(panel["type"] == "timeseries" for panel in dashboard["panels"])
    assert height > 400
