"""The logtail adapter: batches, cursors, waiting, several files; by inotify and by polling."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch, ConfigurationError, build, describe
from outrider_adapters.logtail import LogtailAdapter, LogtailSettings
from tests.adapters.logtail.following import job_record, job_records, names
from tests.adapters.readers import samples

WAIT_S = 20.0


def settings(*paths: Path | str, **more: Any) -> LogtailSettings:
    given = {"paths": [str(path) for path in paths], "poll_s": 0.05, "settle_s": 0.3, **more}
    return build(LogtailSettings, given, "test")


async def until(
    batches: AsyncIterator[Batch], enough: Callable[[list[Batch]], bool]
) -> list[Batch]:
    """Batches until there are enough of them; fails after `WAIT_S`."""
    seen: list[Batch] = []
    async with asyncio.timeout(WAIT_S):
        async for batch in batches:
            seen.append(batch)
            if enough(seen):
                return seen
    raise AssertionError("the batches ended")


def jobs(seen: list[Batch]) -> list[str]:
    return [event[2] for batch in seen for event in batch.events]


def at_least(number: int) -> Callable[[list[Batch]], bool]:
    return lambda seen: len(jobs(seen)) >= number


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as log:
        log.write(data)


@pytest.mark.parametrize("inotify", [True, False])
async def test_a_log_is_followed_across_a_rotation_and_a_restart(
    tmp_path: Path, inotify: bool
) -> None:
    path = tmp_path / "EventLog"
    given = settings(path, inotify=inotify, start_at="beginning")
    append(path, job_records(1, 3))
    async with LogtailAdapter("pool", given) as adapter:
        batches = adapter.batches(None)
        first = await until(batches, at_least(3))
        append(path, job_records(4, 5))
        path.rename(tmp_path / "EventLog.old")
        append(path, job_records(6, 7))
        first += await until(batches, at_least(4))
    cursor = json.loads(json.dumps(first[-1].cursor))
    append(path, job_record(8))
    async with LogtailAdapter("pool", given) as adapter:
        second = await until(adapter.batches(cursor), at_least(1))
    assert jobs(first) + jobs(second) == names(1, 8)


async def test_inotify_sees_a_change_long_before_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    append(path, job_record(1))
    given = settings(path, poll_s=30.0, settle_s=0.0, start_at="beginning")
    async with LogtailAdapter("pool", given) as adapter:
        batches = adapter.batches(None)
        await until(batches, at_least(1))
        writing = asyncio.get_running_loop().call_later(0.5, append, path, job_record(2))
        start_s = time.monotonic()
        await until(batches, at_least(1))
        assert time.monotonic() - start_s < 10.0
        assert not writing.cancelled()


async def test_the_first_start_marks_what_is_there_as_history(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    append(path, job_records(1, 5))
    async with LogtailAdapter("pool", settings(path)) as adapter:
        batches = adapter.batches(None)
        old = await until(batches, at_least(5))
        append(path, job_records(6, 7))
        new = await until(batches, at_least(2))
    assert jobs([batch for batch in old if batch.history]) == names(1, 5)
    assert jobs([batch for batch in new if not batch.history]) == names(6, 7)


async def test_a_quiet_log_moves_what_has_been_seen_forward(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    append(path, job_record(1))
    now_s = time.time()
    async with LogtailAdapter("pool", settings(path), heartbeat_s=0.1) as adapter:
        seen = await until(
            adapter.batches(None), lambda seen: seen[-1].seen_until_s is not None and len(seen) > 3
        )
    ups = [batch.seen_until_s for batch in seen if batch.seen_until_s is not None]
    assert ups[0] >= now_s
    assert ups == sorted(ups)
    assert seen[-1].age_s == 0.0


async def test_a_log_that_is_away_is_noted_with_a_growing_age(tmp_path: Path) -> None:
    clock_s = [1000.0]
    given = settings(tmp_path / "EventLog")
    async with LogtailAdapter("pool", given, lambda: clock_s[0], heartbeat_s=0.1) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, lambda seen: len(seen) == 1)
        clock_s[0] += 60.0
        seen += await until(batches, lambda seen: len(seen) == 1)
    assert [batch.age_s for batch in seen] == [0.0, 60.0]
    assert all(batch.seen_until_s is None for batch in seen)
    assert "EventLog is not there" in seen[-1].note


async def test_patterns_follow_new_files_and_leave_rotated_ones_alone(tmp_path: Path) -> None:
    append(tmp_path / "a.log", job_record(1))
    append(tmp_path / "a.log.1", job_record(99))
    os.utime(tmp_path / "a.log.1", (1_000_000_000, 1_000_000_000))
    given = settings(tmp_path / "*.log*", start_at="beginning")
    async with LogtailAdapter("pool", given) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, at_least(1))
        append(tmp_path / "b.log", job_record(2))
        seen += await until(batches, at_least(1))
        (tmp_path / "a.log").unlink()
        seen += await until(batches, lambda seen: seen[-1].seen_until_s is not None)
    assert sorted(jobs(seen)) == names(1, 2)
    assert [entry["path"] for entry in seen[-1].cursor["files"]] == [str(tmp_path / "b.log")]


async def test_a_pattern_keeps_to_its_log_while_a_rotation_has_taken_it_away(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.log"
    append(path, job_records(1, 2))
    given = settings(tmp_path / "*.log*", start_at="beginning")
    async with LogtailAdapter("pool", given, heartbeat_s=0.1) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, at_least(2))
        append(path, job_record(3))
        path.rename(tmp_path / "a.log.1")
        seen += await until(batches, lambda seen: "not there" in seen[-1].note)
        append(path, job_record(4))
        seen += await until(batches, lambda seen: names(4, 4)[0] in jobs(seen))
    assert jobs(seen) == names(1, 4)


async def test_files_of_different_forms_are_followed_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(samples.as_text(samples.RUN))
    (tmp_path / "json").write_bytes(samples.as_json(samples.RUN))
    (tmp_path / "xml").write_bytes(samples.as_xml(samples.RUN))
    given = settings(*(tmp_path / name for name in ("text", "json", "xml")), start_at="beginning")
    async with LogtailAdapter("pool", given) as adapter:
        seen = await until(adapter.batches(None), at_least(45))
    assert len(jobs(seen)) == 45
    assert sum(batch.ignored.get("image_size", 0) for batch in seen) == 6


async def test_a_long_log_comes_in_bounded_batches_between_which_the_loop_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "EventLog"
    number = 50_000
    path.write_bytes(job_records(1, number))
    turns = 0
    seen: list[Batch] = []
    async with asyncio.timeout(60), LogtailAdapter("pool", settings(path)) as adapter:

        async def watch() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1

        watching = asyncio.create_task(watch(), name="watch the loop")
        async for batch in adapter.batches(None):
            seen.append(batch)
            if len(jobs(seen)) >= number:
                break
        watching.cancel()
    assert jobs(seen) == names(1, number)
    assert max(len(batch.events) for batch in seen) < number / 2
    assert turns > len(seen)


async def test_an_unreadable_log_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    append(tmp_path / "EventLog", job_record(1))
    given = settings(tmp_path / "folder", tmp_path / "EventLog", start_at="beginning")
    async with LogtailAdapter("pool", given) as adapter:
        seen = await until(adapter.batches(None), at_least(1))
    assert jobs(seen) == names(1, 1)
    assert "folder: Is a directory" in seen[-1].note


async def test_a_file_nobody_recognises_is_noted_until_it_says_more(tmp_path: Path) -> None:
    path = tmp_path / "EventLog"
    append(path, b"hello\n")
    async with LogtailAdapter("pool", settings(path, start_at="beginning")) as adapter:
        batches = adapter.batches(None)
        seen = await until(batches, lambda seen: len(seen) == 1)
        assert "no log reader recognises it" in seen[0].note
        append(path, job_record(1))
        seen = await until(batches, at_least(1))
    assert jobs(seen) == names(1, 1)
    assert sum(batch.rejected.get("garbage", 0) for batch in seen) == 1


async def test_a_cursor_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async with LogtailAdapter("pool", settings(tmp_path / "EventLog")) as adapter:
        with pytest.raises(ValueError, match="no cursor of the logtail adapter"):
            await anext(aiter(adapter.batches({"position": 7})))


def test_an_unknown_format_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='did you mean "htcondor"'):
        LogtailAdapter("pool", settings(tmp_path / "EventLog", format="htcondr"))


def test_every_setting_says_why_one_would_change_it() -> None:
    assert all(setting.doc for setting in describe(LogtailSettings))


async def test_a_log_that_the_settings_name_no_more_is_left_alone(tmp_path: Path) -> None:
    kept, dropped = tmp_path / "kept", tmp_path / "dropped"
    append(kept, job_records(1, 2))
    append(dropped, job_records(11, 12))
    async with LogtailAdapter("pool", settings(kept, dropped)) as adapter:
        cursor = (await until(adapter.batches(None), at_least(4)))[-1].cursor
    append(dropped, job_records(13, 14))
    append(kept, job_records(3, 4))
    async with LogtailAdapter("pool", settings(kept)) as adapter:
        seen = await until(adapter.batches(cursor), at_least(2))
    assert jobs(seen) == names(3, 4)
    assert [Path(file["path"]) for file in seen[-1].cursor["files"]] == [kept]
