"""Test of the twin next to a real pool: it refuses with a reason, and starts are predicted."""

import json
from pathlib import Path
from typing import Final

import pytest

from outrider.journal import Journal
from outrider.model.events import STARTED
from outrider.twin.observed import observe
from tests.cli.running import shell
from tests.peers.expected_starts import Answer, answers
from tests.peers.pool import HTCondorPool
from tests.peers.test_htcondor_adapter import daemon_beside
from tests.service.running.process import DaemonProcess

pytest.importorskip("htcondor2", reason="outrider[htcondor] is not installed")
pytestmark = pytest.mark.htcondor

WHY: Final = "the journal holds 0.0 days; expected 2 weeks or more"
TWIN: Final = "\n[twin]\nnice = 0\nreplicates = 2\nstarts_every_s = 1.0\n"
ACTING: Final = '\n[acting]\npromote_first = true\npromote_after_s = 0.0\ncanary_users = ["bob"]\n'
"""Test setting: the daemon stays in shadow until it is promoted."""
SLEEP: Final = "executable = /bin/sleep\narguments = {seconds}\nrequest_memory = {memory}\n"
LOTS: Final = (8, 4, 12)
"""Sizes of lots of three-second jobs.

The first lot teaches the run time; during the second the loops are compiled, if needed.
"""
STARTS_WITHIN_S: Final = 6.0
"""Seconds in which the next job starts: the pool negotiates every second."""


def submit(pool: HTCondorPool, count: int, more: str = "", memory: str = "64") -> set[str]:
    """The names of new jobs, as the adapter has them."""
    cluster = pool.submit(f"{SLEEP.format(seconds=3, memory=memory)}{more}queue {count}\n")
    return {f"host.pool.test#{cluster}.{proc}" for proc in range(count)}


def started(journal: Path) -> dict[str, float]:
    """Return when each job of a journal began to run for the first time."""
    with Journal(journal, read_only=True) as opened:
        told = [e for _, _, e in opened.inputs_after(0) if e[1] == STARTED]
    return {job: at_s for at_s, _, job, _ in sorted(told, key=lambda e: -e[0])}


def test_a_minute_beside_a_pool_is_refused_by_the_twin_and_tells_what_starts_next(
    htcondor_pool: HTCondorPool, tmp_path: Path
) -> None:
    daemon, state = daemon_beside(htcondor_pool, tmp_path, has_log=True), tmp_path / "state"
    text = daemon.config.read_text().replace('mode = "shadow"', 'mode = "canary"')
    daemon.config.write_text(f'socket = "{tmp_path / "outrider.sock"}"\n{text}{TWIN}{ACTING}')
    held = submit(htcondor_pool, 2, "hold = true\n")
    nowhere = submit(htcondor_pool, 2, memory="900 GB")
    lots, mine, told = list(LOTS), set[str](), list[Answer]()
    try:
        with daemon:
            mine |= submit(htcondor_pool, lots.pop(0))
            for answer in answers(state / "starts.json"):
                told.append(answer)
                done = daemon.status()["jobs"]["completed"] >= len(mine)
                waits = any(job in answer["jobs"] for job in mine)
                if not done or waits:
                    continue
                if not lots:
                    break
                mine |= submit(htcondor_pool, lots.pop(0))
            expect_refusal(daemon)
            assert daemon.stop() == 0
    finally:
        htcondor_pool.run("root", "condor_rm", *(job.partition("#")[2] for job in held | nowhere))
    machines = observe(state / "journal.sqlite").record.machines.values()
    assert sorted(one.name.partition("@")[0] for one in machines) == list(htcondor_pool.machines)
    assert not any(one.spec.inferred for one in machines), "known since the first look"
    expect_refusal_of_commands(daemon.config, state / "journal.sqlite")
    expect_starts(told, mine, started(state / "journal.sqlite"))
    assert not any(held & answer["jobs"].keys() for answer in told), "nothing is said of them"
    said = [answer["jobs"][job] for answer in told for job in nowhere & answer["jobs"].keys()]
    assert said
    assert set(map(str, said)) == {"None"}, "no machine can run them"


def expect_refusal(daemon: DaemonProcess) -> None:
    """Status, the page's first line and the evidence say why there is no answer."""
    status = daemon.wait_until("the twin's answer", lambda s: s["twin"] is not None)
    assert status["twin"]["refused"] == WHY
    assert status["twin"]["past"] == {}
    assert f"not estimated: {WHY}" in status["saving"]["text"]
    assert WHY in status["sentence"]
    assert (status["mode"], status["configured_mode"]) == ("shadow", "canary")
    said = shell("promote", "--dry-run", "--config", daemon.config)
    assert said.code == 1, said
    assert f"the twin has no result for bandit: {WHY}" in said.out


def expect_refusal_of_commands(config: Path, journal: Path) -> None:
    """The same by the twin's own commands."""
    asked = shell("twin", journal, "--policy", "fifo", "--json")
    assert asked.code == 0, asked
    answer = json.loads(asked.out)
    assert (answer["refused"], answer["past"], answer["next"]) == (WHY, {}, None)
    once = shell("run-twin", "--config", config, "--once")
    assert (once.code, once.out.strip()) == (0, WHY), "that it refuses is an answer"


def expect_starts(told: list[Answer], jobs: set[str], starts_s: dict[str, float]) -> None:
    """Jobs that wait have an interval; those that start next are expected now."""
    assert {answer["discipline"] for answer in told} == {"first_fit"}
    said = [
        (starts_s[job] - answer["asked_s"], one["low_s"] - answer["asked_s"], one["high_s"])
        for answer in told
        for job, one in answer["jobs"].items()
        if one is not None and job in jobs
    ]
    later = [row for row in said if row[1] > 0]
    now_s = [late_s for late_s, low_s, _ in said if low_s == 0.0]
    assert later
    assert len(now_s) >= 3
    assert sum(late_s <= STARTS_WITHIN_S for late_s in now_s) >= 0.8 * len(now_s), now_s
