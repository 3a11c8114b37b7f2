"""Policies in mode `observe`: they decide nothing and keep what they learned."""

from pathlib import Path
from typing import Any

from outrider.service.commands.command import Promote, SetMode
from tests.service.modes.acting_daemon import daemon, give, mode_of, until
from tests.service.running.test_levers import desk, loaded_in

__all__ = ["desk"]


def counted(supervisor: Any) -> tuple[int, int]:
    """Return the number of the policy's decisions, and of jobs that wait for it."""
    [runner] = supervisor.view.core.runners
    return runner.decisions, len(runner.queue.waiting)


async def test_it_is_taken_up_again_also_after_a_restart(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state, "shadow") as supervisor:
        assert counted(supervisor) == (3, 3)
        await give(supervisor, SetMode(mode="observe"))
        assert supervisor.view.core.runners == []
        assert "nothing is decided: the policies are paused and keep what they learned" in (
            supervisor.view.notes
        )
    async with daemon(state, "observe") as supervisor:
        await supervisor.reload(loaded_in("shadow", state))
        assert mode_of(supervisor) == "observe"
        await until(lambda: supervisor.view.ready()[0])
        assert (await give(supervisor, Promote())).outcome == "done"
        assert mode_of(supervisor) == "shadow"
        assert counted(supervisor) == (3, 3)


async def test_another_policy_begins_afresh(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with daemon(state, "shadow") as supervisor:
        await supervisor.reload(loaded_in("observe", state))
        await supervisor.reload(loaded_in("shadow", state, policies={"sjf": {}}))
        assert counted(supervisor)[1] == 3
        assert "policies that start afresh: sjf" in supervisor.view.notes
