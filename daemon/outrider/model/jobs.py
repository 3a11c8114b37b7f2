"""Jobs: the specification from the batch system, and the state that the engine tracks."""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from outrider.model.machines import Resources

QUEUED: Final = 0
RUNNING: Final = 1
SUSPENDED_STATE: Final = 2
HELD_STATE: Final = 3
JobState: TypeAlias = Literal["queued", "running", "suspended", "held"]
JOB_STATE_NAMES: Final[tuple[JobState, ...]] = ("queued", "running", "suspended", "held")


class JobSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Specification of a job, as known at its submission. No run time: that is the future.

    Attributes:
        user: the submitting user, as the batch system spells the name.
        vo: virtual organisation (accounting group); ``all`` where a site has none.
        job_class: the user's declaration, ``interactive`` or ``batch``.
        cpus: CPUs requested, at least 1.
        estimate_s: estimated run time in seconds, or None without an estimate.
        eligible_s: when it could first run (its dependencies were met), or None for at once.
        seen_submit: False if the source began after its submission: its wait is unknown.
        recalled: True if the submission is taken from a record of the job's end: it changes
            nothing for a job that is known already, however its time was rounded.
        resources: requested resources besides CPUs; None: none.
        eligible: name of the class of machines it may use, as defined by an `eligible` event;
            empty: any machine.
        reporter: number of the user who wrote the log that names `user`; empty: the batch system
            itself, or an admin, vouches for the name. Not for policies.
    """

    user: str = ""
    vo: str = "all"
    job_class: str = "batch"
    cpus: int = 1
    estimate_s: float | None = None
    eligible_s: float | None = None
    seen_submit: bool = True
    recalled: bool = False
    resources: Resources | None = None
    eligible: str = ""
    reporter: str = ""

    @property
    def is_plain(self) -> bool:
        """True if any free machine suffices: one CPU, no other resources, no class of machines."""
        return self.cpus == 1 and not self.is_bound

    @property
    def is_bound(self) -> bool:
        """True if CPUs are not all it asks for: other resources, or a class of machines."""
        return self.resources is not None or bool(self.eligible)


UNSEEN_JOB: Final = JobSpec(seen_submit=False)
"""Specification of a job that was first seen when it already ran."""


class Job(msgspec.Struct, eq=False, gc=False):
    """One job in the engine: its specification and its history so far.

    Attributes:
        number: small integer, the job's identity inside the engine.
        spec: its present specification.
        submit_s: submission time in seconds; None when the source began after it.
        state: 0 queued, 1 running (`RUNNING`), 2 suspended (`SUSPENDED_STATE`), 3 held.
        machine: number of the machine it runs on, -1 while it runs nowhere.
        start_s: start of the present run.
        cpus: CPUs of the present run.
        first_start_s: start of its first run, None before.
        consumed_s: longest evicted run so far (McGough and Forshaw, section 4.1:
            "the maximum number of hours consumed on previous evicted executions").
        lost_s: seconds of all evicted runs so far.
        runs: runs started.
        pause_s: seconds of the present run spent suspended (complete stretches).
        suspended_at_s: start of the present suspension.
        cpu_s: CPU-seconds of the present run until its CPUs last changed.
        counted_s: seconds of the present run that are in `cpu_s`.
        held_because: while held: why, as the batch system says it; else empty.
        gave_back: while suspended: whether others may use its CPUs until it is resumed.
        is_plain: that of its specification; cached, because every pass needs it.
    """

    number: int
    spec: JobSpec
    submit_s: float | None
    is_plain: bool = True
    state: int = QUEUED
    machine: int = -1
    start_s: float = 0.0
    cpus: int = 1
    first_start_s: float | None = None
    consumed_s: float = 0.0
    lost_s: float = 0.0
    runs: int = 0
    pause_s: float = 0.0
    suspended_at_s: float = 0.0
    cpu_s: float = 0.0
    counted_s: float = 0.0
    gave_back: bool = False
    held_because: str = ""

    def __post_init__(self) -> None:
        spec = self.spec
        self.cpus = spec.cpus
        self.is_plain = spec.is_plain

    def declare(self, spec: JobSpec) -> None:
        """Replace the specification, as changed by the user or the batch system."""
        self.spec = spec
        self.is_plain = spec.is_plain

    def wait_s(self, start_s: float) -> float | None:
        """Wait from eligibility to a first start, or to now; None if submission is unknown."""
        if self.submit_s is None:
            return None
        eligible_s = self.submit_s if self.spec.eligible_s is None else self.spec.eligible_s
        return max(0.0, start_s - max(eligible_s, self.submit_s))

    def run_s(self, now: float) -> float:
        """Seconds of work in the present run until `now`, without suspended time."""
        paused = self.pause_s
        if self.state == SUSPENDED_STATE:
            paused += now - self.suspended_at_s
        return max(0.0, now - self.start_s - paused)

    def run_cpu_s(self, run_s: float) -> float:
        """CPU-seconds of the present run, of which `run_s` seconds have passed."""
        return self.cpu_s + (run_s - self.counted_s) * self.cpus

    def work_s(self, now: float) -> float:
        """Work done in the present run, in seconds on all requested CPUs at speed 1."""
        return self.run_cpu_s(self.run_s(now)) / self.spec.cpus

    def count_cpus(self, now: float) -> None:
        """Count the CPU-seconds so far, before its number of CPUs changes."""
        run_s = self.run_s(now)
        self.cpu_s = self.run_cpu_s(run_s)
        self.counted_s = run_s

    def save(self) -> dict[str, Any]:
        """Everything as plain data, for a snapshot."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "spec"} | {
            "spec": msgspec.to_builtins(self.spec)
        }

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Job":
        """Rebuild the job that `save` described."""
        job = cls(saved["number"], msgspec.convert(saved["spec"], JobSpec), saved["submit_s"])
        for name in cls.__struct_fields__:
            if name != "spec" and name in saved:  # a snapshot may be older than the name
                setattr(job, name, saved[name])
        return job


