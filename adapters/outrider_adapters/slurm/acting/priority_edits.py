"""Changes of site factors and nice values: to start jobs first, and to restore lost age.

Neither expires automatically. The undo log has the value before the change and the parts of the
present value, so that each part can be reverted when it is no longer due.
"""

import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Final, Literal, NamedTuple

import msgspec

from outrider.api import PeerError, Undo, UndoLog
from outrider_adapters.noted_changes import Change, Plan
from outrider_adapters.readers.slurm.record_events import limit_s
from outrider_adapters.slurm.acting.controller import WaitingJob

# -- multifactor -----------------------------------------------------------------------------------
# How priority/multifactor computes a job's priority, as far as levers change a part of it.
#
# Age: where Slurm enforces limits of accounts (`AccountingStorageEnforce`), a new start time resets
# the job's age, which then counts from that time. Elsewhere the age continues, and nothing is lost.

_TYPE: Final = "priority/multifactor"
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MIN_RAISE: Final = 1_000
_MAX_RAISE: Final = 1_000_000_000
"""Bound of site factors and nice values, which are numbers of 31 bits."""


class Age(NamedTuple):
    """Slurm's parameters for priority by age.

    Attributes:
        weight: priority of a job of the greatest age.
        most_s: greatest age that counts, seconds.
        step: restored priority is a multiple of it, so that many jobs get the same value.
    """

    weight: int
    most_s: float
    step: int

    def points(self, since_s: float, at_s: float) -> float:
        """Return the priority by age at a time, for a job whose age counts from another time."""
        return self.weight * min(max(at_s - since_s, 0.0), self.most_s) / self.most_s

    def lost(self, since_s: float, counted_s: float, at_s: float) -> int:
        """Return the priority that is missing at a time, in whole steps.

        Args:
            since_s: when the true age began to count.
            counted_s: when the age that Slurm counts began instead.
            at_s: the time.
        """
        missing = self.points(since_s, at_s) - self.points(counted_s, at_s)
        return round(missing / self.step) * self.step

    def right_until_s(self, since_s: float, at_s: float) -> float:
        """Return until when the missing priority at a time stays the same.

        From the greatest true age on it only shrinks, by a step at a time.
        """
        full_s = since_s + self.most_s
        return full_s if at_s < full_s else at_s + self.step * self.most_s / self.weight


def lost_age(config: Mapping[str, str], lease_s: float) -> Age | None:
    """Return how age counts if moving a start time loses it; None if it loses nothing.

    Args:
        config: of Slurm.
        lease_s: by how much a start time is moved each time; a step is the priority by this age.
    """
    weight = config.get("PriorityWeightAge", "0")
    most_s = limit_s(config.get("PriorityMaxAge", ""))
    enforced = config.get("AccountingStorageEnforce", "").replace(" ", "").split(",")
    if (
        not is_multifactor(config)
        or not weight.isdecimal()
        or not int(weight)
        or not most_s
        or not {"limits", "safe", "all"} & set(enforced)
        or "ACCRUE_ALWAYS" in config.get("PriorityFlags", "")
    ):
        return None
    return Age(int(weight), most_s, max(1, ceil(int(weight) * lease_s / most_s)))


def is_multifactor(config: Mapping[str, str]) -> bool:
    """Return whether a Slurm computes priorities from factors, by its configuration."""
    return config.get("PriorityType", "") == _TYPE


def raise_above(config: Mapping[str, str]) -> int:
    """Return a raise of priority that exceeds all that the factors of another job can give.

    Args:
        config: of Slurm.
    """
    weights = [value for name, value in config.items() if name.startswith("PriorityWeight")]
    most = sum(float(number) for value in weights for number in _NUMBER.findall(value))
    return int(min(max(most + 1, _MIN_RAISE), _MAX_RAISE))


def check_can_be_changed(config: Mapping[str, str], wanted: str) -> None:
    """Check that this Slurm computes priorities from factors that Outrider may change.

    Args:
        config: of Slurm.
        wanted: the setting that needs the change, as it is written.

    Raises:
        PeerError: it does not; the message says what is expected.
    """
    if not is_multifactor(config):
        kind = config.get("PriorityType", "none")
        raise PeerError(f"{wanted} needs PriorityType={_TYPE}, and this Slurm has {kind}")
    plugin = config.get("PrioritySiteFactorPlugin", "")
    is_anothers = plugin not in ("", "(null)", "site_factor/none")
    if is_anothers and "nice" not in wanted:
        raise PeerError(
            f"{wanted} needs the site factor for itself, and this Slurm has {plugin} write it; "
            'expected order_by = "nice", and keeps_age = false'
        )


# -- priority edits --------------------------------------------------------------------------------

_WORDS: Final = {"site_factor": "site factor", "nice": "nice value"}


class Given(msgspec.Struct, frozen=True, gc=False):
    """Priority edit of a job, as noted in the undo log.

    Attributes:
        was: the value before the first change.
        value: the value since then.
        earlier: the value that Outrider gave before that; None: none.
        since_s: when its true age began to count, Unix seconds; None: no age was lost.
        counted_s: when the age that Slurm counts began.
    """

    was: int
    value: int
    earlier: int | None = None
    since_s: float | None = None
    counted_s: float = 0.0

    @property
    def is_settled(self) -> bool:
        """True if the original value is restored for good."""
        return self.value == self.was and self.since_s is None


class Wanted(NamedTuple):
    """Requested priority of a job.

    Attributes:
        raised: whether it is to come before the others.
        starts_s: its new start time, Unix seconds; None: the start time is unchanged.
        since_s: since when its age counts, if it is about to be deferred for the first time.
        keeps_age: whether lost age stays restored.
    """

    raised: bool = False
    starts_s: float | None = None
    since_s: float | None = None
    keeps_age: bool = True


