"""The dashboard of the evidence: its variables, and the rows of `twin_rows` and `starts_row`."""

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from outrider.service.metrics.declarations.evidence import MEASURES
from tools.dashboard.building import choice, page, written
from tools.dashboard.starts_row import starts_row
from tools.dashboard.twin_rows import twin_rows

ABOUT = (
    "Shadow against reality: what policies would have taken and will, with intervals and the age "
    "of the answer, and how far expected starts hold."
)


def evidence_dashboard() -> str:
    """The dashboard as the JSON that Grafana imports; the same bytes each time."""
    site = page("Outrider: evidence", "outrider-evidence", ABOUT, "now-30d", "5m")
    policies = "label_values(outrider_twin_candidate_state, policy)"
    site.with_variable(choice("policy", "Policy", policies))
    site.with_variable(_measure())
    return written(site, [*twin_rows(), starts_row()])


def _measure() -> dashboard.CustomVariable:
    first = MEASURES[0]
    options = [models.VariableOption(text=m, value=m, selected=m == first) for m in MEASURES]
    return (
        dashboard.CustomVariable("measure")
        .label("Measure")
        .description("What the charts of candidates compare.")
        .values(",".join(MEASURES))
        .options(options)
        .current(options[0])
    )
