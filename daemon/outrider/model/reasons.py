"""Texts of reason codes: why a job waits, why a run ended, what the gate answered.

The one table for CLI, page, MQTT and reports. Codes are data (JSON, journal, metrics) and never
change; texts are for people. A code of a plugin that has no text is shown with blanks for `_`.
"""

from collections.abc import Mapping
from typing import Final

RUN_TEXTS: Final[Mapping[str, str]] = {
    "owner": "evicted: the owner of the machine returned",
    "reboot": "evicted: the machine rebooted",
    "preempted": "evicted: preempted by another job",
    "drained": "evicted: the machine was drained",
    "failed_start": "failed to start",
    "removed": "removed from the queue",
    "held": "put on hold",
    "killed": "killed",
    "unknown": "ended early, reason unknown",
}
"""Ends of runs that did not complete their job, by eviction reason."""

DECISION_TEXTS: Final[Mapping[str, str]] = {
    # from the scheduling pass, whichever policy decides
    "no_machine": "no free machine can take it",
    "impossible": "no machine of this site can take it",
    "guard": "it has been deferred for as long as the policy may",
    "handed_back": "it was kept waiting for as long as allowed, so the batch system decides",
    "unknown_machine": "the policy named a machine that is not known",
    "closed": "the machine is outside its opening hours",
    "cpus": "the machine has too few free CPUs",
    "memory": "the machine has too little free memory",
    "gpus": "the machine has too few free GPUs",
    "resource": "the machine lacks a resource that the job needs",
    "ineligible": "the job's requirements exclude the machine",
    "promised": "the CPUs are reserved for a job before it",
    **{f"ended_{code}": f"the wait ended: {text}" for code, text in RUN_TEXTS.items()},
    # from policies
    "any": "any machine will do",
    "first": "it is the first in the queue that fits",
    "best": "this choice has worked best so far",
    "explore": "the policy tries a random choice from time to time, to learn",
    "hold": "waiting has worked best so far",
    "full": "the chosen machine group has no free machine",
    "automaton": "the learning automaton drew this machine",
    "greedy": "the machine has the highest capacity per job",
    "untried": "this choice has not been tried yet",
    "sample": "it scored best in a random draw from what was learned",
    "random": "the machine was drawn at random",
    "longest_free": "the machine has been free longest",
    "shortest": "the shortest job goes first",
    "deadline": "the job with the nearest deadline goes first",
    "best_fit": "the machine leaves the fewest CPUs unused",
    "least_loaded": "the machine group has the lowest load",
    "capacity": "the machine was drawn by capacity",
    "turn": "machine groups take turns",
    "lowest_watts": "the machine uses the least power per CPU",
    "lost_hours": "jobs were often evicted at this hour",
    "reboot": "the machines reboot before it could end",
    "completes": "it can end there before the machine is needed",
    "hopeless": "no machine is free for long enough",
    "forced": "it has waited for as long as the policy may keep it",
    "availability": "the machine is free for long enough",
    "unknown_watts": "the power use of the machines is not known",
    "cheapest": "the expected cost is lowest there",
    "too_dear": "every start now would probably waste more than waiting",
    "at_once": "it can start immediately",
    "refused": "no plan has room for it",
    "waited_interactive": "interactive jobs have waited too long",
    "waited_batch": "batch jobs have waited too long",
    "selected": "it was selected from the first jobs in the queue",
    "densest": "it has the most value per CPU",
    "grow": "it gets more CPUs",
    "preempted": "it is suspended to make room for another job",
    "shrunk": "it starts on fewer CPUs than it asked for",
}
"""Reasons of policies and of the scheduling pass: a clause that follows a colon."""

WAITS_FOR_A_MACHINE: Final = frozenset({"no_machine", "impossible"})
"""Reasons of a job that waits for a machine, whatever its policy would choose."""

ACTION_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "start": ("start it", "started it"),
    "defer": ("keep it queued", "kept it queued"),
    "preempt": ("suspend it", "suspended it"),
    "resume": ("resume it", "resumed it"),
    "shrink": ("change its CPUs", "changed its CPUs"),
    "wake": ("wake it", "woke it"),
    "sleep": ("put it to sleep", "put it to sleep"),
}
"""Actions of policies: what they would do, and what they did."""

GATE_TEXTS: Final[Mapping[str, str]] = {
    "act": "may be applied",
    "would": "would be allowed, but this mode does not apply it",
    "outside_canary": "not part of the canary",
    "stale_input": "the adapter's data is too old",
    "no_lever": "no lever can apply it",
    "budget": "the limit of starts per minute is reached",
}
"""Answers of the gate about a decision, and its reasons to refuse."""

START_ANSWER_TEXTS: Final[Mapping[str, str]] = {
    "interval": "expected",
    "next_pass": "now, in the next pass",
    "not_known": "not known",
    "not_said": "not available",
}
"""Answers about an expected start that are no time."""

CODE_LABELS: Final[Mapping[str, str]] = {
    "owner": "owner returned",
    "drained": "machine drained",
    "failed_start": "failed to start",
    "removed": "job removed",
    "held": "job held",
    "unknown": "reason unknown",
    "stale_input": "adapter data too old",
    "no_lever": "no lever for it",
    "budget": "limit of starts reached",
    "outside_canary": "not part of the canary",
    **START_ANSWER_TEXTS,
}
"""Short labels of codes in tables and counts, where the code with blanks would not do."""


def label(code: str) -> str:
    """Return the short label of any code, for a table or a list of counts."""
    return CODE_LABELS.get(code, code.replace("_", " "))


def reason_text(code: str) -> str:
    """Return why a policy decided so, as a clause.

    >>> reason_text("no_machine"), reason_text("a_plugins_own")
    ('no free machine can take it', 'a plugins own')
    """
    return DECISION_TEXTS.get(code) or label(code)


def action_text(action: str, done: bool = False) -> str:
    """Return what a policy would do, or did, as a verb with its object."""
    would, did = ACTION_TEXTS.get(action, (f"{label(action)} it", f"applied {label(action)}"))
    return did if done else would


def run_text(reason: str | None) -> str:
    """Return how a run ended; None: it completed its job.

    >>> run_text(None), run_text("owner")
    ('completed', 'evicted: the owner of the machine returned')
    """
    return "completed" if reason is None else RUN_TEXTS.get(reason) or f"ended: {label(reason)}"


def gate_text(answer: str) -> str:
    """Return the gate's answer in words: of ``act``, ``would`` or ``refused: CODE``."""
    head, _, code = answer.partition(": ")
    if head == "refused":
        return f"refused: {GATE_TEXTS.get(code) or label(code)}"
    return GATE_TEXTS.get(answer) or label(answer)
