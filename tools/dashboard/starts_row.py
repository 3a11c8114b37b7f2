"""The row about expected starts: whether they are told, and how far they held."""

from typing import Final

from grafana_foundation_sdk.models.common import BigValueTextMode

from tools.dashboard.expressions import known
from tools.dashboard.panels import MOMENT, NOW, Query, Row, Steps, figures, lines

RULE: Final = "In every mode: under the batch system's own rule, whatever Outrider decides."
LATELY: Final = "Of the questions lately asked, since `outrider run-twin` began."
AGE: Final[Steps] = ((None, "green"), (300, "yellow"), (900, "red"))
COVERAGE: Final[Steps] = ((None, "red"), (0.6, "yellow"), (0.75, "green"))
"""An interval of 80 %: the goal is .75 to .85; an alert is raised below .6."""


def starts_row() -> Row:
    """The row."""
    return Row("Expected starts of waiting jobs", RULE, [
        figures("Expected starts", "Whether they are told; stale, failed or none: they are not "
                "shown anywhere.", NOW, "none",
                Query("outrider_starts_state == 1", "{{outrider_starts_state}}"),
                text=BigValueTextMode.NAME),
        figures("Age of expected starts", "By the site's clock; beyond 15 minutes they are stale.",
                NOW, "s", Query(known("outrider_starts_age_seconds"), "age"), steps=AGE),
        figures("Starts that were scored", "Foretold, and come: how many coverage and loss are "
                f"made of. {LATELY}", NOW, "none",
                Query(known("outrider_starts_scored"), "{{asked}}"), width=12),
        lines("Coverage of 80 % intervals", "Part of the starts that came within their interval, "
              "by when they were foretold: at submission, and at each full hour. It should be "
              f"80 %. {LATELY}", MOMENT, "percentunit",
              Query(known("outrider_starts_coverage_ratio"), "{{asked}}"),
              Query("vector(0.8)", "80 %"), width=8, steps=COVERAGE),
        lines("Pinball loss", "Mean loss of the three quantiles that were foretold; less is "
              f"better. {LATELY}", MOMENT, "s",
              Query(known("outrider_starts_pinball_seconds"), "{{asked}}"), width=8),
        lines("Waiting jobs by expected start", "In the next pass, known with an interval of 80 %, "
              "or not known: a new kind of burst.", MOMENT, "none",
              Query(known("outrider_starts_jobs"), "{{expected}}"), width=8, stacked=True),
    ])  # fmt: skip
