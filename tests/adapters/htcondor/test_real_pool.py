"""Tests of the `htcondor` adapter with a pool that accepts connections and never answers."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from outrider.api import Batch, PeerError

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")

from outrider_adapters.htcondor.pool_process import DIAGNOSE, LOOK, PoolProcess, asked_once
from outrider_adapters.htcondor.real_pool import HTCondorAdapter
from outrider_adapters.htcondor.settings import HTCondorSettings


@pytest.fixture
def mute() -> Iterator[str]:
    """Host and port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def test_a_silent_collector_holds_up_neither_the_loop_nor_the_end(mute: str) -> None:
    adapter = HTCondorAdapter("pool", HTCondorSettings(collector=mute, answer_within_s=600))
    gaps_s: list[float] = []

    async def watch_the_loop() -> None:
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(0.05)
            gaps_s.append(time.monotonic() - before_s)

    loop_watch = asyncio.create_task(watch_the_loop())
    async with adapter:
        async with aclosing(adapter.batches(None)) as batches:
            waiting: list[Batch] = [await anext(batches), await anext(batches)]
        assert adapter._process is not None
        asked_by = adapter._process._process
        began_s = time.monotonic()
    left_after_s = time.monotonic() - began_s
    loop_watch.cancel()
    assert waiting[1].age_s > waiting[0].age_s > 1.0
    assert "the batch system has not answered" in waiting[1].note
    assert asked_by.poll() == -signal.SIGKILL
    assert left_after_s < 3.0
    assert max(gaps_s) < 1.0, "the bindings keep the global lock while they wait"


async def test_a_collector_that_is_given_up_is_named_with_the_way_out(mute: str) -> None:
    adapter = HTCondorAdapter("pool", HTCondorSettings(collector=mute, answer_within_s=1))

    async def read() -> None:
        async with adapter, aclosing(adapter.batches(None)) as batches:
            async for _ in batches:
                pass

    with pytest.raises(
        PeerError, match=f"the collector {mute} does not answer: it accepts the connection"
    ):
        await read()


def test_a_process_that_was_killed_is_told_and_leaves_nothing_behind(mute: str) -> None:
    process = PoolProcess(HTCondorSettings(collector=mute))
    pid = process._process.pid
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the process that queries the pool"):
        process.ask(LOOK)
    process.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        pytest.fail("it was not waited for")


def test_a_look_before_the_beginning_fails_and_the_process_lives_on(mute: str) -> None:
    process = PoolProcess(HTCondorSettings(collector=mute))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"look\(\) before begin"):
            process.ask(LOOK)
    process.close()


def test_messages_of_earlier_questions_do_not_pile_up(mute: str) -> None:
    process = PoolProcess(HTCondorSettings(collector=mute))
    kept = Path(f"/proc/{process._process.pid}/fd/2")
    try:
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"look\(\) before begin"):
                process.ask(LOOK)  # no call to the pool takes the messages
            size = kept.stat().st_size
            kept.write_text("an old message\n" * 1_000)
        assert size < 1_000
    finally:
        process.close()


def test_who_asks_once_waits_for_some_seconds_whatever_the_bindings_wait_for(mute: str) -> None:
    settings = HTCondorSettings(collector=mute, answer_within_s=600)
    with pytest.raises(PeerError, match=f"no answer within 2 s from the collector {mute} or"):
        asked_once(settings, DIAGNOSE, within_s=2.0)


@pytest.mark.parametrize("collector", ["no-such-host.invalid:9618", "127.0.0.1:1"])
def test_a_pool_that_is_nowhere_fails_the_doctor_and_is_noted_for_the_service(
    collector: str,
) -> None:
    adapter = HTCondorAdapter("pool", HTCondorSettings(collector=collector, answer_within_s=1))
    [(what, state, found, remedy)] = adapter.diagnose()
    assert (what, state) == ("collector", "fail")
    assert collector in found
    assert remedy
    with pytest.raises(PeerError, match=collector):
        adapter.machine_attributes()
    needs = adapter.service_needs()
    assert needs.hosts == {collector.partition(":")[0]: "HTCondor's collector"}
    [note] = needs.notes
    assert note.startswith("the addresses of HTCondor's access points are not known: ")
    assert needs.unknown_hosts == note
    assert bool(needs.shared_tmp) == collector.startswith("127.")
    assert collector in note
