"""Live queries why a job waits: which batch systems, time limits, visible answers."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from structlog.testing import capture_logs

from outrider.api import (
    Adapter,
    AdapterSettings,
    Clause,
    PeerError,
    WaitingReason,
    events,
)
from outrider.cli.commands.explain import _lines
from outrider.model.jobs import JobSpec
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from outrider.service.shapes.jobs import Explanation
from outrider.service.views import waiting_reasons
from outrider.service.views.waiting_reasons import KEPT_S, NO_ANSWER, SystemAnswer, WaitingReasons
from outrider.service.web import make_app, serve
from outrider.service.web.access import Access
from tests.fixtures.cores import T, core_of, tell
from tests.service.web.test_answers import check

REASON = WaitingReason(
    code="Dependency",
    sentence="it waits for bob's job 12",
    remedies=("wait for this job",),
    machines=3,
    clauses=(Clause("Memory >= 4096", 3, 9),),
    expected_start_s=1.8e9,
    ahead=2,
    removes_most="Memory >= 4096",
)


class Asked(Adapter):
    """An adapter with given answers."""

    name: ClassVar[str] = "asked"
    settings_type: ClassVar[type[AdapterSettings]] = AdapterSettings

    def __init__(self, label: str, answer: Callable[[str], Awaitable[Any]]) -> None:
        super().__init__(label, AdapterSettings())
        self.asked: list[str] = []
        self._answer = answer

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        self.asked.append(job)
        answer: WaitingReason | None = await self._answer(job)
        return answer


def asked(label: str, answer: Any) -> Asked:
    """Return an adapter with this answer, whatever the job; an exception is raised."""

    async def answered(_: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Asked(label, answered)


def reasons_of(*adapters: Asked, clock: Callable[[], float] = lambda: 0.0) -> WaitingReasons:
    return WaitingReasons(lambda: {adapter.label: adapter for adapter in adapters}, clock)


async def test_the_adapter_that_knows_the_job_is_believed() -> None:
    said = await reasons_of(asked("pool", None), asked("slurm", REASON)).of("outrider:7")
    assert said == SystemAnswer("slurm", REASON)
    assert await reasons_of(asked("pool", None)).of("7") == NO_ANSWER
    assert await reasons_of().of("7") == NO_ANSWER


async def test_one_that_fails_is_told_and_holds_up_no_other() -> None:
    down = asked("pool", PeerError("no schedd answers"))
    broken = asked("broken", ZeroDivisionError("by zero"))
    with capture_logs() as logs:
        reasons = reasons_of(down, broken, asked("slurm", REASON))
        said = await reasons.of("7")
        await reasons.of("8")
    assert said.reason == REASON
    assert said.unanswered == (
        "pool: no schedd answers",
        "broken failed: ZeroDivisionError: by zero",
    )
    faults = [line for line in logs if line["event"] == "waiting_reason_failed"]
    assert [line["adapter"] for line in faults] == ["broken"], (
        "once a minute, and no peer's silence"
    )


async def test_one_that_hangs_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_reasons, "PATIENCE_S", 0.2)

    async def hang(_: str) -> None:
        await asyncio.sleep(3600)

    hanging, other = Asked("pool", hang), asked("slurm", REASON)
    reasons = reasons_of(hanging, other)
    async with asyncio.timeout(10):
        many = await asyncio.gather(*(reasons.of(f"{n}") for n in range(50)))
    assert {said.reason for said in many} == {REASON}
    assert {said.unanswered for said in many} == {("pool did not answer within 0.2 s",)}
    assert len(hanging.asked) < 50, "they wait for their turn, not all at the adapter"


async def test_an_adapter_is_asked_one_question_at_a_time_and_not_twice_in_a_moment() -> None:
    now_s, at_once, most = 0.0, 0, 0

    async def answer(_: str) -> WaitingReason:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return REASON

    adapter = Asked("slurm", answer)
    reasons = reasons_of(adapter, clock=lambda: now_s)
    await asyncio.gather(*(reasons.of(f"{n % 10}") for n in range(100)))
    assert most == 1
    assert sorted(adapter.asked) == [f"{n}" for n in range(10)]
    now_s = KEPT_S
    await reasons.of("0")
    assert len(adapter.asked) == 11, "later it may be another"


async def test_however_many_jobs_are_asked_about_few_answers_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_reasons, "_MOST_KEPT", 3)
    adapter = asked("slurm", REASON)
    reasons = reasons_of(adapter)
    for job in ("1", "2", "3", "1", "4", "4", "1"):
        assert (await reasons.of(job)).reason == REASON
    assert adapter.asked == ["1", "2", "3", "4", "1"], "the fourth took the place of all before"


async def test_a_fault_is_logged_once_a_minute() -> None:
    now_s = 1000.0
    reasons = reasons_of(asked("broken", ZeroDivisionError("by zero")), clock=lambda: now_s)
    with capture_logs() as logs:
        for now_s in (1000.0, 1059.9, 1060.0, 1061.0):
            await reasons.of(f"{now_s}")
    assert len(logs) == 2


async def test_what_an_adapter_says_is_bounded_and_of_the_declared_shape() -> None:
    long = WaitingReason(
        code="c" * 5000,
        sentence="s" * 5000,
        remedies=("r" * 5000,) * 50,
        clauses=(Clause("t" * 5000, 1, 2),) * 500,
        removes_most="t" * 5000,
    )
    said = (await reasons_of(asked("slurm", long)).of("7")).reason
    assert said is not None
    assert (len(said.code), len(said.sentence)) == (1003, 1003)
    assert (len(said.remedies), len(said.remedies[0])) == (10, 1003)
    assert (len(said.clauses), len(said.clauses[0].text)) == (100, 1003)
    assert said.removes_most == said.clauses[0].text
    steers = WaitingReason(code="", sentence="red: \x1b[31m\nnext line")
    said = (await reasons_of(asked("slurm", steers)).of("7")).reason
    assert said is not None
    assert said.sentence == r"red: \x1b[31m next line"
    wrong = await reasons_of(asked("slurm", WaitingReason(code="", sentence=7))).of("7")  # type: ignore[arg-type]
    assert wrong.reason is None
    assert "ValidationError" in wrong.unanswered[0]
    none = await reasons_of(asked("slurm", {"code": "x"})).of("7")
    assert none.reason is None


async def explained(tmp_path: Path, sees: str, *adapters: Asked) -> dict[str, dict[str, Any]]:
    """Return the answers for a queued, a held and a running job, with this `show_users`."""
    core = core_of("log", timezone="UTC")
    told = [(T + n, events.SUBMITTED, f"{n}.0", JobSpec(user="ada")) for n in range(3)]
    changes = [(T + 5, events.HELD, "1.0", "by ada"), (T + 6, events.STARTED, "2.0", ("m1", 1))]
    tell(core, "log", [*told, *changes], T + 100)
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        view = DaemonView(core, recording, publisher, lambda: {a.label: a for a in adapters})
        app = make_app(view, Access(show_users=sees))
        async with (
            serve(app, "127.0.0.1", 0) as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
        ):
            answers = {}
            for job in ("0.0", "1.0", "2.0"):
                async with client.get(f"/api/v1/explain/{job}") as answer:
                    answers[job] = await answer.json()
                    check(answers[job], Explanation)
            return answers
    finally:
        recording.close()


async def test_the_batch_systems_reason_leads_and_is_asked_only_for_jobs_that_wait(
    tmp_path: Path,
) -> None:
    slurm, pool = asked("slurm", REASON), asked("pool", PeerError("no schedd answers"))
    told = await explained(tmp_path, "everybody", slurm, pool)
    assert slurm.asked == ["0.0", "1.0"]
    waits, held, runs = told["0.0"], told["1.0"], told["2.0"]
    assert waits["sentence"].startswith("0.0 waits for bob's job 12.")
    assert held["sentence"] == "1.0 is held: it waits for bob's job 12."
    assert waits["batch_system"] == {
        "adapter": "slurm",
        "code": "Dependency",
        "sentence": "it waits for bob's job 12",
        "never": False,
        "remedies": ["wait for this job"],
        "machines": 3,
        "clauses": [{"text": "Memory >= 4096", "machines": 3, "without_it": 9}],
        "expected_start_s": 1.8e9,
        "ahead": 2,
        "removes_most": "Memory >= 4096",
    }
    assert waits["batch_system_errors"] == ["pool: no schedd answers"]
    assert (runs["batch_system"], runs["batch_system_errors"]) == (None, [])
    lines = _lines(waits, verbose=False)
    assert lines[0] == "0.0 waits for bob's job 12."
    assert not any("Memory >= 4096" in line for line in lines)
    lines = _lines(waits, verbose=True)
    assert "  slurm (Dependency): it waits for bob's job 12" in lines
    assert "      Memory >= 4096: 3 meet it, 9 would do without it (removes most)" in lines
    assert "  what would change it: wait for this job" in lines
    assert "  no answer: pool: no schedd answers" in lines


class Discreet(Asked):
    """An adapter whose reasons name no user but the job's own."""

    reasons_name_users: ClassVar[bool] = False


