"""kill -9 at random moments, again and again, under load: nothing lost, nothing doubled."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.api import Batch
from outrider.journal import Journal, SnapshotStore
from outrider.model.events import KIND_NAMES, TICK
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider_adapters.logtail import LogtailAdapter
from tests.service.running.process import DaemonProcess

RATE = 1_250
CONFIG = """\
state_dir = "{state}"
listen = "127.0.0.1:0"
snapshot_every_s = 1.0

[adapters.log]
type = "logtail"
paths = ["{log}"]
start_at = "beginning"

[policies.bandit]
[policies.lowest_watts]
"""


def write_config(folder: Path, log: Path) -> Path:
    """Return a daemon with its own state directory on this log."""
    folder.mkdir()
    path = folder / "outrider.toml"
    path.write_text(CONFIG.format(state=folder / "state", log=log))
    return path


def kinds_in(journal: Journal) -> Counter[str]:
    """Events in a journal, by kind, counted from its rows."""
    rows = (event for _, _, event in journal.inputs_after(0))
    return Counter(KIND_NAMES[event[1]] for event in rows if event[1] != TICK)


def wait_until_recorded(folder: Path, events: int, within_s: float = 30.0) -> None:
    """Wait until that many events are in the journal: the core is a batch ahead of it."""
    deadline_s = time.monotonic() + within_s
    while True:
        with Journal(folder / "state" / "journal.sqlite", read_only=True) as journal:
            found = sum(kinds_in(journal).values())
        if found >= events:
            return
        assert time.monotonic() < deadline_s, f"{found} of {events} events were recorded"
        time.sleep(0.2)


def decided(journal: Journal) -> list[tuple[Any, ...]]:
    """Return every decision in a journal, without figures of the wall clock."""
    return [
        (d.time_s, d.job, d.action, d.machine, d.reason, d.policy, d.propensity)
        for _, d in journal.decisions()
    ]


def learned(journal: Journal) -> list[tuple[Any, ...]]:
    """Every outcome in a journal."""
    return [
        (o.time_s, o.job, o.ending, o.reason, o.policy, o.reward, o.on_policy)
        for _, o in journal.outcomes()
    ]


def last_snapshot(folder: Path) -> dict[str, Any]:
    """The newest snapshot of a daemon that has stopped."""
    found = SnapshotStore(folder / "state" / "snapshots").load_latest()
    assert found is not None
    state: dict[str, Any] = found[1]
    return state


def state_at(folder: Path, time_s: float) -> bytes:
    """Return the newest snapshot's state after a quiet period until a time.

    Two daemons that stop at different moments have seen their quiet site for different times. As
    bytes, because unknown energy is nan, which equals nothing, not even itself.
    """
    config = check_config(tomllib.loads((folder / "outrider.toml").read_text()), "test")
    core = Core(config, [SourceState("log", "logtail", True, 5.0)])
    core.restore(last_snapshot(folder))
    feed = core.take("log", Batch([], None), time_s)
    while core.step(feed, 1_000):
        pass
    state = core.save()
    del state["merger"]["seen"], state["gates"]
    return msgspec.msgpack.encode(state, order="sorted")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.long)])
def test_kills_under_load_lose_nothing_and_double_nothing(kills: int, tmp_path: Path) -> None:
    seed = int(os.environ.get("OUTRIDER_TEST_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}: OUTRIDER_TEST_SEED={seed} repeats it")  # noqa: T201 - to repeat a failure
    chance = random.Random(seed)
    log, counts = tmp_path / "EventLog", tmp_path / "counts.json"
    log.touch()
    words = [log, counts, seed, RATE, 300]
    script = Path(__file__).with_name("log_writer.py")
    writer = subprocess.Popen([sys.executable, script, *map(str, words)])
    try:
        killed = DaemonProcess(write_config(tmp_path / "killed", log))
        # one that begins when the first event may still have to wait for others, as long as events
        # may be late, counts from before that event; the spared one comes too late for that
        while log.read_bytes().count(b"\n...\n") < RATE * (LogtailAdapter.lateness_s + 2):
            assert writer.poll() is None
            time.sleep(0.01)
        for _ in range(kills):
            killed.spawn()
            time.sleep(chance.uniform(0.2, 2.2))
            killed.kill()
        writer.send_signal(signal.SIGTERM)
        assert writer.wait(60) == 0
    finally:
        writer.kill()
        writer.wait()
    written = json.loads(counts.read_text())
    seconds = written.pop("seconds")
    total = sum(written.values())
    assert total / seconds >= 1_000, f"the writer managed only {total / seconds:.0f} events/s"

    spared = DaemonProcess(write_config(tmp_path / "spared", log))
    for daemon in (killed, spared):
        with daemon:
            daemon.wait_until(
                "every job completed",
                lambda s: s["jobs"]["completed"] == written["completed"],
                within_s=120,
            )
            wait_until_recorded(daemon.config.parent, total)
            assert daemon.stop() == 0

    with (
        Journal(tmp_path / "killed" / "state" / "journal.sqlite", read_only=True) as broken,
        Journal(tmp_path / "spared" / "state" / "journal.sqlite", read_only=True) as whole,
    ):
        assert kinds_in(broken) == written
        assert kinds_in(whole) == written
        assert decided(broken) == decided(whole)
        assert learned(broken) == learned(whole)
        assert len(decided(whole)) > 0
    folders = tmp_path / "killed", tmp_path / "spared"
    later_s = max(last_snapshot(folder)["merger"]["now"] for folder in folders) + 3_600.0
    at_rest, beside = (state_at(folder, later_s) for folder in folders)
    assert at_rest == beside
