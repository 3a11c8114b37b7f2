"""Answers while the daemon still reads its journal, and paths without a token."""

import aiohttp
import pytest

from outrider.service.daemon.daemon_view import StartingView
from outrider.service.journal.restart import StartProgress
from outrider.service.web import make_app, serve
from outrider.service.web.access import Access
from outrider.service.web.endpoints import ENDPOINTS
from tests.service.web.test_routes import address

WHILE_STARTING = {"/", "/page/{asset}", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"}


def starting() -> StartingView:
    """Return a daemon that has fed 640 of 1,000 inputs."""
    progress = StartProgress()
    rows = progress.watch([(n, "log", (float(n), 0, "x", None)) for n in range(1, 1_001)], 0, 1_000)
    for _ in range(640):
        next(rows)
    progress.begin("replaying the journal")
    return StartingView(progress, "shadow")


async def statuses(access: Access | None = None) -> dict[str, int]:
    """Return the status of each path during the start."""
    found = {}
    async with (
        serve(make_app(starting(), access), "127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        for endpoint in ENDPOINTS:
            async with client.get(address(endpoint)) as answer:
                found[endpoint.path] = answer.status
                if endpoint.path not in WHILE_STARTING and answer.status == 503:
                    assert answer.headers["Retry-After"] == "5"
                    assert (await answer.json())["error"] == (
                        "still starting: replaying the journal, 640 inputs so far (64% of the "
                        "journal)"
                    )
    return found


async def test_whether_it_lives_and_what_it_does_is_answered_while_it_starts() -> None:
    """Else a service manager or a balancer that asks would take a long start for a hang."""
    found = await statuses()
    assert {path for path, status in found.items() if status == 200} == WHILE_STARTING - {"/readyz"}
    assert {status for path, status in found.items() if status != 200} == {503}


async def test_only_whether_it_lives_is_told_to_everybody() -> None:
    found = await statuses(Access("0123456789abcdef0123456789abcdef"))
    assert {path for path, status in found.items() if status != 401} == {"/healthz"}


def test_metrics_say_how_far_the_start_is_and_show_no_counter_that_would_begin_again() -> None:
    view = starting()
    told = view.metrics()
    assert told.numbers["start_ratio"] == {(): 0.64}
    assert told.numbers["start_seconds"][()] == pytest.approx(0.0, abs=60.0)
    assert told.numbers["mode"]["shadow",] == 1.0
    assert told.numbers["events_total"] == told.numbers["jobs"] == {}
    assert told.observations["job_wait_seconds"] == {}
    assert view.ready() == (False, [view.progress.sentence])
    assert view.names(shown=False).user("ada").startswith("u-")
