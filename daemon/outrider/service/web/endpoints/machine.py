"""One machine: what it does now, and its history."""

import structlog
from aiohttp import web

from outrider.model.errors import LedgerError
from outrider.service.views.one_machine import machine_now, number_of
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    NoQuery,
    NotFoundError,
    json_response,
)
from outrider.service.web.shapes.machine import OneMachine
from outrider.service.web.shapes.values import Failure

log = structlog.get_logger()


async def handle(call: Call[NoQuery]) -> Answer | web.Response:
    """From memory and from the journal, which is read in a thread; 404 for one not here."""
    view, machine = call.view, call.request.match_info["machine"]
    answer = None
    if number_of(view.core, machine) is not None:
        try:
            history = await view.machine_histories.of(machine, view.core, view.journal)
        except (LedgerError, TimeoutError) as error:
            log.warning("fail_machine_history", machine=machine, reason=str(error))
            return json_response(
                {"error": "the journal cannot be read now; the log tells why"}, 503
            )
        answer = await machine_now(view.core, machine, history)
    if answer is None:
        raise NotFoundError(f"no machine {machine!r} is here")
    return call.names.in_machine(answer)


ENDPOINT = Endpoint(
    name="machine",
    path="/api/v1/machine/{machine}",
    summary="One machine: what it does now, its last runs, failed starts, watts, and its owner's "
    "week. Its name is percent-encoded.",
    handle=handle,
    query=NoQuery,
    answer=OneMachine,
    others={404: Failure, 503: Failure},
)
