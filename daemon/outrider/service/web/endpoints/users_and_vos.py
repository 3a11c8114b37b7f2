"""Endpoints of users with current jobs, and of VOs (accounting groups)."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.shapes.site import Users, Vos
from outrider.service.views.sentences import no_data
from outrider.service.views.users_and_vos import vo_rows
from outrider.service.web.endpoint import After, Call, Endpoint, Limit, page_of

# -- users -----------------------------------------------------------------------------------------
# Users who have jobs now.


class UsersQuery(Struct, frozen=True):
    """Parameters of the list of users."""

    limit: Limit = 200
    after: After = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only users of this VO, by the name in the answers.")
    ] = UNSET


async def answer_users(call: Call[UsersQuery]) -> Users:
    """Answer from memory, with names as names."""
    core, names, wanted = call.view.core, call.names, call.query.vo
    rows = call.view.user_rows(apart=not names.shown)
    found = [row for row in rows if wanted is UNSET or names.vo(row.vo) == wanted]
    first = 0 if call.query.after is UNSET else call.query.after
    page, cursor = page_of(enumerate(found[first:], first + 1), call.query.limit)
    return Users(
        mode=core.config.mode,
        now_s=core.now_s,
        users=page,
        total=len(found),
        next=cursor,
        no_data=no_data(core),
    )


USERS = Endpoint(
    name="users",
    path="/api/v1/users",
    summary="Users with current jobs.",
    handle=answer_users,
    query=UsersQuery,
    answer=Users,
)


# -- vos -------------------------------------------------------------------------------------------
# VOs: shares compared with targets, waits, and wasted CPU time.


class VosQuery(Struct, frozen=True):
    """Parameters of the list of VOs."""

    limit: Limit = 200
    after: After = UNSET


async def answer_vos(call: Call[VosQuery]) -> Vos:
    """Answer from memory, in the order of the names that this client sees."""
    core, names = call.view.core, call.names
    shown = vo_rows(core.accounting, core.site.now)
    # sorted by real names, the order would reveal them
    shown.sort(key=lambda row: names.vo(row.vo))
    first = 0 if call.query.after is UNSET else call.query.after
    page, cursor = page_of(enumerate(shown[first:], first + 1), call.query.limit)
    return Vos(
        mode=core.config.mode,
        now_s=core.now_s,
        since_s=core.accounting.begin_s,
        vos=page,
        total=len(shown),
        next=cursor,
    )


VOS = Endpoint(
    name="vos",
    path="/api/v1/vos",
    summary="Shares, waits and waste of VOs.",
    handle=answer_vos,
    query=VosQuery,
    answer=Vos,
)

ENDPOINTS = (USERS, VOS)
