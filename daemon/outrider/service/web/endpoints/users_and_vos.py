"""Endpoints of users with current jobs, and of VOs (accounting groups)."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.service.views.users_and_vos import vo_rows
from outrider.service.web.endpoint import After, Answer, Call, Endpoint, Limit, Next, page_of
from outrider.service.web.shapes.values import Count, Mode, Unknown

# -- users -----------------------------------------------------------------------------------------
# Users who have jobs now.


class UsersQuery(Struct, frozen=True):
    """Parameters of the list of users."""

    limit: Limit = 200
    after: After = UNSET
    vo: Annotated[
        str | UnsetType, Meta(description="Only users of this VO, by the name in the answers.")
    ] = UNSET


class UserRow(Struct):
    """One user in one VO, with counts of the current jobs."""

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
    """Users with the most CPUs in use first; `total` includes those on other pages.

    The cursor is a place in this order: a user whose place changes between two requests may be on
    both pages, or on none.

    `wait_p50_s`, `wait_p95_s` and `longest_wait_s`: median, 95th percentile and maximum of the
    waits of currently waiting jobs, null if none waits. `lost_s`: seconds of all wasted runs of
    these jobs.
    """

    mode: Mode
    now_s: float
    users: list[UserRow]
    total: Count
    next: Next = None


async def answer_users(call: Call[UsersQuery]) -> Answer:
    """Answer from memory, with users and VOs as this client sees them."""
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


class WaitQuantile(Struct):
    """A quantile of waits in seconds, with bounds, since waits are counted in buckets.

    Above the last bound (a week) neither `about` nor `high` is known.
    """

    low: Annotated[float, Meta(ge=0, description="Lower bound of the bucket.")]
    about: Annotated[
        Unknown, Meta(description="Estimate that assumes evenly spread waits in the bucket.")
    ]
    high: Annotated[Unknown, Meta(description="Upper bound of the bucket.")]


class VoRow(Struct):
    """Figures of one VO since `since_s`."""

    vo: str
    share: Annotated[Unknown, Meta(description="Share of all delivered CPU-seconds, 0 to 1.")]
    target: Annotated[Unknown, Meta(description="Target share.")]
    started: Annotated[Count, Meta(description="Jobs that began their first run.")]
    wait_mean_s: Annotated[
        Unknown, Meta(description="Mean wait of these jobs, from submission to first start.")
    ]
    wait_p50_s: Annotated[
        WaitQuantile | None, Meta(description="Median of these waits; null: none started.")
    ]
    wait_p95_s: Annotated[
        WaitQuantile | None,
        Meta(description="95th percentile of these waits; null: none started."),
    ]
    kept_cpu_s: Annotated[float, Meta(description="CPU-seconds of runs that completed.")]
    thrown_away_cpu_s: Annotated[float, Meta(description="CPU-seconds of wasted runs.")]


class Vos(Struct):
    """VOs sorted by the names that this client sees; `total` includes those on other pages.

    The cursor is a place in this order.
    """

    mode: Mode
    now_s: float
    since_s: Annotated[Unknown, Meta(description="When counting began; null: not yet.")]
    vos: list[VoRow]
    total: Count
    next: Next = None


async def answer_vos(call: Call[VosQuery]) -> Answer:
    """Answer from memory, with VOs as this client sees them."""
    core, names = call.view.core, call.names
    shown = [{**row, "vo": names.vo(row["vo"])} for row in vo_rows(core.accounting, core.site.now)]
    shown.sort(key=lambda row: row["vo"])  # sorted by real names, the order would reveal them
    first = 0 if call.query.after is UNSET else call.query.after
    page, cursor = page_of(enumerate(shown[first:], first + 1), call.query.limit)
    return {
        "mode": core.config.mode,
        "now_s": core.now_s,
        "since_s": core.accounting.begin_s,
        "vos": page,
        "total": len(shown),
        "next": cursor,
    }


VOS = Endpoint(
    name="vos",
    path="/api/v1/vos",
    summary="Shares, waits and waste of VOs.",
    handle=answer_vos,
    query=VosQuery,
    answer=Vos,
)

ENDPOINTS = (USERS, VOS)
