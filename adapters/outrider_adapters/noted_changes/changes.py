"""Changes of jobs: planned, noted, made, read back, and un-noted where they are not shown."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Self, TypeVar

from outrider.api import PeerError, Undo, UndoLog

GONE: Final = "it waits in the queue no more"

JobT = TypeVar("JobT")
"""A job as the batch system shows it while it waits."""


class GivenUpError(PeerError):
    """The rest was not asked for; the message says why. It may be asked for again."""


class Plan(NamedTuple):
    """What one attribute of several jobs is to be.

    Attributes:
        notes: what is noted before, by the name of each job.
        values: what each gets; a job that is noted and gets nothing has it already.
        refused: jobs that are left as they are, and why.
    """

    notes: dict[str, Undo]
    values: dict[str, int]
    refused: dict[str, str]

    @classmethod
    def empty(cls) -> Self:
        """One for no job yet."""
        return cls({}, {}, {})

    def without(self, names: Collection[str]) -> "Plan":
        """The same, but for some jobs."""
        notes = {name: note for name, note in self.notes.items() if name not in names}
        values = {name: value for name, value in self.values.items() if name not in names}
        return Plan(notes, values, self.refused)


class Change(NamedTuple, Generic[JobT]):
    """A plan, and how it is carried out.

    Attributes:
        plan: see there.
        attribute: its name, for whoever makes the change.
        undo_log: where it is noted.
        wrong: what a waiting job shows instead of what was noted; empty: it shows that, or cannot.
        may_have_gone: whether a job that waits no more may have got it all the same.
        forgotten: whether a waiting job shows what Outrider gave it before. The batch system had
            what is noted, and was killed before it had saved it.
    """

    plan: Plan
    attribute: str
    undo_log: UndoLog
    wrong: Callable[[Undo, JobT], str]
    may_have_gone: Callable[[Undo], bool] = lambda noted: False
    forgotten: Callable[[Undo, JobT], bool] = lambda noted, job: False


def carry_out(
    changes: Sequence[Change[JobT]],
    make: Callable[[Mapping[str, Mapping[str, int]]], str],
    waiting: Callable[[], Mapping[str, JobT]],
) -> dict[str, str]:
    """Make changes of jobs that wait; those for which it is not so then, and why.

    Args:
        changes: each of another attribute, or of other jobs.
        make: gives each job, by name, its values by attribute; returns what the batch system said
            when it refused, if it did, or raises `GivenUpError`.
        waiting: asks for the jobs that wait now, by name.

    Raises:
        PeerError: something cannot be noted, so nothing is changed; nobody answers; it was given up
            in its middle; or the batch system refused nothing and has forgotten it.
    """
    changes = [change for change in changes if change.plan.notes]
    before = [change.undo_log.entries for change in changes]
    for change in changes:
        change.undo_log.write(change.plan.notes)
    edits: dict[str, dict[str, int]] = {}
    for change in changes:
        for name, value in change.plan.values.items():
            edits.setdefault(name, {})[change.attribute] = value
    if not edits:  # all stands already, and was renewed
        return {}
    given_up: GivenUpError | None = None
    try:
        said = make(edits)
    except GivenUpError as error:
        said, given_up = str(error), error
    shown = waiting()  # may fail: what is noted and not done is found out the next time
    refused: dict[str, str] = {}
    forgotten: dict[str, str] = {}
    for change, noted_before in zip(changes, before, strict=True):
        wrong = _wrong(change, shown)
        forgotten |= {
            name: why for name, why in wrong.items()
            if name in shown and change.forgotten(change.plan.notes[name], shown[name])
        }  # fmt: skip
        refused |= {name: why if why == GONE else said or why for name, why in wrong.items()}
        # one that was let go may have begun since, with what is noted
        as_it_was = [
            name for name, why in wrong.items()
            if why != GONE or not change.may_have_gone(change.plan.notes[name])
        ]  # fmt: skip
        change.undo_log.write({n: noted_before[n] for n in as_it_was if n in noted_before})
        change.undo_log.forget(set(as_it_was) - noted_before.keys())
    if given_up is not None:
        raise given_up
    if forgotten and not said:
        name, why = next(iter(forgotten.items()))
        raise PeerError(f"{len(forgotten)} jobs are as Outrider changed them before: {name}: {why}")
    return refused


def _wrong(change: Change[JobT], shown: Mapping[str, JobT]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, noted in change.plan.notes.items():
        job = shown.get(name)
        if why := GONE if job is None else change.wrong(noted, job):
            found[name] = why
    return found
