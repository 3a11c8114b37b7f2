"""Short forms of jobs' names: accepted if unique, otherwise answered with candidates."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from outrider.api import JobSpec, events
from outrider.journal import Entry
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from outrider.service.shapes.jobs import Ambiguity, Explanation
from outrider.service.web import make_app, serve
from tests.fixtures.cores import T, core_of, tell
from tests.journal.samples import decision
from tests.service.web.test_answers import check


@asynccontextmanager
async def client_of(folder: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A daemon that knows 7.0 at three access points, and has known it at a fourth."""
    core = core_of("log")
    told: list[events.NamedEvent] = [
        *((T, events.SUBMITTED, f"ap{n}#7.0", JobSpec()) for n in (1, 2, 3)),
        (T + 1, events.STARTED, "ap1#7.0", ("m1", 1)),
        (T + 2, events.SUBMITTED, "ap1#8.0", JobSpec()),
    ]
    tell(core, "log", told, T + 60)
    recording = Recording(folder)
    gone = Entry(decisions=[decision(T, "ap4#7.0"), decision(T, "ap4#9.0")])
    future = await recording.submit(gone)
    try:
        future.result(10)
        view = DaemonView(core, recording, Publisher(recording, lambda: core))
        async with (
            serve(make_app(view, None), "127.0.0.1", 0) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
        ):
            yield client
    finally:
        recording.close()


async def test_of_several_jobs_all_are_named_with_how_many_are_in_which_state(
    tmp_path: Path,
) -> None:
    async with client_of(tmp_path) as client, client.get("/api/v1/explain/7.0") as answer:
        told = await answer.json()
        check(told, Ambiguity)
        assert answer.status == 300
        assert told == {
            "error": "'7.0' matches 4 jobs (2 queued, 1 running, 1 left); name one",
            "candidates": ["ap1#7.0", "ap2#7.0", "ap3#7.0", "ap4#7.0"],
            "total": 4,
            "states": {"queued": 2, "running": 1, "left": 1},
        }


async def test_one_job_is_explained_under_its_whole_name_here_or_gone(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        for short, whole, state in (
            ("8.0", "ap1#8.0", "queued"), ("9.0", "ap4#9.0", None), ("ap4%237.0", "ap4#7.0", None),
        ):  # fmt: skip
            async with client.get(f"/api/v1/explain/{short}") as answer:
                told = await answer.json()
                check(told, Explanation)
                assert (answer.status, told["job"], told["state"]) == (200, whole, state)
        async with client.get("/api/v1/explain/77.0") as answer:
            assert answer.status == 404
