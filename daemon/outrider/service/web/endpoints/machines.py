"""Machines now."""

from typing import Any

from msgspec import UNSET, Struct

from outrider.model.machines import MachineSpec
from outrider.service.core import Core
from outrider.service.views.counts import machine_state
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import After, Next, page_of
from outrider.service.web.query import Limit
from outrider.service.web.shapes.values import Count, MachineState, Mode, Unknown


class MachinesQuery(Struct, frozen=True):
    """Which machines."""

    limit: Limit = 200
    after: After = UNSET


class MachineRow(Struct):
    """One machine now."""

    machine: str
    cluster: str
    state: MachineState
    cpus: Count
    busy_cpus: Count
    active_w: Unknown
    inferred: bool


class Machines(Struct):
    """Machines the daemon knows now; `total` counts those on other pages too."""

    mode: Mode
    now_s: float
    machines: list[MachineRow]
    total: Count
    next: Next = None


def machines(core: Core, limit: int, after: int = -1) -> Answer:
    """A page of the machines, in the order in which they became known."""
    known = [(m, spec) for m, spec in enumerate(core.site.specs) if spec is not None]
    page, cursor = page_of(
        ((m, _machine_row(core, m, spec)) for m, spec in known if m > after), limit
    )
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "machines": page,
        "total": len(known),
        "next": cursor,
    }


def _machine_row(core: Core, m: int, spec: MachineSpec) -> dict[str, Any]:
    site = core.site
    return {
        "machine": core.merger.normaliser.machine_names[m],
        "cluster": site.cluster_names[site.machine_cluster[m]],
        "state": machine_state(core, m),
        "cpus": site.cpus[m],
        "busy_cpus": site.busy[m],
        "active_w": spec.active_w,
        "inferred": spec.inferred,
    }


async def handle(call: Call[MachinesQuery]) -> Answer:
    """Answer from memory."""
    after = call.query.after
    return machines(call.view.core, call.query.limit, -1 if after is UNSET else after)


ENDPOINT = Endpoint(
    name="machines",
    path="/api/v1/machines",
    summary="Machines now.",
    handle=handle,
    query=MachinesQuery,
    answer=Machines,
)