async def test_reasons_that_name_no_other_user_are_for_everybody(tmp_path: Path) -> None:
    reason = WaitingReason(
        code="Reservation",
        sentence="ada waits for her reservation ada_1",
        remedies=("ask ada",),
        clauses=(Clause("reservation ada_1", 1, 2), Clause("partition adas", 1, 2)),
        removes_most="reservation ada_1",
    )

    async def answered(_: str) -> WaitingReason:
        return reason

    pool = asked("pool", REASON)
    told = await explained(tmp_path, "nobody", pool, Discreet("slurm", answered))
    assert not pool.asked, "its reasons may name others"
    for job in ("0.0", "1.0"):
        shown = told[job]["batch_system"]
        assert shown["adapter"] == "slurm"
        assert shown["clauses"][1]["text"] == "partition adas"
        assert re.search("waits for her reservation u-[0-9a-f]{10}_1", told[job]["cause"])
        assert not re.search(r"\bada(_|\b)", str(told[job]))
    assert told["0.0"]["sentence"].startswith("0.0 waits: u-")


async def test_who_may_not_see_users_names_is_told_nothing_of_it(tmp_path: Path) -> None:
    slurm = asked("slurm", REASON)
    told = await explained(tmp_path, "nobody", slurm)
    assert not slurm.asked, "for such a client nobody is asked"
    for answer in told.values():
        assert (answer["batch_system"], answer["batch_system_errors"]) == (None, [])
        assert "bob" not in str(answer)
