"""The mode: since when, what lowers it, and what was commanded last."""

from collections import Counter
from typing import Any, Final

import msgspec

from outrider.acting.lever_runner import LeverRunner
from outrider.acting.lever_thread import OUTCOMES
from outrider.journal import CommandRecord
from outrider.service.commands.command import CommandPort

_LAST: Final = 5


def command_rows(commands: CommandPort | None, most: int) -> list[dict[str, Any]]:
    """The last commands and changes of the mode, the newest first."""
    records = [] if commands is None else commands.history.records
    return [_row(record) for record in reversed(records[-most:])]


def _row(record: CommandRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(record)


def mode_shown(mode: str, configured: str, commands: CommandPort | None) -> dict[str, Any]:
    """The part of the status that is about the mode, and names nobody but in `commands`."""
    return {
        "configured_mode": configured,
        "mode_since_s": None if commands is None else commands.history.since_s(mode),
        "commands": command_rows(commands, _LAST),
    }


# -- acting ----------------------------------------------------------------------------------------
# What is carried out: the levers, what stands by them, and what became of it.


def levers_shown(runner: LeverRunner | None) -> list[dict[str, Any]]:
    """What each lever did and what stands by it; empty in a mode that never acts."""
    if runner is None:
        return []
    shown = []
    for thread in runner.threads:
        counts, standing = thread.counts, thread.standing
        by_action = Counter(decision.action for decision in standing.values())
        shown.append(
            {
                "adapter": thread.adapter,
                "name": thread.lever.name,
                "actions": list(thread.lever.actions),
                "lease_s": thread.lever.lease_s,
                "standing": {action: by_action[action] for action in thread.lever.actions},
                "changes": {outcome: counts[outcome] for outcome in OUTCOMES},
                "problem": thread.failure,
            }
        )
    return shown


def lease_of(runner: LeverRunner | None, job: str) -> dict[str, Any] | None:
    """What stands for a job in the batch system, or why that was refused; None: neither."""
    for thread in runner.threads if runner is not None else ():
        decision, refusal = thread.standing.get(job), thread.refusals.get(job)
        if decision is None and refusal is None:
            continue
        machine = None if decision is None else decision.machine
        return {
            "lever": thread.lever.name,
            "action": None if decision is None else decision.action,
            "machine": machine if thread.lever.places else None,
            "decided_s": None if decision is None else decision.time_s,
            "refused_because": refusal,
        }
    return None
