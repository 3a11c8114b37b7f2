"""The daemon's real answers have the shapes that are declared for them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.service.answers import Answers
from outrider.service.config.loaded import check_config
from outrider.service.http import answers as shapes
from outrider.service.recording import Recording
from outrider.service.sdnotify import ServiceManager
from outrider.service.supervisor import Supervisor
from tests.service.web.shapes import undeclared

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
        status = supervisor.answers.status()
        past_s = status["now_s"] - (status["since_s"] or status["now_s"])
        if past_s > 3.5 * DAY_S and status["ledger"]["last_seq"] > 500:
            break
    yield supervisor.answers
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await asyncio.to_thread(recording.close)


def check(answer: Any, shape: type[msgspec.Struct]) -> None:
    """What is served, as JSON, is exactly what is declared."""
    served = msgspec.json.decode(msgspec.json.encode(answer))
    kept = msgspec.convert(served, shape, strict=True)
    declared = msgspec.json.decode(msgspec.json.encode(kept))
    assert undeclared(served, declared) == []


async def test_every_answer_has_its_declared_shape(living: Answers) -> None:
    check(living.status(), shapes.Status)
    check(living.jobs(50, None), shapes.Jobs)
    check(living.machines(50), shapes.Machines)
    check(living.utility(), shapes.Utility)
    check(await living.decisions(50, None, None), shapes.Decisions)
    assert living.status()["policies"][0]["learned"]["rows"]


async def test_every_number_of_an_explanation_stands_in_a_ledger_row(living: Answers) -> None:
    rows = (await living.decisions(500, None, None))["decisions"]
    names = {row["job"] for row in rows}
    assert names
    explained = [answer for name in sorted(names) if (answer := await living.explain(name))]
    assert explained
    for answer in explained:
        check(answer, shapes.Explanation)
        by_seq = {row["seq"]: row for row in answer["decisions"]}
        for policy in answer["policies"]:
            if policy["seq"] is not None:
                row = by_seq[policy["seq"]]
                assert policy["scores"] == (row["scores"] or {})
                assert policy["propensity"] == row["propensity"]
                assert policy["decided_s"] == row["time_s"]


async def test_a_job_nobody_knows_has_no_explanation(living: Answers) -> None:
    assert await living.explain("no such job") is None
