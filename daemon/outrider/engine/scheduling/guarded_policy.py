"""Guard around one policy: it counts calls and impossible choices, and handles failures.

The scheduling passes call the policy; `DecidingPolicy` decides when, `PolicyRunner` reports to it
what happened.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from outrider.api.policy import Policy
from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.engine.scheduling.pending_queue import PendingQueue
from outrider.engine.scheduling.placement import Refusal
from outrider.engine.state.site import Site
from outrider.model.errors import PolicyError
from outrider.model.jobs import Job


class GuardedPolicy:
    """Policy with its queue, and the handling of its failures and impossible choices.

    Args:
        policy: the policy.
        acting: True for the one whose starts are executed; False in shadow.
        reconsider_s: decision epoch where the policy has none of its own, seconds.
        strict: True to raise an error in the policy (replay). Otherwise it is stored in `broken`,
            and the policy is no longer used while the others continue (the daemon).

    Attributes:
        awaits_starts: its starts are made by the batch system, not here: until it makes one,
            nothing else is chosen for the same CPUs.
        hand_back: limits how long a job is deferred, in simulations of levers; None: the policy
            alone decides.
        broken: the error with which the policy failed; empty while it has not.
        decisions, starts: counts of recorded decisions, and of those that start a job.
        moves: counts of recorded moves other than starts, by action.
        refused: counts of impossible choices, by reason (`placement.WHYS`).
    """

    def __init__(self, policy: Policy, acting: bool, reconsider_s: float, strict: bool) -> None:
        self.policy = policy
        self.name = policy.name
        self.acting = acting
        self.strict = strict
        self.awaits_starts = False
        self.hand_back: HandBack | None = None
        self.broken = ""
        own = policy.reconsider_s
        self.reconsider_s = reconsider_s if own is None else own
        self.queue = PendingQueue()
        self.decisions = 0
        self.starts = 0
        self.moves: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def refuse(self, job: Job, machine: Any, refusal: Refusal) -> str:
        """Count an impossible choice; return the reason with which the job stays queued.

        The policy continues. Raises `PolicyError` where it is strict.
        """
        if self.strict:
            raise PolicyError(
                f"impossible to start job {job.number} on machine {machine} ({refusal.why}): "
                f"asked for {refusal.asked}, but {refusal.left}"
            )
        self.refused[refusal.why] += 1
        return f"refused_{refusal.why}"

    def fail(self, error: Exception) -> None:
        """Stop using a policy that raised an error. Raises `PolicyError` where it is strict."""
        what = "" if isinstance(error, PolicyError) else f"{type(error).__name__}: "
        text = f'policy "{self.name}" failed: {what}{error}'
        if self.strict:
            raise PolicyError(text) from error
        self.broken = text
        self.forget()

    def forget(self) -> None:
        """Drop everything stored about jobs."""
        self.queue.clear()

    def explain(self, job: Job, site: Site) -> str:
        """Return the policy's explanation for a job; the error if only that fails."""
        try:
            return str(self.policy.explain(job, site))
        except Exception as error:  # noqa: BLE001 - a plugin's code; only a sentence is lost
            return f"{self.name} could not explain this: {type(error).__name__}: {error}"


# -- plain data ------------------------------------------------------------------------------------
# Check that what a policy returns for storage is plain data, in the method that returned it.
#
# Keys stay in the state until a run ends and come back from a snapshot; what a policy saves is read
# again by another process; scores are written to the journal. A set, a record or a numpy number
# would fail only there, much later and far from its cause.

PLAIN_KEYS: Final = frozenset({bool, float, int, str, type(None)})
"""Types of a key that need no further check. Their subclasses would not be restored as such."""
_EXPECTED_KEY: Final = "expected None, a bool, an int, a float, a str, or a tuple of those"
_NAMES: Final = frozenset({str})
_NUMBERS: Final = frozenset({float, int, bool})


def check_key(key: Any) -> None:
    """Check a key from `group_key`. Raises `TypeError` if it is not plain data."""
    wrong = _odd_part(key)
    if wrong is not None:
        inside = "" if wrong is key else f", which holds {_named(wrong)}"
        raise TypeError(f"group_key returned {_named(key)}{inside}; {_EXPECTED_KEY}")


def _odd_part(key: Any) -> Any:
    """Return the part of a key that is not plain; None if all of it is."""
    if isinstance(key, tuple):  # named ones, too: what comes back is equal
        return next((odd for part in key if (odd := _odd_part(part)) is not None), None)
    return None if type(key) in PLAIN_KEYS else key


def check_saved(saved: Any) -> None:
    """Check the result of `save`. Raises `TypeError` if it cannot be written to a snapshot."""
    try:
        msgspec.msgpack.encode(saved)
    except (TypeError, ValueError, OverflowError) as error:
        found = _odd_place(saved, "")
        what = str(error) if found is None else f"{_named(found[1])} at {found[0] or 'its top'}"
        raise TypeError(
            f"save returned {what}; expected dicts, lists, strings, numbers of Python's own, "
            "bools and None"
        ) from error
    if not isinstance(saved, dict):
        raise TypeError(f"save returned {_named(saved)}; expected a dict")


def _odd_place(value: Any, path: str) -> tuple[str, Any] | None:
    """Return the first part that cannot be written, and the path to it."""
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        parts = enumerate(value)
    else:
        try:
            msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError):
            return path, value
    for name, part in parts:
        if isinstance(value, Mapping) and type(name) not in PLAIN_KEYS:
            return f"a key of {path or 'the dict'}", name
        found = _odd_place(part, f"{path}[{name!r}]")
        if found is not None:
            return found
    return None


def check_scores(scores: Mapping[Any, Any], method: str) -> None:
    """Check scores from a policy. Raises `TypeError` if they are not names with plain numbers."""
    if _NAMES.issuperset(map(type, scores)) and _NUMBERS.issuperset(map(type, scores.values())):
        return  # fast path: called for every decision
    for name, score in scores.items():
        if type(name) is not str:
            raise TypeError(f"{method} returned scores with the key {_named(name)}; expected names")
        if type(score) not in _NUMBERS:
            raise TypeError(
                f"{method} returned as score of {name!r} {_named(score)}; expected a number "
                "of Python's own: float(...)"
            )


def _named(value: Any) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{value!r:.80} of type {module}{kind.__qualname__}"
