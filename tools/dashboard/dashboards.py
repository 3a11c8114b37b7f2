"""The dashboards: title, variables and rows of each."""

from collections.abc import Callable, Mapping
from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models import dashboard as models

from outrider.service.metrics.declarations.evidence import MEASURES
from tools.dashboard.building import (
    CLASS,
    CLUSTER,
    POLICY,
    VO,
    choice,
    page,
    single_or_more,
    window,
    written,
)
from tools.dashboard.energy_rows import energy_rows
from tools.dashboard.health_rows import health_rows
from tools.dashboard.now_rows import now_rows
from tools.dashboard.policy_rows import policy_rows
from tools.dashboard.sources import SOURCES, Source
from tools.dashboard.twin_rows import twin_rows
from tools.dashboard.waiting_rows import waiting_rows

PRICE: Final = "0.30"
CANDIDATES: Final = "label_values(outrider_twin_candidate_state, policy)"


def site(source: Source) -> str:
    """Return the dashboard of the site's current state."""
    about = "The site now: alerts, jobs, machines, recent events."
    page_ = page("Outrider: site now", "outrider-site", about, "now-6h", "1m", source)
    if source.sees_slots:
        page_.with_variable(choice(*CLUSTER))
    return written(page_.with_variable(window()), now_rows(source))


def waiting(source: Source) -> str:
    """Return the dashboard of waits and fairness."""
    about = "Waits by VO and class, shares and targets, and expected starts."
    page_ = page(
        "Outrider: waiting and fairness", "outrider-waiting", about, "now-24h", "1m", source
    )
    for one in (choice(*VO), choice(*CLASS), window()):
        page_.with_variable(one)
    return written(page_, waiting_rows())


def energy(source: Source) -> str:
    """Return the dashboard of energy and waste, or of waste alone."""
    title = "Outrider: energy and waste" if source.has_watts else "Outrider: waste"
    about = "Wasted CPU time and its causes; kWh and costs if watts are known."
    page_ = page(title, "outrider-energy", about, "now-7d", "5m", source)
    page_.with_variable(choice(*CLUSTER)).with_variable(window())
    if source.has_watts:
        page_.with_variable(
            dashboard.TextBoxVariable("price")
            .label("Price per kWh")
            .description("In the currency of the cost panels.")
            .default_value(PRICE)
            .current(models.VariableOption(selected=True, text=PRICE, value=PRICE))
        )
    return written(page_, energy_rows(source))


def policies(source: Source) -> str:
    """Return the dashboard of the policies' decisions."""
    about = "Each policy's decisions, accuracy of its predictions, and applied changes."
    page_ = page("Outrider: policies", "outrider-policies", about, "now-24h", "1m", source)
    return written(page_.with_variable(choice(*POLICY)).with_variable(window()), policy_rows())


def evidence(source: Source) -> str:
    """Return the dashboard that compares policies with the batch system."""
    about = (
        "Policies compared with your scheduler: estimates for the past and a forecast, with "
        "intervals, the age of the answer, and the fidelity of the simulation."
    )
    page_ = page("Outrider: policies compared", "outrider-evidence", about, "now-30d", "5m", source)
    charted = single_or_more("policy", "Policy", CANDIDATES)
    charted.description("Policies with charts; the tables show every candidate.")
    page_.with_variable(charted).with_variable(_measure(source))
    return written(page_, twin_rows(source))


def health(source: Source) -> str:
    """Return the dashboard of Outrider's own health."""
    about = "Outrider's own health: input, journal, memory and CPU."
    return written(
        page("Outrider: its own health", "outrider-health", about, "now-24h", "1m", source),
        health_rows(),
    )


def _measure(source: Source) -> dashboard.CustomVariable:
    measures = [m for m in MEASURES if source.has_watts or m != "energy"]
    options = [models.VariableOption(text=m, value=m, selected=m == measures[0]) for m in measures]
    return (
        dashboard.CustomVariable("measure")
        .label("Measure")
        .description("Measure shown in the charts of candidates.")
        .values(",".join(measures))
        .options(options)
        .current(options[0])
    )


_MADE: Final[Mapping[str, Callable[[Source], str]]] = {
    "outrider-energy": energy,
    "outrider-evidence": evidence,
    "outrider-health": health,
    "outrider-policies": policies,
    "outrider-site": site,
    "outrider-waiting": waiting,
}


def dashboards() -> dict[str, Callable[[], str]]:
    """Return the function that makes the JSON of each dashboard file in the repository."""

    def of(make: Callable[[Source], str], source: Source) -> Callable[[], str]:
        return lambda: make(source)

    return {
        f"dashboards/{source.folder}/{name}{source.uid_suffix}.json": of(make, source)
        for source in SOURCES
        for name, make in _MADE.items()
    }
