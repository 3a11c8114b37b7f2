"""The row about expected starts: their state and accuracy."""

from typing import Final

from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import known
from tools.dashboard.panels import MOMENT, NOW, Query, Row, Steps, figures, lines

RULE: Final = "In every mode: under the batch system's own rule, without Outrider's decisions."
RECENT: Final = "Of recent forecasts, since `outrider run-twin` started."
AGE: Final[Steps] = ((None, "green"), (300, "yellow"), (900, "red"))
COVERAGE: Final[Steps] = ((None, "red"), (0.6, "yellow"), (0.75, "green"))
"""Thresholds of an 80 % interval: the goal is .75 to .85; an alert fires below .6."""


def starts_row() -> Row:
    """Return the row about expected starts."""
    return Row("Expected starts of waiting jobs", RULE, [
        figures("Expected starts", "State. If it is stale, failed or none, expected starts are "
                "not shown.", NOW, "none",
                Query("outrider_starts_state == 1", "{{outrider_starts_state}}"),
                text=BigValueTextMode.NAME),
        figures("Age of expected starts", "By the site's clock; stale after 15 minutes.",
                NOW, "s", Query(known("outrider_starts_age_seconds"), "age"), steps=AGE),
        figures("Scored starts", "Forecast starts that have occurred: the basis of coverage and "
                f"loss. {RECENT}", NOW, "none",
                Query(known("outrider_starts_scored"), "{{asked}}"), width=12),
        lines("Coverage of 80 % intervals", "Share of the starts within their interval, for "
              "forecasts at submission and at each full hour. It should be "
              f"80 %. {RECENT}", MOMENT, "percentunit",
              Query(known("outrider_starts_coverage_ratio"), "{{asked}}"),
              Query("vector(0.8)", "80 %"), width=8, steps=COVERAGE),
        lines("Pinball loss", "Mean loss of the three forecast quantiles; less is "
              f"better. {RECENT}", MOMENT, "s",
              Query(known("outrider_starts_pinball_seconds"), "{{asked}}"), width=8),
        lines("Waiting jobs by expected start", "In the next pass, known with an 80 % interval, "
              "or not known (a new kind of burst).", MOMENT, "none",
              Query(known("outrider_starts_jobs"), "{{expected}}"), width=8, stacked=True),
    ])  # fmt: skip
