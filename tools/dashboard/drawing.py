"""Charts and figures of the previews, as SVG and HTML."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

COLOURS: Final = (
    "#3274d9",
    "#e0752d",
    "#37872d",
    "#8f3bb8",
    "#b58900",
    "#c4162a",
    "#3f6833",
    "#777",
)
LEFT: Final = 58
MAX_NAMED: Final = 8
SCALES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
Series = Sequence[tuple[str, Sequence[float]]]


def number(value: float, unit: str) -> str:
    """Return a value in Grafana's unit as text for people."""
    if not math.isfinite(value):
        return "not known"
    if unit == "percentunit":
        return f"{value:.1%}"
    if unit == "dateTimeAsIso":
        return datetime.fromtimestamp(value / 1000.0, UTC).strftime("%Y-%m-%d %H:%M")
    if unit == "s":
        for span_s, name in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
            if abs(value) >= span_s:
                return f"{value / span_s:.3g} {name}"
        return f"{value:.3g} s"
    if unit == "kwatth":
        value *= 1e3
    sign = {"watt": " W", "kwatth": " Wh", "bytes": "B", "currencyEUR": " EUR"}.get(unit, "")
    for scale, letter in SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {letter}{sign.strip()}"
    return f"{value:.3g}{sign}"


def figure_list(figures: Sequence[tuple[str, str]]) -> str:
    """Return names and values as an HTML table."""
    rows = "".join(f"<tr><td>{escape(n)}<td><b>{escape(v)}</b>" for n, v in figures)
    return f"<table>{rows}</table>"


def chart(series: Series, unit: str, *, stacked: bool, width: int, height: int) -> str:
    """Return a line chart as SVG, with minimum and maximum at the left; NaN is a gap.

    Args:
        series: values by name, all of one length.
        unit: Grafana's name of the unit.
        stacked: True to stack the series.
        width: in pixels.
        height: in pixels.
    """
    drawn = _stacked(series) if stacked else [list(values) for _, values in series]
    known = [value for values in drawn for value in values if math.isfinite(value)]
    if not known:
        return "not known"
    low, high = min(0.0, *known), max(known)
    high = high if high > low else low + 1.0
    lines = []
    for place, values in enumerate(drawn):
        colour = COLOURS[place % len(COLOURS)]
        steps = max(1, len(values) - 1)
        path, pen = [], "M"
        for step, value in enumerate(values):
            if not math.isfinite(value):
                pen = "M"
                continue
            x = LEFT + (width - LEFT) * step / steps
            y = 4 + (height - 8) * (high - value) / (high - low)
            path.append(f"{pen}{x:.1f},{y:.1f}")
            pen = "L"
        lines.append(
            f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
    ends = (
        f'<text x="2" y="13" font-size="11">{number(high, unit)}</text>'
        f'<text x="2" y="{height - 4}" font-size="11">{number(low, unit)}</text>'
        f'<path d="M{LEFT},4 V{height - 4} H{width}" fill="none" stroke="#ccc"/>'
    )
    names = " ".join(
        f'<span style="color:{COLOURS[n % len(COLOURS)]}">&#9632;</span>&nbsp;{escape(name)}'
        for n, (name, _) in enumerate(series[:MAX_NAMED])
    )
    more = f" and {len(series) - MAX_NAMED} more" if len(series) > MAX_NAMED else ""
    box = f'viewBox="0 0 {width} {height}" style="height:{height}px"'
    return f'<svg {box}>{ends}{"".join(lines)}</svg><div class="legend">{names}{more}</div>'


def _stacked(series: Series) -> list[list[float]]:
    """Return cumulative sums of the series; unknown values count as zero, as in Grafana."""
    sums: list[list[float]] = []
    for _, values in series:
        below = sums[-1] if sums else [0.0] * len(values)
        known = [value if math.isfinite(value) else 0.0 for value in values]
        sums.append([a + b for a, b in zip(below, known, strict=True)])
    return sums
