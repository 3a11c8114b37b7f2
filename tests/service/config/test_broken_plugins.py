"""A broken plugin is reported by its name, and the others work without it."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.service.config.plugins import install
from tests.service.running.process import OUTRIDER
from tests.service.running.small_site import LOG_TABLE, SmallSite

WHY = "needs a library that is not here"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Variables with which the broken plugins are found."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    return install(folder)


def outrider(environ: dict[str, str], *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [OUTRIDER, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env=os.environ | environ,
    )


def policies(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {policy["name"]: policy for policy in status["policies"]}


def test_it_is_listed_by_name_among_those_that_load(environ: dict[str, str]) -> None:
    done = outrider(environ, "plugins", "--json")
    assert done.returncode == 1
    groups = json.loads(done.stdout)
    adapters = {p["name"]: p for p in groups["adapters"]}
    assert adapters["broken_adapter"]["state"] == "broken"
    assert WHY in adapters["broken_adapter"]["why"]
    assert adapters["logtail"]["state"] == "ok"
    states = {p["name"]: p["state"] for p in groups["policies"]}
    assert states["broken_policy"] == "broken"
    assert states["bandit"] == states["late_failure"] == "ok"


def test_the_rest_start_without_it_and_say_so(tmp_path: Path, environ: dict[str, str]) -> None:
    tables = (
        LOG_TABLE
        + "[adapters.broken_adapter]\n[adapters.garbler]\n[adapters.raiser]\n[adapters.unmade]\n"
        + "[policies.broken_policy]\n[policies.fifo]\n"
        + "[policies.late_failure]\n[policies.untaught]\n[policies.unmade_policy]\n"
    )
    site = SmallSite(tmp_path, tables=tables, environ=environ)
    site.log.run(range(1, 11))
    with site.daemon as daemon:
        status = site.wait_until_applied()
        notes = [note for note in status["notes"] if WHY in note]
        assert any('adapter "broken_adapter"' in note for note in notes)
        assert any('policy "broken_policy"' in note for note in notes)

        assert any("unmade fails: LookupError: no such pool" in note for note in status["notes"])

        told = policies(status)
        lost = {"late_failure", "untaught", "broken_policy", "unmade_policy"}
        assert set(told) == {"fifo"} | lost
        assert WHY in told["broken_policy"]["broken"]
        assert 'policy "unmade_policy" fails while it is made' in told["unmade_policy"]["broken"]
        assert "LookupError: no model here" in told["unmade_policy"]["broken"]
        assert told["unmade_policy"]["decisions"] == 0
        assert told["fifo"]["broken"] is None
        failure = 'policy "late_failure" failed: RuntimeError: out of ideas'
        assert told["late_failure"]["broken"] == failure
        assert "ZeroDivisionError: nothing learned" in told["untaught"]["broken"]
        assert failure in status["sentence"]
        metrics = site.metrics()
        for name in set(told):
            n = int(name in lost)
            assert metrics[f'outrider_policy_failures_total{{policy="{name}"}}'] == n
        lines = [line for line in site.log_text().splitlines() if "policy_failed" in line]
        for name in lost:
            (line,) = [line for line in lines if f"policy={name}" in line]
            assert "error" in line
        assert len(lines) == len(lost)

        adapters = {adapter["label"]: adapter for adapter in status["adapters"]}
        assert adapters["garbler"]["rejected"] == {"malformed": 6}
        assert not adapters["raiser"]["up"]
        assert adapters["raiser"]["note"] == "KeyError: 'lost my place'"
        assert adapters["log"]["up"]
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_the_others_decide_as_they_would_without_it(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    decided = []
    for name, tables in {
        "alone": "[policies.bandit]\n",
        "beside": "[policies.late_failure]\n[policies.bandit]\n[policies.untaught]\n",
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        site = SmallSite(folder, tables=LOG_TABLE + tables, environ=environ)
        site.log.at(1_700_000_000.0)
        for job in range(1, 40):
            site.log.submit(job)
            site.log.start(job, job % 7)
            if job > 7:
                site.log.complete(job - 7)
        with site.daemon as daemon:
            site.wait_until_applied()
            assert daemon.stop() == 0
        with site.journal() as journal:
            decided.append(
                [
                    (d.time_s, d.job, d.action, d.machine, d.reason, d.propensity)
                    for _, d in journal.decisions()
                    if d.policy == "bandit"
                ]
            )
    assert decided[0] == decided[1] != []


def test_one_that_cannot_be_saved_is_asked_no_more_and_the_snapshots_go_on(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    tables = LOG_TABLE + "[policies.fifo]\n[policies.forgetful]\n"
    site = SmallSite(tmp_path, head="snapshot_every_s = 0.2\n", tables=tables, environ=environ)
    site.log.run([1, 2])
    with site.daemon as daemon:
        site.wait_until_applied()
        daemon.wait_until(
            "a snapshot", lambda status: status["ledger"]["snapshot_age_s"] is not None
        )
        broken = {policy["name"]: policy["broken"] for policy in daemon.status()["policies"]}
        assert "OSError: cannot remember" in broken["forgetful"]
        assert broken["fifo"] is None
        assert site.metrics()["outrider_ledger_failures_total"] == 0
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_a_restart_gives_a_failed_policy_another_chance(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + "[policies.late_failure]\n", environ=environ)
    site.log.run(range(1, 8))
    with site.daemon as daemon:
        assert policies(site.wait_until_applied())["late_failure"]["broken"]
        assert daemon.stop() == 0
        daemon.start()
        status = daemon.status()
        assert policies(status)["late_failure"]["broken"] is None
        assert "policies that start afresh: late_failure" in status["notes"]
        assert daemon.stop() == 0


def test_a_policy_with_a_wrong_setting_is_refused_even_if_it_could_not_be_made(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    tables = LOG_TABLE + "[policies.unmade_policy]\nspeed = 7\n"
    site = SmallSite(tmp_path, tables=tables, environ=environ)
    done = outrider(environ, "run", "--config", site.config)
    assert done.returncode == 2
    assert "[policies.unmade_policy]" in done.stderr
    assert '"speed"' in done.stderr


def test_a_reload_that_would_lose_what_a_policy_learned_is_refused(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    may = tmp_path / "may"
    may.touch()
    environ = environ | {"UNMADE_POLICY_MAY": str(may)}
    tables = LOG_TABLE + "[policies.fifo]\n[policies.unmade_policy]\n"
    site = SmallSite(tmp_path, tables=tables, environ=environ)
    site.log.run([1])
    with site.daemon as daemon:
        told = policies(site.wait_until_applied())
        assert told["unmade_policy"]["broken"] is None
        may.unlink()
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        refused = daemon.wait_until(
            "refused", lambda s: any("reload refused" in note for note in s["notes"]), within_s=20
        )
        assert any("what was learned is lost" in note for note in refused["notes"])
        assert policies(refused)["unmade_policy"]["broken"] is None
        assert daemon.stop() == 0


def test_a_daemon_without_any_adapter_that_loads_is_refused(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    site = SmallSite(tmp_path, tables="[adapters.broken_adapter]\n")
    done = outrider(environ, "run", "--config", site.config)
    assert done.returncode == 2
    assert "broken_adapter" in done.stderr
    assert WHY in done.stderr
