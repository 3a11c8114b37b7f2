"""Charts as SVG text, by matplotlib: every axis has its unit, every chart its legend."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from typing import Any, Final, NamedTuple, TypeVar

from outrider.model.errors import ConfigurationError

_INCHES: Final = (7.2, 4.2)
_MARKERS: Final = "osD^vPX*<>ph"
_COLOURS: Final = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933",
    "#882255", "#44aa99", "#661100", "#888888",
)  # fmt: skip
"""Colours that people who see fewer colours can distinguish too (Okabe and Ito, then Tol)."""
_MOST_MARKERS: Final = 20
"""Along a longer line they hide each other."""
_MOST_LEVEL_NAMES: Final = 6
"""More names below bars would run into each other."""
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: it can be read, searched and tested
    "svg.hashsalt": "outrider",  # the same figures give the same bytes
    "axes.grid": True,
    "grid.alpha": 0.3,
    "font.size": 9,
}

Row = TypeVar("Row")


class Series(NamedTuple):
    """Points of one name; `error` is a standard error each, None where there is none."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float | None] | None = None


class Spread(NamedTuple):
    """A figure with its interval, None where there is none, and how many it is from."""

    label: str
    middle: float
    interval: tuple[float, float] | None
    n: int


def require_matplotlib(wanted_by: str) -> None:
    """Check that charts can be drawn. Raises `ConfigurationError`."""
    if find_spec("matplotlib") is None:
        raise ConfigurationError(
            f"{wanted_by}: needs matplotlib, which is not installed; "
            "pip install 'outrider[reports]' brings it"
        )


def there(policies: Iterable[object], rows: Mapping[str, Row]) -> list[Row]:
    """Return the rows of policies, by their words; one whose runs all failed has none."""
    return [rows[str(policy)] for policy in policies if str(policy) in rows]


def line_chart(
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    *,
    joined: bool = True,
    log_x: bool = False,
    level: tuple[str, float] | None = None,
) -> str:
    """Return lines, or points that are not `joined`.

    Args:
        x_label: with its unit.
        y_label: with its unit.
        series: in the order of the legend.
        joined: draw the lines.
        log_x: logarithmic x axis.
        level: (label, y) of a horizontal line to compare with.
    """
    axes = _axes(x_label, y_label)
    for number, one in enumerate(series):
        error = None
        if one.error is not None:
            error = [0.0 if e is None else e for e in one.error]
        marker = _MARKERS[number % len(_MARKERS)] if len(one.x) <= _MOST_MARKERS else ""
        axes.errorbar(
            one.x, one.y, yerr=error, label=one.label, capsize=2, markersize=5,
            marker=marker, color=_COLOURS[number % len(_COLOURS)],
            linestyle="-" if joined else "none",
        )  # fmt: skip
    if level is not None:
        axes.axhline(level[1], label=level[0], color="#555555", linestyle="--")
    if log_x:
        axes.set_xscale("log")
    return _svg(axes)


def bar_chart(
    x_label: str,
    y_label: str,
    groups: Sequence[str],
    bars: Mapping[str, Sequence[float]],
    *,
    stacked: bool = False,
    level: tuple[str, float] | None = None,
) -> str:
    """Return bars by group, next to each other or stacked.

    Args:
        x_label: with its unit.
        y_label: with its unit.
        groups: names below the bars.
        bars: (groups,) heights by label.
        stacked: one on the other.
        level: (label, y) of a horizontal line to compare with.
    """
    axes = _axes(x_label, y_label)
    width = 0.8 if stacked else 0.8 / max(1, len(bars))
    base = [0.0] * len(groups)
    for number, (label, heights) in enumerate(bars.items()):
        left = 0.0 if stacked else (number - (len(bars) - 1) / 2) * width
        places = [at + left for at in range(len(groups))]
        colour = _COLOURS[number % len(_COLOURS)]
        axes.bar(places, heights, width, bottom=base, label=label, color=colour)
        if stacked:
            base = [below + height for below, height in zip(base, heights, strict=True)]
    tilt = {"rotation": 60, "ha": "right"} if len(groups) > _MOST_LEVEL_NAMES else {}
    axes.set_xticks(range(len(groups)), groups, **tilt)
    if level is not None:
        axes.axhline(level[1], label=level[0], color="#555555", linestyle="--")
    return _svg(axes)


def interval_chart(panels: Mapping[str, Sequence[Spread]]) -> str:
    """Return intervals as horizontal bars around a point, one below the other, with a line at 0.

    A figure without an interval is a hollow point.

    Args:
        panels: by the label of the x axis, with its unit; each has an axis of its own.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    lines = sum(len(spreads) + 2 for spreads in panels.values())
    with mpl.rc_context(_STYLE):
        drawing = Figure((_INCHES[0] * 1.5, 0.8 + 0.3 * lines), layout="constrained")
        heights = [len(spreads) + 2 for spreads in panels.values()]
        several = drawing.subplots(max(1, len(panels)), squeeze=False, height_ratios=heights or [1])
        for (label, spreads), axes in zip(panels.items(), several[:, 0], strict=False):
            for at, one in enumerate(spreads):
                reach = None
                if one.interval is not None:
                    low, high = one.interval
                    reach = [[one.middle - low], [high - one.middle]]
                axes.errorbar(
                    [one.middle], [at], xerr=reach, marker="o", capsize=3, color=_COLOURS[0],
                    markerfacecolor=_COLOURS[0] if reach else "none",
                )  # fmt: skip
            names = [f"{one.label} (n = {one.n})" for one in spreads]
            axes.set_yticks(range(len(spreads)), names)
            axes.set_ylim(len(spreads) - 0.5, -0.5)
            axes.axvline(0.0, color="#555555", linestyle="--")
            axes.set_xlabel(label)
    return _svg(several[-1, 0])


def _axes(x_label: str, y_label: str) -> Any:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        axes = Figure(_INCHES, layout="constrained").add_subplot()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_axisbelow(True)
    return axes


def _svg(axes: Any) -> str:
    """Return the drawing as one element, without the head of an XML file, to stand in a page."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    text = StringIO()
    with mpl.rc_context(_STYLE):
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        # not by `savefig`, which draws everything once before only to lay it out
        canvas: Any = FigureCanvasSVG(axes.figure)
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
