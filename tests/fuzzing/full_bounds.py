"""Events that fill every bound: names of every kind, jobs that wait, run and have ended.

The names are hostile: quotes and backslashes that double in an answer, letters of four bytes, and
beyond the bounds names of 8,000 characters, control characters and formulas.
"""

import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

from outrider.api import Adapter, Batch, JobSpec, MachineSpec, NamedEvent, Resources, events
from outrider.engine.ingest.bounded_names import NAME_BYTES, NameLimits
from outrider.engine.ingest.machine_registry import MAX_MEMBERS

LETTERS: Final = ('"', "\\", "a", "é", "\N{GRINNING FACE}", "=", "~")
HOSTILE: Final = ("\x1b[2J", "\u202e", "\u200b", "\x00", "\n", "=cmd|'/c calc'!A0", "\ufe0f", "a")
EVENTS_PER_BATCH: Final = 2_000


def name(kind: str, n: int, size: int = NAME_BYTES) -> str:
    """A printable name of so many bytes of UTF-8, another one for every n."""
    begin = f"{kind}{n}-"
    letter = LETTERS[n % len(LETTERS)]
    more, rest = divmod(size - len(begin), len(letter.encode()))
    return begin + letter * more + "." * rest


def hostile_name(kind: str, n: int, length: int = 8_000) -> str:
    """A name of so many characters, of which many must not be printed."""
    sign = HOSTILE[n % len(HOSTILE)]
    return f"{sign}{kind}{n}" + (sign * length)[: length - len(sign) - len(kind) - 8]


def full_events(limits: NameLimits, begin_s: float, beyond: int = 50) -> Iterator[NamedEvent]:
    """The events: first what the bounds allow, then `beyond` hostile names more of each kind."""
    for n in range(limits.machine + beyond):
        here = n < limits.machine
        cluster = name("c", n % limits.cluster) if here else hostile_name("c", n)
        resources = Resources(named=tuple((f"licence{k}", 1.0) for k in range(16)))
        machine = name("m", n) if here else hostile_name("m", n)
        spec = MachineSpec(cluster, cpus=4, active_w=90.0, usable=False, resources=resources)
        yield begin_s, events.JOINED, machine, spec
        if not here:
            again = name("m", n - limits.machine)
            yield begin_s, events.JOINED, again, MachineSpec(cluster, usable=False)
    members = MAX_MEMBERS // limits.eligible
    for n in range(limits.eligible + beyond):
        label = name("e", n) if n < limits.eligible else hostile_name("e", n)
        span = range(n, n + min(members, limits.machine))
        yield begin_s, events.ELIGIBLE, label, tuple(name("m", k % limits.machine) for k in span)
    yield from _ended_jobs(limits, begin_s + 1.0)
    yield from _jobs(limits, begin_s + 2.0, beyond)


def _ended_jobs(limits: NameLimits, at_s: float) -> Iterator[NamedEvent]:
    for n in range(limits.job):
        job = f"{name('old', n % 100)}#{n}.0"
        yield at_s, events.SUBMITTED, job, JobSpec(user=name("u", n % limits.user), vo=name("v", 0))
        yield at_s, events.REMOVED, job, "removed"


def _jobs(limits: NameLimits, at_s: float, beyond: int) -> Iterator[NamedEvent]:
    """Jobs until their number is full, a quarter of them with long names, and more that begin."""
    for n in range(limits.job + limits.job // 8):
        job = f"{name('ap', n % 9)}#{n}.0" if n % 4 == 0 else f"ap#{n}.0"
        long = n % 4 == 0
        yield (
            at_s,
            events.SUBMITTED,
            job,
            JobSpec(
                user=name("u", n // 4 % limits.user) if long else "ada",
                vo=name("v", n // 4 % limits.vo) if long else "all",
                job_class=name("k", n // 4 % limits.job_class) if long else "batch",
                estimate_s=float(n),
                eligible=name("e", n // 4 % limits.eligible) if long else "",
            ),
        )
    for n in range(1, limits.job, 4):
        yield at_s, events.HELD, f"ap#{n}.0", f"{HOSTILE[n % len(HOSTILE)]}{n}" * 500
    for n in [*range(2, limits.job, 4), *range(limits.job + 1, limits.job + limits.job // 8)]:
        if n % 4:
            yield at_s, events.STARTED, f"ap#{n}.0", (name("m", n % limits.machine), 1)
    for n in range(beyond):
        user, vo, job_class = (hostile_name(kind, n) for kind in "uvk")
        spec = JobSpec(user=user, vo=vo, job_class=job_class, eligible=hostile_name("e", n))
        yield at_s, events.SUBMITTED, f"{hostile_name('ap', n)}#{n}.0", spec
        yield at_s, events.CHANGED, f"ap#{n}.0", {"vo": vo, "user": user}
        yield at_s, events.STARTED, hostile_name("ap", n), (hostile_name("m", n), 1)


class Crowd(Adapter):
    """A site that gives these events, at the limits of the daemon, and then nothing more."""

    name = "crowd"
    description = "for tests: fills every bound"
    api_version = 1
    lateness_s = 0.0

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        begin_s = time.time() - 60.0
        if cursor is None:
            batch: list[NamedEvent] = []
            for event in full_events(NameLimits(), begin_s):
                batch.append(event)
                if len(batch) == EVENTS_PER_BATCH:
                    yield Batch(events=batch, cursor=None, seen_until_s=event[0])
                    batch = []
            yield Batch(events=batch, cursor="full", seen_until_s=time.time())
        while True:
            yield Batch(events=[], cursor="full", seen_until_s=time.time(), note="all is told")
            await _pause()


async def _pause() -> None:
    import asyncio

    await asyncio.sleep(0.5)


def install(folder: Path) -> dict[str, str]:
    """Make the adapter known to processes that get this environment."""
    info = folder / "crowd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crowd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[outrider.adapters]\ncrowd = {__name__}:Crowd\n")
    root = Path(__file__).resolve().parents[2]
    path = [str(folder), str(root), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(part for part in path if part)}