# -- job names -------------------------------------------------------------------------------------
# Names of jobs, and their short forms, which people may type where they are unique here.
#
# Names are those that batch systems guarantee to be unique: ``SCHEDD#CLUSTER.PROC`` (HTCondor),
# ``CLUSTER:ID``, followed by the number of a task (Slurm), ``ID.SERVER`` (PBS). A name that was
# used again is followed by ``#SECOND``, the second of the submission.

_SHAPES: Final = (
    re.compile(r"(?P<system>.+#)(?P<id>\d+\.\d+(?:\.\d+)?)(?P<again>#\d+)?"),  # HTCondor
    re.compile(r"(?P<system>.+:)(?P<id>\d+(?:[_+]\d+)?)(?P<again>#\d+)?"),  # Slurm
    re.compile(r"(?P<system>)(?P<id>\d+(?:\[\d*\])?)\..+?(?P<again>#\d+)?"),  # PBS
)
AFTER_SHORT_FORM: Final = "._+[#"
"""Separators that may follow a short form in a name: of a process, task, index or second."""


def system_of(name: str) -> str:
    """The part of a name before the id, with its separator; empty if there is none.

    >>> system_of("ap1.example.org#12.0"), system_of("c1:123_4"), system_of("123.server")
    ('ap1.example.org#', 'c1:', '')
    >>> system_of("ap1.example.org#12.0#1795231020")
    'ap1.example.org#'
    """
    match = _parts(name)
    return match["system"] if match else ""


def stands_for(short: str, name: str) -> bool:
    """Return whether `short` can mean the job of this name.

    >>> [stands_for(short, "ap1#12.0") for short in ("ap1#12.0", "12.0", "12", "2.0", "1")]
    [True, True, True, False, False]
    >>> stands_for("123", "c1:123_4"), stands_for("1234[7]", "1234[7].server")
    (True, True)
    """
    if not short or short not in name:
        return False
    match = _parts(name)
    if short == name or match is None:
        return short == name
    own, again = match["id"], match["again"] or ""
    if short in (own, own + again, match["system"] + own):
        return True
    return own.startswith(short) and own[len(short)] in AFTER_SHORT_FORM


def _parts(name: str) -> re.Match[str] | None:
    return next((match for shape in _SHAPES if (match := shape.fullmatch(name))), None)
