"""Endpoints of machines: the list of all, and one with its history."""

from typing import Annotated

import structlog
from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.errors import LedgerError
from outrider.service.core.core import Core
from outrider.service.shapes.site import Machines, OneMachine
from outrider.service.shapes.values import Failure, MachineState
from outrider.service.views.one_machine import machine_now, machine_row, number_of
from outrider.service.views.sentences import no_data
from outrider.service.views.status import machine_state
from outrider.service.web.endpoint import (
    After,
    Call,
    Endpoint,
    Limit,
    NoQuery,
    NotFoundError,
    json_response,
    page_of,
)


class MachinesQuery(Struct, frozen=True):
    """Parameters of the list of machines."""

    limit: Limit = 200
    after: After = UNSET
    state: Annotated[MachineState | UnsetType, Meta(description="Only machines in this state.")] = (
        UNSET
    )
    cluster: Annotated[str | UnsetType, Meta(description="Only machines of this group.")] = UNSET


def machines(
    core: Core, limit: int, after: int = -1, state: str | None = None, cluster: str | None = None
) -> Machines:
    """Return a page of the machines, all or some, in the order in which they became known.

    Args:
        core: core of the daemon.
        limit: most rows.
        after: only machines with a higher number.
        state: only machines in this state; None: all.
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
        ((m, machine_row(core, m, spec)) for m, spec in known if m > after), limit
    )
    return Machines(
        mode=core.config.mode,
        now_s=core.now_s,
        machines=page,
        total=len(known),
        next=cursor,
        no_data=no_data(core),
    )


async def handle(call: Call[MachinesQuery]) -> Machines:
    """Answer from memory with a page of machines."""
    query = call.query
    after = -1 if query.after is UNSET else query.after
    state = None if query.state is UNSET else query.state
    cluster = None if query.cluster is UNSET else query.cluster
    return machines(call.view.core, query.limit, after, state, cluster)


MACHINES = Endpoint(
    name="machines",
    path="/api/v1/machines",
    summary="Machines with their current state.",
    handle=handle,
    query=MachinesQuery,
    answer=Machines,
)


# -- machine ---------------------------------------------------------------------------------------
# One machine: its current state and its history.

log = structlog.get_logger()


async def answer_machine(call: Call[NoQuery]) -> OneMachine | web.Response:
    """Answer from memory and from the journal, read in a thread; 404 for an unknown machine."""
    view, machine = call.view, call.request.match_info["machine"]
    answer = None
    if number_of(view.core, machine) is not None:
        try:
            history = await view.machine_histories.of(machine, view.core, view.journal)
        except (LedgerError, TimeoutError) as error:
            log.warning("machine_history_failed", machine=machine, error=str(error))
            return json_response({"error": "the journal cannot be read now; see the log"}, 503)
        answer = await machine_now(view.core, machine, history)
    if answer is None:
        raise NotFoundError(f"no machine {machine!r} is known here")
    return answer


MACHINE = Endpoint(
    name="machine",
    path="/api/v1/machine/{machine}",
    summary="One machine: state, jobs, last runs, failed starts, watts and its owner's week. Its "
    "name is percent-encoded.",
    handle=answer_machine,
    query=NoQuery,
    answer=OneMachine,
    reads_journal=True,
    others={404: Failure, 503: Failure},
)

ENDPOINTS = (MACHINES, MACHINE)
