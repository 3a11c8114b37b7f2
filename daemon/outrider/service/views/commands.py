"""Views of the mode, of recorded commands, and of levers and leases."""

from collections import Counter
from typing import Any, Final

import msgspec

from outrider.acting.lever_runner import LeverRunner
from outrider.acting.lever_thread import OUTCOMES
from outrider.journal import CommandRecord
from outrider.service.commands.command import CommandPort

_LAST: Final = 5


def command_rows(commands: CommandPort | None, most: int) -> list[dict[str, Any]]:
    """Return the last commands and mode changes, the newest first."""
    records = [] if commands is None else commands.history.records
    return [_row(record) for record in reversed(records[-most:])]


def _row(record: CommandRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(record)


def mode_shown(mode: str, configured: str, commands: CommandPort | None) -> dict[str, Any]:
    """Return the part of the status about the mode; only `commands` has user names."""
    return {
        "configured_mode": configured,
        "mode_since_s": None if commands is None else commands.history.since_s(mode),
        "commands": command_rows(commands, _LAST),
    }


# -- acting ----------------------------------------------------------------------------------------
# Levers, their active leases, and the outcome of their changes.


def levers_shown(runner: LeverRunner | None) -> list[dict[str, Any]]:
    """Return the changes and active leases of each lever; empty in a mode that never acts."""
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
    """Return a job's active lease, or why it was refused; None: neither."""
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
