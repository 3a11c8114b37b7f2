"""Recorded facts of the site besides events: scheduler, discipline and site profile."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
import structlog

from outrider.api import JobSpec, SiteHabits, events
from outrider.journal import Journal
from outrider.journal.site_facts import HABITS_KEY, INCUMBENT_KEY, Incumbent, facts_on_record
from outrider.model.machines import NEVER_S
from outrider.plugins.finding import POLICIES, find, load_adapter
from outrider.service.config.loaded import check_config
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.daemon.daemon_state import site_facts
from outrider.service.daemon.sources import make_adapters
from tests.service.running.scripted import Scripted, Step, batch_of, loaded, running, scripts, until

__all__ = ["scripts"]


def job(name: str) -> events.NamedEvent:
    return time.time(), events.SUBMITTED, name, JobSpec()


async def tell(scripts: dict[str, list[Step]], supervisor: Any, name: str) -> None:
    """A job is submitted and on record."""
    before = supervisor.view.recording.last_seq
    scripts["site"].append(batch_of(job(name)))
    await until(lambda: supervisor.view.recording.last_seq > before)


def test_the_configured_site_is_on_record_and_follows_a_reload(
    tmp_path: Path, scripts: dict[str, list[Step]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scripted, "incumbent", "sjf")
    monkeypatch.setattr(Scripted, "habits", SiteHabits(reboot="04:00", idle_before_job_open_s=60.0))
    hours = {"lab": {"match": ["lab-*"], "open": "mon-fri 09:00-17:00"}}

    async def watch() -> None:
        first = loaded(tmp_path, "site", reboot="03:00", reconsider_s=900.0)
        async with running(first, tmp_path) as supervisor:
            await tell(scripts, supervisor, "1.0")
            before = facts_on_record(tmp_path / JOURNAL_NAME)
            assert before is not None
            assert before.incumbent == Incumbent("sjf", "site")
            assert before.discipline == "first_fit"
            assert before.clusters == ()
            assert before.habits == SiteHabits(
                reboot="03:00", idle_before_job_open_s=60.0, reconsider_s=900.0
            )
            await supervisor.reload(loaded(tmp_path, "site", clusters=hours, discipline="easy"))
            await tell(scripts, supervisor, "2.0")
        after = facts_on_record(tmp_path / JOURNAL_NAME)
        assert after is not None
        assert (after.habits.reboot, after.discipline) == ("04:00", "easy")
        (lab,) = after.clusters
        assert (lab.name, lab.hours.text) == ("lab", "mon-fri 09:00-17:00")
        assert lab.sleep_after_closed_s == NEVER_S

    asyncio.run(watch())


def test_without_an_adapter_that_names_one_there_is_no_incumbent(
    tmp_path: Path, scripts: dict[str, list[Step]]
) -> None:
    async def watch() -> None:
        async with running(loaded(tmp_path, "site"), tmp_path) as supervisor:
            await tell(scripts, supervisor, "1.0")

    asyncio.run(watch())
    with Journal(tmp_path / JOURNAL_NAME, read_only=True) as journal:
        assert journal.meta(INCUMBENT_KEY, "nothing") is None
        assert journal.meta(HABITS_KEY)["idle_before_job_open_s"] is None


@pytest.mark.parametrize(
    ("kind", "policy", "discipline"),
    [
        ("htcondor", "user_priority", "first_fit"),
        ("mock_condor", "user_priority", "first_fit"),
        ("slurm", "multifactor", "easy"),
        ("pbs", "fifo", "easy"),
        ("mqtt", None, None),
        ("logtail", None, None),
    ],
)
def test_an_adapter_names_the_policy_that_is_most_like_its_batch_system(
    kind: str, policy: str | None, discipline: str | None
) -> None:
    plugin = load_adapter(kind)
    assert (plugin.incumbent, plugin.discipline) == (policy, discipline)
    assert policy is None or policy in find(POLICIES)


def test_a_simulated_site_tells_its_incumbent_and_all_of_its_habits() -> None:
    small = {"type": "simulated", "machines": 8, "clusters": 2, "weeks": 0.1}
    adapter = {"campus": small | {"incumbent": "lowest_watts"}}
    configured = check_config({"adapters": adapter, "reconsider_s": 60.0}, "test")
    adapters = make_adapters(configured, {})
    facts = site_facts(configured, adapters, adapters["campus"].clusters())
    assert facts.incumbent == Incumbent("lowest_watts", "campus")
    assert facts.habits.reboot == "03:00"
    assert facts.habits.reconsider_s == 3_600.0  # that of the campus, not of the daemon
    assert None not in [getattr(facts.habits, name) for name in SiteHabits.__struct_fields__]
    assert all(spec.sleeps for spec in facts.clusters)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("incumbent", 7),
        ("habits", None),
        ("habits", SiteHabits(wake_s=-1.0)),
        ("habits", property(lambda adapter: 1 / 0)),
    ],
)
def test_what_an_adapter_tells_wrongly_is_not_known_and_the_daemon_runs(
    tmp_path: Path, scripts: dict[str, list[Step]], monkeypatch: pytest.MonkeyPatch,
    name: str, value: object,
) -> None:  # fmt: skip
    monkeypatch.setattr(Scripted, "incumbent", "sjf")
    monkeypatch.setattr(Scripted, name, value)

    async def watch() -> None:
        async with running(loaded(tmp_path, "site"), tmp_path) as supervisor:
            await tell(scripts, supervisor, "1.0")

    with structlog.testing.capture_logs() as lines:
        asyncio.run(watch())
    facts = facts_on_record(tmp_path / JOURNAL_NAME)
    assert facts is not None
    assert (facts.incumbent, facts.habits.wake_s) == (None, None)
    (ignored,) = [line for line in lines if line["event"] == "site_facts_ignored"]
    assert ignored["adapter"] == "site"
