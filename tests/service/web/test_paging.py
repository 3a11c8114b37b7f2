"""Lists come in pages that no client can make large, and the pages together are the list."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.api import Batch, JobSpec, MachineSpec
from outrider.model.events import JOINED, SUBMITTED, NamedEvent
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider.service.twin.starts_file import StartInterval, StartsFile
from outrider.service.twin.watch import TwinWatch
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.web.endpoint import LARGEST_PAGE_BYTES, page_of
from outrider.service.web.endpoints.jobs import jobs
from outrider.service.web.endpoints.machines import machines
from tests.fixtures.cores import core_of
from tests.fixtures.plain import plain

T = 1_700_000_000.0
CONFIG = {"adapters": {"log": {"type": "logtail", "paths": ["/nowhere"]}}}
MANY = 3_000


@pytest.fixture(scope="module")
def large() -> Core:
    """A site of many jobs with long names, and of as many machines."""
    core = Core(check_config(CONFIG, "test"), [SourceState("log", "logtail", False, 0.0)])
    events: list[NamedEvent] = []
    for n in range(MANY):
        events.append((T, SUBMITTED, f"{n}.{'x' * 150}", JobSpec(user=f"u{n}")))
        events.append((T, JOINED, f"m{n}.{'y' * 150}", MachineSpec("lab")))
    feed = core.take("log", Batch(events=events, cursor=None), T + 60)
    while core.step(feed, 1_000):
        pass
    return core


def with_starts(core: Core, limit: int, after: str | None) -> Any:
    """Return a page of jobs with their expected starts under four policies."""
    policies = core_of("log", policies={name: {} for name in ("fifo", "sjf", "edf", "best_fit")})
    policies.sources["log"].note_batch(Batch(events=[], cursor=None), 60.0)
    watch, start = TwinWatch(Path("/nowhere")), StartInterval(T + 70.123, T + 80.123, T + 90.123)
    told: dict[str, StartInterval | None] = {f"{job}.{'x' * 150}": start for job in range(MANY)}
    watch.starts = StartsFile(
        asked_s=policies.now_s, jobs=told, candidates_asked_s=policies.now_s,
        candidates={runner.name: told for runner in policies.runners},
    )  # fmt: skip
    starts = ExpectedStarts(watch, policies, own_clock=True)
    answer = plain(jobs(core, limit, None, after, starts=starts, candidates=True))
    assert len(answer["jobs"][0]["expected_start_under"]) == 4
    assert len(msgspec.json.encode(answer["expected_starts"])) < 300
    return {**answer, "expected_starts": None}


@pytest.mark.parametrize(
    ("ask", "rows", "name"),
    [
        (lambda core, limit, after: jobs(core, limit, None, after), "jobs", "job"),
        (
            lambda core, limit, after: machines(core, limit, -1 if after is None else after),
            "machines",
            "machine",
        ),
        (with_starts, "jobs", "job"),
    ],
    ids=["jobs", "machines", "jobs with starts"],
)
@pytest.mark.parametrize("limit", [5_000, 700])
def test_the_pages_together_are_the_list_and_none_is_large(
    large: Core, ask: Callable[..., Any], rows: str, name: str, limit: int
) -> None:
    seen: list[str] = []
    after: int | str | None = None
    pages = 0
    while pages == 0 or after is not None:
        answer = plain(ask(large, limit, after))
        assert len(msgspec.json.encode(answer)) <= LARGEST_PAGE_BYTES + 300
        assert len(answer[rows]) <= limit
        assert answer["total"] == MANY
        seen += [row[name] for row in answer[rows]]
        after, pages = answer["next"], pages + 1
        assert pages < 20
    assert len(seen) == len(set(seen)) == MANY
    assert pages > 1


def test_a_row_larger_than_a_page_is_sent_alone() -> None:
    rows = [(1, {"a": "x" * 2 * LARGEST_PAGE_BYTES}), (2, {"a": "y"})]
    page, after = page_of(rows, 10)
    assert (len(page), after) == (1, 1)


def test_the_last_page_says_that_nothing_follows() -> None:
    rows = [(n, {"n": n}) for n in range(3)]
    assert page_of(rows, 3) == ([row for _, row in rows], None)
    assert page_of(rows, 2) == ([row for _, row in rows[:2]], 1)
    assert page_of([], 2) == ([], None)


def test_rows_that_fill_a_page_to_the_byte_are_one_page_and_a_byte_more_are_two() -> None:
    """Each row counts with the comma behind it."""
    row = {"a": "x" * (LARGEST_PAGE_BYTES // 4 - len('{"a":""},'))}
    assert page_of([(n, row) for n in range(4)], 10) == ([row] * 4, None)
    longer = {"a": row["a"] + "x"}
    assert page_of([(0, row), (1, row), (2, row), (3, longer)], 10) == ([row] * 3, 2)
