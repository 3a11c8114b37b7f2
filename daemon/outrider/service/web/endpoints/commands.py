"""Endpoints of commands: the last commands, and POST of a command over the Unix socket."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from outrider.service.commands.command import MAX_SHOWN, Command, Result, StillAtWorkError
from outrider.service.shapes.values import Commands, Evidence, Failure
from outrider.service.views.status import command_rows
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    NoQuery,
    NotFoundError,
    Post,
    Posted,
    json_response,
)

_STATUSES = {"done": 200, "refused": 409, "failed": 500}


class CommandsQuery(Struct, frozen=True):
    """Parameters of the last commands."""

    limit: Annotated[int, Meta(ge=1, le=MAX_SHOWN, description="Most rows of the answer.")] = 20


async def handle(call: Call[CommandsQuery]) -> Answer:
    """Answer from memory, with users as this client sees them."""
    view = call.view
    limit = view.mode_limit()
    rows = command_rows(view.commands, call.query.limit)
    return {
        "mode": view.core.config.mode,
        "configured_mode": view.configured_mode(),
        "mode_limit": call.names.limit(limit),
        "commands": call.names.in_commands(rows),
    }


async def command(posted: Posted[Command]) -> web.Response:
    """Execute a command and return its result."""
    commands = posted.view.commands
    if commands is None:
        return json_response({"error": "the daemon is still starting"}, 503)
    try:
        result = await commands.execute(posted.body, posted.uid)
    except StillAtWorkError as error:
        return json_response({"error": str(error)}, 503)
    return json_response(result, _STATUSES[result.outcome])


COMMANDS = Endpoint(
    name="commands",
    path="/api/v1/commands",
    summary="The last commands and changes of the mode.",
    handle=handle,
    query=CommandsQuery,
    answer=Commands,
    post=Post(
        name="command",
        summary="Sends a command: lower the mode, raise it by one step, or revert all changes.",
        handle=command,
        body=Command,
        example='{"command": "mode", "mode": "shadow", "why": "..."}',
        answer=Result,
        others={409: Result, 503: Failure},
    ),
)


# -- promotion -------------------------------------------------------------------------------------
# Evidence for and against raising the mode by one step.


async def answer_promotion(call: Call[NoQuery]) -> Answer:
    """Answer from memory with the current evidence."""
    commands = call.view.commands
    if commands is None:
        raise NotFoundError("there is no evidence yet: the daemon is still starting")
    answer: Answer = msgspec.to_builtins(commands.evidence)
    return answer


PROMOTION = Endpoint(
    name="promotion",
    path="/api/v1/promotion",
    summary="Evidence for and against raising the mode by one step.",
    handle=answer_promotion,
    query=NoQuery,
    answer=Evidence,
)

ENDPOINTS = (COMMANDS, PROMOTION)
