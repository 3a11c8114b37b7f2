"""Sources of a run's trace, which are small and hashable while a trace is large."""

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.formats.job_classes import ClassRule
from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.model.errors import TraceError


class GeneratedCampus(msgspec.Struct, frozen=True, tag="generated campus"):
    """Campus generated at random.

    Attributes:
        seed: of the generator.
        options: (name, value) of what `outrider.simulation.generators.campus.CampusOptions` takes.
    """

    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name of the campus in reports: ``generated-3``, ``generated-3 machines=200 weeks=8``."""
        return " ".join((f"generated-{self.seed}", *(f"{k}={v}" for k, v in self.options)))

    def load(self) -> Campus:
        """Generate the campus from its options. Raises `ConfigurationError`."""
        from outrider.simulation.generators.campus import generate_campus

        return generate_campus(self.seed, **dict(self.options))


class CampusFolder(msgspec.Struct, frozen=True, tag="campus folder"):
    """A campus in a folder; see `outrider.formats.campus.files.read_campus`.

    Attributes:
        path: of the folder.
        skip_bad: leave out bad rows and count them, not refuse them.
        digest: of what is in it (`outrider.formats.digests`); empty where nobody asks whether it
            changed.
        shown: how reports call it; empty: by its path.
    """

    path: str
    skip_bad: bool = False
    digest: str = ""
    shown: str = ""

    @property
    def name(self) -> str:
        """Name of the campus in reports."""
        return self.shown or self.path

    def load(self) -> Campus:
        """Read the campus from its folder. Raises `TraceError`."""
        from outrider.formats.campus.files import read_campus

        return read_campus(Path(self.path), skip_bad=self.skip_bad)


class WorkloadFile(msgspec.Struct, frozen=True, tag="workload file"):
    """A workload file (.swf), read as `outrider.formats.swf.reading.read_swf` does.

    Attributes:
        path: of the file.
        machines: CPUs, in place of the header's.
        class_by: what makes a job interactive; None: what its users said best.
        vo: the column that says which VO a job belongs to.
        group_vos_below: VOs that ask for a lesser share than this are one.
        digest: SHA-256 of the file; empty where nobody asks whether it changed.
    """

    path: str
    machines: int | None = None
    class_by: ClassRule | None = None
    vo: str = "group"
    group_vos_below: float = 0.0
    digest: str = ""

    @property
    def name(self) -> str:
        """Name in reports: the path as it was given."""
        return self.path

    def load(self) -> Workload:
        """Read the workload from its file. Raises `TraceError`."""
        return read_swf(
            Path(self.path),
            machines=self.machines,
            class_by=self.class_by,
            vo=self.vo,
            group_vos_below=self.group_vos_below,
        )


class NamedWorkloadFile(WorkloadFile, frozen=True, tag="named workload file"):
    """A workload file that reports call by another name than its path.

    Attributes:
        shown: that name.
    """

    shown: str = ""

    @property
    def name(self) -> str:
        """Name of the workload in reports."""
        return self.shown or self.path


class WorkloadWindow(msgspec.Struct, frozen=True, tag="workload window"):
    """The jobs of a workload file that came within some days of it.

    Attributes:
        file: the whole of it; classes and VOs are those that its jobs have in the whole file.
        first_day: where it begins, in days after the file's first submission.
        days: how long it is; what came at its very end is no part of it.
    """

    file: WorkloadFile
    first_day: float
    days: float

    @property
    def path(self) -> str:
        """Path of the workload file."""
        return self.file.path

    @property
    def digest(self) -> str:
        """Digest of the whole file."""
        return self.file.digest

    @property
    def name(self) -> str:
        """Name of the window in reports: ``kth.swf.gz days 30 to 40``."""
        return f"{self.file.name} days {self.first_day:g} to {self.first_day + self.days:g}"

    def load(self) -> Workload:
        """Read the file and take these jobs. Raises `TraceError` where there are none."""
        begin_s = self.first_day * DAY_S
        return within(whole_file(self.file), begin_s, begin_s + self.days * DAY_S, self.name)


class DrawnWorkload(msgspec.Struct, frozen=True, tag="drawn workload"):
    """Workload that the worker generates at random.

    Attributes:
        generator: by the name that its experiment gives it.
        seed: of the generator.
        options: (name, value) of what the generator takes.
    """

    generator: str
    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name of the workload in reports: ``perez-3 row=0.2 jobs=6000``."""
        words = (f"{self.generator}-{self.seed}", *(f"{k}={v}" for k, v in self.options))
        return " ".join(words)

    def option(self, name: str) -> Any:
        """Return the value of an option. Raises `KeyError`."""
        return dict(self.options)[name]


TraceSource = GeneratedCampus | CampusFolder | WorkloadFile | WorkloadWindow | DrawnWorkload


@lru_cache(maxsize=1)
def campus_of(source: GeneratedCampus | CampusFolder) -> Campus:
    """Return the campus of a source; only the last one is cached: a year takes 400 MB."""
    return source.load()


@lru_cache(maxsize=1)
def workload_of(source: WorkloadFile | WorkloadWindow) -> Workload:
    """Return the workload of a file or window; the last one is kept, for many policies run it."""
    return source.load()


@lru_cache(maxsize=1)
def whole_file(source: WorkloadFile) -> Workload:
    """Return the file that windows are cut from; the last one is kept, for it has many windows."""
    return source.load()


# -- windows ---------------------------------------------------------------------------------------
# Windows of a workload: the jobs that came within a stretch of time, to be run by themselves.

DAY_S: Final = 86_400.0
Value = TypeVar("Value")


def within(workload: Workload, begin_s: float, end_s: float, name: str) -> Workload:
    """Return the jobs submitted from one moment on and before another, on the same machines.

    Args:
        workload: not changed.
        begin_s: seconds after its first submission.
        end_s: the same.
        name: of the window.

    Returns:
        A workload on the same clock. Of what it leaves out, `skipped` counts only the jobs outside
        the window: what the file's reader left out has no moment.

    Raises:
        TraceError: no job came then.
    """
    after_s = workload.submit_s - workload.submit_s[0]
    first, last = np.searchsorted(after_s, [begin_s, end_s], side="left").tolist()
    if first == last:
        raise TraceError(f"{name}: no job came then; the last came on day {after_s[-1] / DAY_S:g}")
    return part_of(workload, first, last, name)


def part_of(workload: Workload, first: int, last: int, name: str) -> Workload:
    """Return the jobs of these rows, from the first and before the last, on the same machines.

    Args:
        workload: not changed.
        first: a row.
        last: the row behind the last one.
        name: of the part.
    """
    rows = slice(first, last)

    def cut(values: Sequence[Value]) -> list[Value]:
        return list(values[rows])

    outside = len(workload.submit_s) - (last - first)
    return dataclasses.replace(
        workload,
        name=name,
        job_names=cut(workload.job_names),
        submit_s=workload.submit_s[rows],
        run_s=workload.run_s[rows],
        cpus=workload.cpus[rows],
        requested_s=workload.requested_s[rows],
        wait_s=workload.wait_s[rows],
        estimate_s=workload.estimate_s[rows],
        user=cut(workload.user),
        vo=cut(workload.vo),
        job_class=cut(workload.job_class),
        resources=cut(workload.resources),
        eligible=cut(workload.eligible),
        skipped={"outside the window": outside} if outside else {},
    )
