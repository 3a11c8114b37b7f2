"""Machines now."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.machines import MachineSpec
from outrider.service.core.core import Core
from outrider.service.views.counts import machine_state
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import After, Next, page_of
from outrider.service.web.query import Limit
from outrider.service.web.shapes.values import Count, MachineState, Mode, Unknown


class MachinesQuery(Struct, frozen=True):
    """Which machines."""

    limit: Limit = 200
    after: After = UNSET
    state: Annotated[MachineState | UnsetType, Meta(description="Only machines in this state.")] = (
        UNSET
    )
    cluster: Annotated[str | UnsetType, Meta(description="Only machines of this group.")] = UNSET


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


def machines(
    core: Core, limit: int, after: int = -1, state: str | None = None, cluster: str | None = None
) -> Answer:
    """A page of the machines, all or some, in the order in which they became known.

    Args:
        core: the daemon's.
        limit: at most so many.
        after: only machines of a higher number.
        state: only machines in it; None: all.
        cluster: only machines of this group; None: all.
    """
    site = core.site
    known = [
        (m, spec)
        for m, spec in enumerate(site.specs)
        if spec is not None
        and (cluster is None or site.cluster_names[site.machine_cluster[m]] == cluster)
        and (state is None or machine_state(core, m) == state)
    ]
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
    query = call.query
    after = -1 if query.after is UNSET else query.after
    state = None if query.state is UNSET else query.state
    cluster = None if query.cluster is UNSET else query.cluster
    return machines(call.view.core, query.limit, after, state, cluster)


ENDPOINT = Endpoint(
    name="machines",
    path="/api/v1/machines",
    summary="Machines now.",
    handle=handle,
    query=MachinesQuery,
    answer=Machines,
)
