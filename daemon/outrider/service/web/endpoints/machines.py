"""Machines now."""

from msgspec import Struct

from outrider.service.core import Core
from outrider.service.views.counts import machine_state
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.query import Limit
from outrider.service.web.shapes.values import Count, MachineState, Mode, Unknown


class MachinesQuery(Struct, frozen=True):
    """How many machines."""

    limit: Limit = 200


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
    """Machines the daemon knows now; `total` counts those beyond the limit too."""

    mode: Mode
    now_s: float
    machines: list[MachineRow]
    total: Count


def machines(core: Core, limit: int) -> Answer:
    """The first `limit` machines."""
    site, names = core.site, core.merger.normaliser.machine_names
    rows = [
        {
            "machine": names[m],
            "cluster": site.cluster_names[site.machine_cluster[m]],
            "state": machine_state(core, m),
            "cpus": site.cpus[m],
            "busy_cpus": site.busy[m],
            "active_w": spec.active_w,
            "inferred": spec.inferred,
        }
        for m, spec in enumerate(site.specs)
        if spec is not None
    ]
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "machines": rows[:limit],
        "total": len(rows),
    }


async def handle(call: Call[MachinesQuery]) -> Answer:
    """Answer from memory."""
    return machines(call.view.core, call.query.limit)


ENDPOINT = Endpoint(
    name="machines",
    path="/api/v1/machines",
    summary="Machines now.",
    handle=handle,
    query=MachinesQuery,
    answer=Machines,
)
