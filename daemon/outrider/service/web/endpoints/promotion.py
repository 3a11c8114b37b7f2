"""What there is for and against climbing a step of the mode."""

import msgspec

from outrider.service.commands.evidence import Evidence
from outrider.service.web.endpoint import Answer, Call, Endpoint, NoQuery, NotFoundError


async def handle(call: Call[NoQuery]) -> Answer:
    """Answer from memory."""
    commands = call.view.commands
    if commands is None:
        raise NotFoundError("there is no evidence yet: the daemon is still starting")
    answer: Answer = msgspec.to_builtins(commands.evidence)
    return answer


ENDPOINT = Endpoint(
    name="promotion",
    path="/api/v1/promotion",
    summary="What there is for and against climbing a step of the mode.",
    handle=handle,
    query=NoQuery,
    answer=Evidence,
)
