"""Climbing by command: a step at a time, up to the configuration's mode, on evidence."""

import asyncio
import time
from pathlib import Path

import pytest

from outrider.cli.status_text import evidence_lines
from outrider.journal import Journal
from outrider.service.commands.command import Promote, Release, SetMode
from outrider.service.commands.evidence import WATCHED_KEY
from outrider.service.core.mode_limit import limit_of
from outrider.service.twin.twin_file import write_plain
from outrider.service.web.endpoints.status import whole_status
from tests.service.modes.acting_daemon import EVIDENCE, commands_of, daemon, give, mode_of, until
from tests.service.running.desk import Book, Desk
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]


async def test_it_climbs_step_by_step_and_then_the_configuration_alone_counts(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    async with daemon(state, canary_fraction=0.5, **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="observe"))
        for step in ("shadow", "canary", "active"):
            await until(lambda: supervisor.view.ready()[0])
            result = await give(supervisor, Promote(why="as before"))
            assert (result.outcome, result.mode) == ("done", step), result
            assert mode_of(supervisor) == step
        assert limit_of(state) is None
        assert whole_status(supervisor.view)["notes"] == []
        result = await give(supervisor, Promote())
        assert result.outcome == "refused"
        assert result.text == [
            'the configuration sets mode = "active", and no command goes beyond it'
        ]
        steps = [(r.from_mode, r.to_mode) for r in commands_of(supervisor).history.records[2:5]]
        assert steps == [("observe", "shadow"), ("shadow", "canary"), ("canary", "active")]


async def test_too_little_time_is_a_reason_and_there_is_no_way_around_it(tmp_path: Path) -> None:
    async with daemon(
        tmp_path / "state", promote_after_s=3600.0, promote_by_twin=False
    ) as supervisor:
        await give(supervisor, SetMode(mode="shadow"))
        result = await give(supervisor, Promote())
        assert (result.outcome, mode_of(supervisor)) == ("refused", "shadow")
        [why] = result.text
        assert why.endswith("mode shadow or above for 0.0 h, needed: 1.0 h (promote_after_s)")
        assert result.evidence is not None
        [policy] = result.evidence.policies
        assert (policy.name, policy.decisions) == ("fifo", 3)
        record = commands_of(supervisor).history.records[-1]
        assert (record.outcome, record.detail) == ("refused", result.text[0])


async def test_a_source_that_is_down_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(tmp_path / "state", **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="shadow"))
        monkeypatch.setattr(Desk, "problem", "no such desk")
        await until(lambda: "desk" in supervisor.view.core.sources_down)
        result = await give(supervisor, Promote())
        assert result.outcome == "refused"
        assert "source desk is down: no such desk" in result.text


async def test_the_twin_has_to_speak_for_the_policy_and_then_it_climbs(tmp_path: Path) -> None:
    state = tmp_path / "state"
    ratio = {"estimate": 0.8, "low": 0.7, "high": 0.9, "level": 0.9}
    names = ("energy_ratio", "badput_ratio", "overhead_mean_ratio")
    answer = {
        "window": {"begin_s": 0.0, "end_s": 2e6}, "incumbent": "random_match", "fidelity": None,
        "refused": None, "past": {"fifo": dict.fromkeys(names, ratio)}, "next": None,
    }  # fmt: skip
    async with daemon(state, promote_after_s=0.0) as supervisor:
        await give(supervisor, SetMode(mode="shadow"))
        result = await give(supervisor, Promote())
        assert result.outcome == "refused"
        assert result.text == ["the twin has no result yet (`outrider run-twin`)"]
        asked = {"asked_s": time.time(), "answer": answer, "candidates": {"fifo": {}}}
        write_plain(state, asked | {"answer": answer | {"refused": "3 days"}})
        await until(lambda: supervisor.view.twin.file is not None)
        assert (await give(supervisor, Promote())).text == [
            "the twin has no result for fifo: 3 days"
        ]
        write_plain(state, asked)
        await until(lambda: supervisor.view.saving().startswith("from "))
        result = await give(supervisor, Promote())
        assert (result.outcome, mode_of(supervisor)) == ("done", "active")
        assert result.evidence is not None
        lines = evidence_lines(result.evidence)
        figures = (
            "energy of runs 0.80 (0.70 to 0.90), wasted CPU time 0.80 (0.70 to 0.90), "
            "mean overhead 0.80"
        )
        assert [
            line
            for line in lines
            if f"fifo, compared with the current scheduler: {figures}" in line
        ]


async def test_nothing_acts_before_it_is_promoted_where_that_is_asked(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state, promote_first=True, **EVIDENCE) as supervisor:
        assert mode_of(supervisor) == "shadow"
        assert Book.made == []
        assert supervisor.view.mode_limit() is None
        result = await give(supervisor, Promote())
        assert (result.outcome, mode_of(supervisor)) == ("done", "active")
    limit = limit_of(state)
    assert limit is not None
    assert limit.most == "active", "or the next start would be in shadow again"


async def test_a_climb_that_cannot_be_put_in_force_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    async with daemon(state, **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="shadow", why="first"))
        limit = limit_of(state)

        def fail(*_: object) -> None:
            raise RuntimeError("no lever today")

        monkeypatch.setattr("outrider.service.daemon.daemon_state.make_lever_runner", fail)
        result = await give(supervisor, Promote())
        assert (result.outcome, result.mode) == ("failed", "shadow")
        assert "no lever today" in result.text[0]
        assert limit_of(state) == limit
        await give(supervisor, Release())
        assert mode_of(supervisor) == "shadow"


async def test_one_command_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = asyncio.Event()

    async def hang(*_: object) -> None:
        await goes_on.wait()

    async with daemon(tmp_path / "state", **EVIDENCE) as supervisor:
        await give(supervisor, SetMode(mode="shadow"))
        monkeypatch.setattr("outrider.service.process.supervisor.reload", hang)
        monkeypatch.setattr("outrider.service.modes.commander.TIMEOUT_S", 0.1)
        with pytest.raises(Exception, match=r"promote is not done after 0\.1 s, and continues"):
            await give(supervisor, Promote())
        with pytest.raises(Exception, match=r"promote by user .* is in progress: try again"):
            await give(supervisor, Promote())
        goes_on.set()


async def test_the_time_that_was_watched_is_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.service.process.supervisor._WATCHED_EVERY_S", 0.05)
    state = tmp_path / "state"
    async with daemon(state, "shadow") as supervisor:
        await until(lambda: commands_of(supervisor).evidence.watched_s > 0.5)
    with Journal(state / "journal.sqlite", read_only=True) as journal:
        kept = journal.meta(WATCHED_KEY)["s"]["shadow"]
    assert kept > 0.0
    async with daemon(state, "shadow") as supervisor:
        assert commands_of(supervisor).evidence.watched_s >= kept


async def test_other_policies_have_to_show_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider.service.process.supervisor._WATCHED_EVERY_S", 0.05)
    state = tmp_path / "state"
    async with daemon(state, "shadow") as supervisor:
        await until(lambda: commands_of(supervisor).evidence.watched_s > 0.3)
        await supervisor.reload(loaded_in("shadow", state, policies={"sjf": {}}))
        assert commands_of(supervisor).evidence.watched_s < 0.3
