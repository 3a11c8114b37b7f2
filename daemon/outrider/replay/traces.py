"""Traces by their paths: a campus is a folder, a workload a file."""

from collections.abc import Iterable
from pathlib import Path

from outrider.formats.campus.campus import Campus
from outrider.formats.workload import Workload
from outrider.replay.workload_terms import WorkloadTerms

Trace = Campus | Workload


def read_trace(path: Path, terms: WorkloadTerms, skip_bad: bool = False) -> Trace:
    """Read a campus folder, or a workload file in Standard Workload Format.

    Args:
        path: of either.
        terms: what options ask of a workload file.
        skip_bad: leave out bad rows and count them, not refuse them.

    Raises:
        TraceError: it cannot be read.
        ConfigurationError: what is asked of its classes does not fit it.
    """
    if path.is_dir():
        from outrider.formats.campus.files import read_campus

        return read_campus(path, skip_bad=skip_bad)
    from outrider.formats.swf.reading import read_swf

    return read_swf(
        path,
        machines=terms.machines,
        class_by=terms.class_by,
        vo=terms.vo,
        group_vos_below=terms.group_vos_below,
        skip_bad=skip_bad,
    )


def notes_on(trace: Trace, shares: Iterable[str]) -> list[str]:
    """What people should know of a workload: what its reader did, VOs of `shares` it has not."""
    if isinstance(trace, Campus):
        return []
    strangers = sorted(set(shares) - set(trace.vo))
    note = f"--shares: no job belongs to {', '.join(strangers)}"
    return [*trace.notes, *([note] if strangers else [])]