class PriorityEdits:
    """Planner of site factors or nice values, and of the notes to revert them.

    Args:
        attribute: which of the two is changed.
        undo_log: where the values before are noted.
        lease_s: how long a job stays raised unless that is renewed.
        raise_by: raise for a job that is to start; below 0 for nice values, 0: none.
        age: how age counts; None: lost age is not restored by this attribute.

    Attributes:
        attribute, undo_log: as above.
    """

    def __init__(
        self,
        attribute: Literal["site_factor", "nice"],
        undo_log: UndoLog,
        lease_s: float,
        raise_by: int = 0,
        age: Age | None = None,
    ) -> None:
        self.undo_log = undo_log
        self.attribute = attribute
        self._lease_s = lease_s
        self._raise_by = raise_by
        self._age = age

    @property
    def raises(self) -> bool:
        """True if jobs that are to start are raised."""
        return bool(self._raise_by)

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to change, and nothing to revert."""
        return not (self._raise_by or self._age or self.undo_log.entries)

    def wanted(
        self, wanted: Mapping[str, Wanted], waiting: Mapping[str, WaitingJob], now_s: float
    ) -> Plan:
        """Return the changes of waiting jobs now; jobs that another program changed are refused.

        Args:
            wanted: the request for each job, by name.
            waiting: the same jobs as they wait.
            now_s: by Slurm's clock, Unix seconds.
        """
        plan = Plan.empty()
        for name, want in wanted.items():
            job, noted = waiting[name], self.undo_log.entries.get(name)
            if self.is_anothers(name, job):
                word = _WORDS[self.attribute]
                plan.refused[name] = f"its {word} was changed since Outrider set it"
                continue
            given = self._now_given(noted, job, want, now_s)
            if given is None:
                continue
            shown = self._shown(job)
            raised_by = self._raise_by if want.raised else 0
            value: int = given.was + raised_by + self._lost(given, now_s)
            current = given.value if shown is None else shown
            if noted is None and value == given.was and given.since_s is None:
                continue
            earlier = current if current != given.was else None
            given = msgspec.structs.replace(given, value=value, earlier=earlier)
            until_s = self._until_s(given, want.raised and bool(self._raise_by), now_s)
            plan.notes[name] = Undo(until_s, msgspec.to_builtins(given), lasts=True)
            if value != current:
                plan.values[name] = value
        return plan

    def overdue(self, now_s: float) -> list[str]:
        """Return the jobs with a change that has to be reverted, unless it was renewed."""
        return [name for name, undo in self.undo_log.entries.items() if undo.until_s <= now_s]

    def is_anothers(self, name: str, job: WaitingJob) -> bool:
        """Return whether another user or program changed the value that Outrider gave a job."""
        noted, shown = self.undo_log.entries.get(name), self._shown(job)
        if noted is None or shown is None:
            return False
        given = given_of(noted)
        return shown not in (given.value, given.earlier, given.was)

    def is_changed(self, name: str) -> bool:
        """Return whether the noted value of a job differs from its original value."""
        noted = self.undo_log.entries.get(name)
        return noted is not None and given_of(noted).value != given_of(noted).was

    def settle(self, names: Iterable[str]) -> None:
        """Forget those of these jobs whose original value is restored."""
        noted = self.undo_log.entries
        self.undo_log.forget([n for n in names if n in noted and given_of(noted[n]).is_settled])

    def change(self, plan: Plan) -> Change[WaitingJob]:
        """Return the change that applies such a plan."""
        return Change(plan, self.attribute, self.undo_log, self._wrong)

    def _now_given(
        self, noted: Undo | None, job: WaitingJob, want: Wanted, now_s: float
    ) -> Given | None:
        """Return the edit of a job until now, updated for the age that it loses from now on."""
        shown = self._shown(job)
        if noted is not None:
            given = given_of(noted)
        elif shown is not None or want.since_s is not None:
            given = Given(shown or 0, shown or 0)  # a job that Slurm has not considered has none
        else:
            return None  # Slurm does not report its value
        if self._age is None or not want.keeps_age:
            return msgspec.structs.replace(given, since_s=None)
        if given.since_s is None and want.since_s is not None:
            given = msgspec.structs.replace(given, since_s=want.since_s)
        if given.since_s is not None and want.starts_s is not None:
            given = msgspec.structs.replace(given, counted_s=want.starts_s)
        if given.since_s is not None and now_s >= given.counted_s + self._age.most_s:
            given = msgspec.structs.replace(given, since_s=None)  # its age is real again
        return given

    def _lost(self, given: Given, now_s: float) -> int:
        if self._age is None or given.since_s is None:
            return 0
        return self._age.lost(given.since_s, given.counted_s, max(now_s, given.counted_s))

    def _until_s(self, given: Given, is_raised: bool, now_s: float) -> float:
        until_s = now_s + self._lease_s if is_raised else float("inf")
        if self._age is not None and given.since_s is not None:
            at_s = max(now_s, given.counted_s)
            until_s = min(until_s, self._age.right_until_s(given.since_s, at_s))
        return until_s if until_s < float("inf") else now_s

    def _shown(self, job: WaitingJob) -> int | None:
        shown: int | None = getattr(job, self.attribute)
        return shown

    def _wrong(self, noted: Undo, job: WaitingJob) -> str:
        value, shown = given_of(noted).value, self._shown(job)
        if shown is None or shown == value:  # Slurm reports none of a job that may not begin yet
            return ""
        return f"its {_WORDS[self.attribute]} is {shown} and not {value}"


def given_of(noted: Undo) -> Given:
    """Parse an edit from a note. Raises `msgspec.ValidationError`: it is not Outrider's."""
    return msgspec.convert(noted.before, Given)
