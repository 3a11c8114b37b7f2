"""Endpoints of machines: the list of all, and one with its history."""

from typing import Annotated, Any

import structlog
from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.errors import LedgerError
from outrider.model.machines import MachineSpec
from outrider.service.core.core import Core
from outrider.service.views.one_machine import machine_now, number_of
from outrider.service.views.status import machine_state
from outrider.service.web.endpoint import (
    After,
    Answer,
    Call,
    Endpoint,
    Limit,
    Next,
    NoQuery,
    NotFoundError,
    json_response,
    page_of,
)
from outrider.service.web.shapes.values import Count, Failure, JobState, MachineState, Mode, Unknown


class MachinesQuery(Struct, frozen=True):
    """Parameters of the list of machines."""

    limit: Limit = 200
    after: After = UNSET
    state: Annotated[MachineState | UnsetType, Meta(description="Only machines in this state.")] = (
        UNSET
    )
    cluster: Annotated[str | UnsetType, Meta(description="Only machines of this group.")] = UNSET


class MachineRow(Struct):
    """The current state of one machine."""

    machine: str
    cluster: str
    state: MachineState
    cpus: Count
    busy_cpus: Count
    active_w: Unknown
    inferred: bool


class Machines(Struct):
    """Machines that the daemon knows now; `total` includes those on other pages."""

    mode: Mode
    now_s: float
    machines: list[MachineRow]
    total: Count
    next: Next = None


def machines(
    core: Core, limit: int, after: int = -1, state: str | None = None, cluster: str | None = None
) -> Answer:
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
# The shape of one machine.


class MachineWatts(Struct):
    """The machine's power: now, and as configured for each state."""

    now_w: Unknown
    is_measured: Annotated[
        bool, Meta(description="True: `now_w` is from its meter; else configured.")
    ]
    active_w: Unknown
    idle_w: Unknown
    sleep_w: Unknown


class JobOnMachine(Struct):
    """A job that is on the machine now."""

    job: str
    state: JobState
    user: str
    vo: str
    cpus: Count
    start_s: float


class RunOnMachine(Struct):
    """A run that ended on the machine; `lost_because` is null if it completed its job."""

    job: str
    vo: str
    cpus: Count
    start_s: float
    end_s: float
    run_s: float
    lost_because: str | None


class FailedStartsThere(Struct):
    """Recent starts on the machine, and those that failed within minutes.

    A black hole is a machine where significantly more of them fail than the same users' jobs do
    elsewhere. `expected_ratio` is the ratio elsewhere, `low_ratio` the lower bound of the machine's
    own ratio.
    """

    within_s: float
    tried: Count
    failed: Count
    is_black_hole: bool
    expected_ratio: Unknown
    low_ratio: Unknown


class OwnerWeek(Struct):
    """The owner's presence by hour of the week of the site's clock."""

    since_s: float
    sessions: Count
    share: Annotated[
        list[list[Unknown]],
        Meta(
            description="Share of the time with an owner, 0 to 1: from Monday, 24 hours each; "
            "null: never observed at that hour."
        ),
    ]


class OneMachine(Struct):
    """One machine now, with its history in the journal.

    `since_s`: since when it is in its state; for a busy one, the start of its oldest run. `runs`:
    the last that ended there, the newest first; null if the journal's version cannot be searched by
    machine. `owner_week` is null if no owner was ever seen.
    """

    mode: Mode
    now_s: float
    machine: str
    cluster: str
    state: MachineState
    since_s: Unknown
    cpus: Count
    busy_cpus: Count
    inferred: bool
    watts: MachineWatts
    jobs: list[JobOnMachine]
    jobs_total: Count
    runs: list[RunOnMachine] | None
    failed_starts: FailedStartsThere
    owner_week: OwnerWeek | None


# -- machine ---------------------------------------------------------------------------------------
# One machine: its current state and its history.

log = structlog.get_logger()


async def answer_machine(call: Call[NoQuery]) -> Answer | web.Response:
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
    return call.names.in_machine(answer)


MACHINE = Endpoint(
    name="machine",
    path="/api/v1/machine/{machine}",
    summary="One machine: state, jobs, last runs, failed starts, watts and its owner's week. Its "
    "name is percent-encoded.",
    handle=answer_machine,
    query=NoQuery,
    answer=OneMachine,
    others={404: Failure, 503: Failure},
)

ENDPOINTS = (MACHINES, MACHINE)
