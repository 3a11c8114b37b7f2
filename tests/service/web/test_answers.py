"""The daemon's real answers have the shapes that are declared for them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from outrider.journal import Journal
from outrider.model.errors import LedgerError
from outrider.model.events import STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.config.loaded import check_config
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from outrider.service.process.supervisor import Supervisor
from outrider.service.views.job_runs import MOST_RUNS, decision_rows, run_row
from outrider.service.web import make_app, serve
from outrider.service.web.endpoints import ENDPOINTS
from outrider.service.web.endpoints.explain import _ledger_jobs, explanation
from outrider.service.web.endpoints.status import whole_status
from tests.fixtures.cores import T, core_of, tell
from tests.fixtures.plain import EVERYTHING, shaped
from tests.service.web.shapes import numbers_in, undeclared

DAY_S = 86_400.0


@pytest.fixture
async def living(tmp_path: Path) -> Any:
    """A supervisor that has run through four days of a small simulated campus."""
    loaded = check_config(
        {
            "state_dir": str(tmp_path / "state"),
            "adapters": {
                "simulated": {
                    "machines": 12, "clusters": 2, "weeks": 1, "speed": 0.001,
                    "head_start_s": 4 * DAY_S, "batch_s": 0.01,
                },
            },
            "policies": {"bandit": {}, "lowest_watts": {}},
        },
        "test",
    )  # fmt: skip
    recording = Recording(tmp_path / "state")
    supervisor = Supervisor(loaded, recording, ServiceManager({}))
    work = asyncio.create_task(supervisor.run())
    for _ in range(600):
        await asyncio.sleep(0.05)
        status = whole_status(supervisor.view)
        past_s = status["now_s"] - (status["since_s"] or status["now_s"])
        if past_s > 3.5 * DAY_S and status["ledger"]["last_seq"] > 500:
            break
    yield supervisor.view
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await asyncio.to_thread(recording.close)


def check(served: Any, shape: Any) -> None:
    """Check that an answer has exactly the declared shape."""
    kept = shaped(served, shape, strict=True)
    assert undeclared(served, msgspec.json.decode(EVERYTHING.encode(kept))) == []


@asynccontextmanager
async def client_of(view: DaemonView) -> AsyncIterator[aiohttp.ClientSession]:
    async with (
        serve(make_app(view, None), "127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def ask(client: aiohttp.ClientSession, path: str) -> Any:
    async with client.get(f"/api/v1/{path}") as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_every_answer_has_its_declared_shape(living: DaemonView) -> None:
    async with client_of(living) as client:
        known = (await ask(client, "decisions?limit=1"))["decisions"][0]["job"]
        machine = (await ask(client, "machines?limit=1"))["machines"][0]["machine"]
        for endpoint in ENDPOINTS:
            path = endpoint.path.replace("{job}", known).replace("{asset}", "page.js")
            path = path.replace("{machine}", machine)
            async with client.get(path) as answer:
                assert answer.status == 200, await answer.text()
                assert answer.content_type == endpoint.content or endpoint.content == "*/*"
                assert await answer.read()
                if endpoint.answer is not None:
                    check(await answer.json(), endpoint.answer)
            async with client.head(path) as head:
                assert head.status == 200
                assert await head.read() == b""
                assert head.headers["Content-Type"] == answer.headers["Content-Type"]
                assert int(head.headers["Content-Length"]) > 0
    assert whole_status(living)["policies"][0]["learned"]["rows"]


async def test_limits_and_names_choose_rows_of_the_ledger(living: DaemonView) -> None:
    async with client_of(living) as client:
        newest = (await ask(client, "decisions?limit=1"))["decisions"][0]
        last = (await ask(client, f"decisions?after={newest['seq'] - 1}"))["decisions"]
        assert last[0] == newest
        first = [row["seq"] for row in (await ask(client, "decisions?after=0"))["decisions"]]
        assert first == sorted(first)
        assert len(first) == 200
        about = (await ask(client, f"decisions?job={newest['job']}"))["decisions"]
        assert newest in about
        assert all(newest["job"] in (row["job"], *(row.get("jobs") or ())) for row in about)
        assert len((await ask(client, "machines?limit=3"))["machines"]) == 3
        assert (await ask(client, "machines"))["total"] == 12


async def test_pages_of_the_ledger_follow_each_other_to_its_end(living: DaemonView) -> None:
    async with client_of(living) as client:
        every = await ask(client, "decisions?after=0&limit=5000")
        assert every["next"] is None
        seqs: list[int] = []
        after: int | None = 0
        while after is not None:
            page = await ask(client, f"decisions?after={after}&limit=150")
            seqs += [row["seq"] for row in page["decisions"]]
            after = page["next"]
        assert seqs == [row["seq"] for row in every["decisions"]]
        assert len(seqs) > 150
        newest = await ask(client, "decisions?limit=150")
        assert newest["next"] is None, "nothing is older than what is asked for from the end"


async def test_limits_and_states_choose_jobs(tmp_path: Path) -> None:
    core = core_of("log", timezone="UTC")
    events: list[NamedEvent] = [(T + n, SUBMITTED, f"{n}.0", JobSpec()) for n in range(5)]
    tell(core, "log", [*events, (T + 9, STARTED, "3.0", ("m1", 1))], T + 100)
    recording = Recording(tmp_path / "state")
    try:
        view = DaemonView(core, recording, Publisher(recording, lambda: core))
        async with client_of(view) as client:
            first = await ask(client, "jobs?limit=2")
            running = await ask(client, "jobs?state=running")
            queued = await ask(client, "jobs?state=queued&limit=1")
    finally:
        recording.close()
    assert ([row["job"] for row in first["jobs"]], first["total"]) == (["0.0", "1.0"], 5)
    assert ([row["job"] for row in running["jobs"]], running["total"]) == (["3.0"], 1)
    assert ([row["job"] for row in queued["jobs"]], queued["total"]) == (["0.0"], 4)


async def test_every_number_of_an_explanation_stands_in_a_ledger_row(living: DaemonView) -> None:
    rows = await decision_rows(living.journal, 500)
    names = {row["job"] for row in rows}
    assert names
    explained = [answer for name in sorted(names) if (answer := await explanation(living, name))]
    assert explained
    for answer in explained:
        by_seq = {row["seq"]: row for row in answer["decisions"]}
        for policy in answer["policies"]:
            if policy["seq"] is not None:
                row = by_seq[policy["seq"]]
                assert policy["scores"] == (row["scores"] or {})
                assert policy["propensity"] == row["propensity"]
                assert policy["decided_s"] == row["time_s"]


OF_THIS_MOMENT = ("now_s", "since_s", "waiting_s", "alike", "batch_system", "lease")
"""Parts of an explanation from a live query: the reference page says so."""
OF_THE_NEXT_LOOK = ("until_s", "latest_s")


async def test_no_other_part_of_an_explanation_has_numbers_of_its_own(living: DaemonView) -> None:
    """A new part either takes its numbers from the ledger, or is named above, or its source."""

    def in_the_ledger(job: str) -> set[float]:
        with Journal(living.journal, read_only=True) as journal:
            rows = [row.as_row(seq) for seq, row in journal.latest_decisions(500, job)]
            return numbers_in(
                [rows, [run_row(run, "UTC") for run in journal.runs_of(job, MOST_RUNS)]]
            )

    names = {row["job"] for row in await decision_rows(living.journal, 500)}
    for name in sorted(names):
        answer = await explanation(living, name)
        assert answer is not None
        start = answer.pop("expected_start")
        if start is not None:  # nobody has said anything here; what is said is in the file it names
            assert (start["source"], numbers_in(start)) == ("starts.json", set())
        rest = {key: part for key, part in answer.items() if key not in OF_THIS_MOMENT}
        rest["policies"] = [
            {key: part for key, part in policy.items() if key not in OF_THE_NEXT_LOOK}
            for policy in rest["policies"]
        ]
        end = {answer["left"]["at_s"]} if answer["left"] else set()
        assert numbers_in(rest) <= await asyncio.to_thread(in_the_ledger, name) | end
        assert numbers_in(rest), "something is told of it"


async def test_every_run_of_an_explanation_stands_in_the_ledger(living: DaemonView) -> None:
    def kept() -> dict[str, list[dict[str, Any]]]:
        with Journal(living.journal, read_only=True) as journal:
            jobs = dict.fromkeys(run.job for _, run in islice(journal.runs(), 200))
            return {
                job: [run_row(r, "UTC") for r in journal.runs_of(job, MOST_RUNS)] for job in jobs
            }

    by_job = await asyncio.to_thread(kept)
    assert max(map(len, by_job.values())) > 1, "a job that was evicted and ran again"
    for job, runs in by_job.items():
        answer = await explanation(living, job)
        assert answer is not None
        assert answer["runs"][: len(runs)] == runs


async def test_a_job_nobody_knows_has_no_explanation(living: DaemonView) -> None:
    async with client_of(living) as client, client.get("/api/v1/explain/no%20job") as answer:
        assert answer.status == 404
        assert await answer.json() == {"error": "no job 'no job' is known here"}


def test_to_ask_the_ledger_for_a_job_makes_and_changes_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with pytest.raises(LedgerError):
        _ledger_jobs(path, "1042")
    assert list(tmp_path.iterdir()) == []
