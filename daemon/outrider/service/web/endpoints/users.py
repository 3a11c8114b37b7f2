"""Users who have jobs now."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.paging import After, Next, page_of
from outrider.service.web.query import Limit
from outrider.service.web.shapes.values import Count, Mode, Unknown


class UsersQuery(Struct, frozen=True):
    """Which users."""

    limit: Limit = 200
    after: After = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only of this VO, as this client is shown VOs.")
    ] = UNSET


class UserRow(Struct):
    """One user in one VO: the jobs that are known now."""

    user: str
    vo: str
    queued: Count
    running: Count
    suspended: Count
    held: Count
    busy_cpus: Count
    wait_p50_s: Unknown
    wait_p95_s: Unknown
    longest_wait_s: Unknown
    lost_s: float


class Users(Struct):
    """Those with the most CPUs in use first; `total` counts those on other pages too.

    The cursor is a place in this order: who changes places between two pages may stand on both, or
    on none.

    `wait_p50_s`, `wait_p95_s` and `longest_wait_s`: half, 95 % and all of the jobs that wait now
    have waited no longer than this, null where none waits. `lost_s`: seconds of all runs of these
    jobs that were thrown away.
    """

    mode: Mode
    now_s: float
    users: list[UserRow]
    total: Count
    next: Next = None


async def handle(call: Call[UsersQuery]) -> Answer:
    """Answer from memory."""
    core, names = call.view.core, call.names
    rows = [
        {**row, "user": names.user(row["user"]), "vo": names.vo(row["vo"])}
        for row in call.view.user_rows()
    ]
    wanted = call.query.vo
    found = [row for row in rows if wanted is UNSET or row["vo"] == wanted]
    first = 0 if call.query.after is UNSET else call.query.after
    page, cursor = page_of(enumerate(found[first:], first + 1), call.query.limit)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "users": page,
        "total": len(found),
        "next": cursor,
    }


ENDPOINT = Endpoint(
    name="users",
    path="/api/v1/users",
    summary="Users who have jobs now.",
    handle=handle,
    query=UsersQuery,
    answer=Users,
)
