"""Previews of the dashboards for the pages: `python -m tools.dashboard.previews PROMETHEUS FOLDER`.

Each preview shows a Prometheus' answers to the dashboard's queries as plain charts, photographed in
Chromium. Grafana is not used, and each picture says so.
"""

import argparse
import json
import math
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from html import escape
from pathlib import Path
from typing import Any, Final

from tools.dashboard.drawing import chart, figure_list, number

ROOT: Final = Path(__file__).parents[2] / "dashboards" / "grafana"
POINTS: Final = 120
ROW_PX: Final = 38
WIDTH_PX: Final = 1600
NOTE: Final = (
    "Preview: drawn by tools/dashboard/previews.py from a Prometheus' answers to the dashboard's "
    "queries. Not a picture of Grafana, which draws it differently."
)
STYLE: Final = f"""
body {{ font: 13px system-ui, sans-serif; margin: 0; background: #f4f5f5; color: #222 }}
h1 {{ font-size: 20px; margin: 12px }} h2 {{ font-size: 14px; margin: 6px 0 0 }}
.note {{ background: #fde9a9; padding: 8px 12px; font-weight: 600 }}
main {{ display: grid; grid-template-columns: repeat(24, 1fr); grid-auto-rows: {ROW_PX}px; gap: 4px;
  padding: 8px }}
section {{ background: #fff; border: 1px solid #ddd; padding: 6px; overflow: hidden }}
section h3 {{ font-size: 12px; margin: 0 0 4px }} svg {{ width: 100%; height: 100% }}
.legend {{ font-size: 11px; color: #555 }} table {{ font-size: 12px; border-spacing: 8px 0 }}
"""


class Site:
    """One Outrider in a Prometheus.

    Args:
        url: address of the Prometheus.
        span_s: time range of the charts, in seconds.
    """

    def __init__(self, url: str, span_s: float) -> None:
        self._url = url
        self._span_s = span_s
        ((labels, _),) = self._query("query", "outrider_build_info")
        self._values = {
            "instance": labels["instance"], "__range": f"{span_s:.0f}s", "window": "5m",
            "__rate_interval": "1m", "__interval": "15s", "price": "0.30", "measure": "energy",
        }  # fmt: skip

    def answers(self, panel: dict[str, Any]) -> list[tuple[str, list[float]]]:
        """Return a panel's series by legend, one value each for figures; NaN is no value."""
        found = []
        for target in panel["targets"]:
            expression = self._filled(target["expr"])
            call = "query" if target["instant"] else "query_range"
            for labels, values in self._query(call, expression):
                legend = target["legendFormat"]
                for label, value in labels.items():
                    legend = legend.replace(f"{{{{{label}}}}}", value)
                if panel["type"] == "table":
                    legend = f"{labels.get('policy', '')} {labels.get('measure', '')} {legend}"
                found.append((legend, values))
        return found

    def _filled(self, expression: str) -> str:
        return re.sub(r"\$(\w+)", lambda m: self._values.get(m[1], ".*"), expression)

    def _query(self, call: str, expression: str) -> list[tuple[dict[str, str], list[float]]]:
        asked = {"query": expression}
        now_s, step_s = time.time(), self._span_s / POINTS
        times = [now_s - self._span_s + n * step_s for n in range(POINTS + 1)]
        if call == "query_range":
            asked |= {"start": str(times[0]), "end": str(times[-1]), "step": str(step_s)}
        url = f"{self._url}/api/v1/{call}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - given by the caller
            rows = json.load(answer)["data"]["result"]
        if call == "query":
            return [(row["metric"], [float(row["value"][1])]) for row in rows]
        return [(row["metric"], _in_place(row["values"], times[0], step_s)) for row in rows]


def _in_place(values: list[tuple[float, str]], begin_s: float, step_s: float) -> list[float]:
    """Return a value for each point in time; NaN if there is none."""
    placed = [math.nan] * (POINTS + 1)
    for at_s, value in values:
        placed[round((at_s - begin_s) / step_s)] = float(value)
    return placed


def preview(dashboard: dict[str, Any], site: Site) -> tuple[str, int]:
    """Return a dashboard as an HTML page, and its height in pixels."""
    parts = []
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        place = (
            f"grid-column: {at['x'] + 1} / span {at['w']}; grid-row: {at['y'] + 1} / span {at['h']}"
        )
        if panel["type"] == "row":
            parts.append(f'<h2 style="{place}">{escape(panel["title"])}</h2>')
            continue
        series, unit = site.answers(panel), panel["fieldConfig"]["defaults"]["unit"]
        stacked = "stacking" in json.dumps(panel["fieldConfig"])
        if not series:
            body = escape(panel["fieldConfig"]["defaults"].get("noValue", ""))
        elif panel["type"] == "timeseries":
            width, height = at["w"] * WIDTH_PX // 24 - 40, at["h"] * ROW_PX - 60
            body = chart(series, unit, stacked=stacked, width=width, height=height)
        elif panel.get("options", {}).get("textMode") == "name":
            body = escape(", ".join(legend for legend, _ in series))
        else:
            body = figure_list([(legend, number(v[-1], unit)) for legend, v in series])
        parts.append(f'<section style="{place}"><h3>{escape(panel["title"])}</h3>{body}</section>')
    last = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"])
    head = f'<div class="note">{NOTE}</div><h1>{escape(dashboard["title"])}</h1>'
    text = f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{head}<main>{''.join(parts)}"
    return f"{text}</main>", last * (ROW_PX + 4) + 110


def main() -> None:
    """Write an HTML page and a picture of each dashboard."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prometheus", help="address of a Prometheus that scrapes one Outrider")
    parser.add_argument("folder", type=Path, help="folder for pages and pictures")
    parser.add_argument("--since-s", type=float, default=900.0, help="time range, seconds")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="the browser")
    arguments = parser.parse_args()
    site = Site(arguments.prometheus, arguments.since_s)
    for file in sorted(ROOT.glob("*.json")):
        text, height = preview(json.loads(file.read_text()), site)
        page = arguments.folder / f"{file.stem}.html"
        page.write_text(text)
        if arguments.chromium is None:
            print(f"Chromium not found: wrote only the page {page}")
            continue
        picture = page.with_suffix(".png")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = f"--window-size={WIDTH_PX},{height}"
        command = [
            arguments.chromium,
            *flags,
            size,
            f"--screenshot={picture}",
            page.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        print(f"written: {picture}")


if __name__ == "__main__":
    main()
