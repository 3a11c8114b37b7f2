"""Rows about waiting and fairness, by VO and class."""

from typing import Final

from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard.expressions import known, quantile, share
from tools.dashboard.now_rows import ALWAYS, HOURLY, SEEN, inputs, mode
from tools.dashboard.panels import MOMENT, NOW, SPAN, WINDOW, Query, Row, Steps, bars, lines
from tools.dashboard.starts_row import starts_row

FAIR: Final[Steps] = ((None, "red"), (0.5, "yellow"), (0.8, "green"))
WAITS: Final = 'outrider_job_wait_seconds_{}{{vo=~"$vo", class=~"$class"}}'
DASHED: Final = models.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 8]})


def waiting_rows() -> list[Row]:
    """Return the rows in their order on the dashboard."""
    head = Row("Outrider", ALWAYS, [mode(), *inputs()])
    return [head, _queue(), _waits(), _fairness(), starts_row()]


def _queue() -> Row:
    def of(state: str) -> str:
        return known(f'outrider_vo_jobs{{state="{state}", vo=~"$vo"}}')

    waited = known('outrider_vo_longest_wait_seconds{vo=~"$vo"}')
    return Row("Queue now, by VO", SEEN, [
        lines("Waiting jobs by VO", "Jobs in the queue, including evicted ones.", MOMENT,
              "none", Query(of("queued"), "{{vo}}"), width=8),
        lines("Running jobs by VO", "Jobs on machines.", MOMENT, "none",
              Query(of("running"), "{{vo}}"), width=8),
        lines("Longest wait by VO", "Wait so far of the job that waits longest for its first "
              "start; 0: none waits.", MOMENT, "s", Query(waited, "{{vo}}"), width=8),
    ])  # fmt: skip


def _waits() -> Row:
    total, count, buckets = (WAITS.format(part) for part in ("sum", "count", "bucket"))

    def mean(label: str, span: str) -> str:
        part, whole = (f"sum by ({label}) (increase({x}[{span}]))" for x in (total, count))
        return share(part, whole)

    return Row("Waits: from submission to first start", SEEN, [
        bars("Mean wait by class", "Without jobs that have not started yet.", SPAN, "s",
             Query(mean("class", "$__range"), "{{class}}")),
        bars("Mean wait by VO", "Without jobs that have not started yet.", SPAN, "s",
             Query(mean("vo", "$__range"), "{{vo}}")),
        lines("Wait by class: 50, 90, 99 %", "Percentiles, interpolated within a bucket of the "
              "histogram.", WINDOW, "s",
              *(Query(quantile(q, buckets, "$window", "class"), f"{{{{class}}}} {q:.0%}")
                for q in (0.5, 0.9, 0.99))),
        lines("Wait by VO: 90 %", "90th percentile: nine of ten jobs waited less.", WINDOW, "s",
              Query(quantile(0.9, buckets, "$window", "vo"), "{{vo}}")),
        lines("Mean wait by class and VO", "No point if no job started.", WINDOW, "s",
              Query(mean("class, vo", "$window"), "{{class}} {{vo}}")),
        lines("First starts per hour", "Number of waits in the other panels.", WINDOW,
              "none",
              Query(f"sum by (class, vo) (rate({count}[$window])) * {HOURLY}",
                    "{{class}} {{vo}}"), width=24, stacked=True),
    ])  # fmt: skip


def _fairness() -> Row:
    got = known('outrider_vo_share_ratio{vo=~"$vo"}')
    target = known('outrider_vo_target_ratio{vo=~"$vo"}')
    shares = lines(
        "Share and target by VO", "Share of all CPU time delivered since the beginning; dashed: "
        "the VO's target share.", MOMENT, "percentunit",
        Query(got, "{{vo}}"), Query(target, "{{vo}} target"),
    ).override_by_query("B", [DASHED])  # fmt: skip
    return Row("Fairness and shares", SEEN, [
        lines("Fairness", "1: every VO got its target share. Since the beginning, and for "
              "recent use (half-life as configured).", MOMENT, "none",
              Query(known("outrider_fairness_utility_ratio"), "since the beginning"),
              Query(known("outrider_fairness_windowed_ratio"), "recent"),
              width=8, steps=FAIR, from_zero=False),
        shares.span(8),
        bars("Share minus target by VO", "Above zero: more than its target share.", NOW,
             "percentunit", Query(f"{got} - {target}", "{{vo}}"), width=8),
    ])  # fmt: skip
