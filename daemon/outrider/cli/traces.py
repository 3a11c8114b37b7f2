"""Traces by their paths: a campus is a folder, a workload a file."""

from collections.abc import Iterable
from pathlib import Path

from outrider.cli.printing import shown
from outrider.cli.workload_terms import WorkloadTerms
from outrider.formats.campus.campus import Campus
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError, TraceError
from outrider.replay.recorded_run import RECORDED

Trace = Campus | Workload


def check_traces(paths: Iterable[Path], policies: Iterable[str], terms: WorkloadTerms) -> None:
    """Refuse what cannot be run before a long run, not after it. Nothing is read yet.

    Raises:
        TraceError: there is no such file or folder.
        ConfigurationError: an option or a policy does not fit a campus.
    """
    for path in paths:
        if not path.exists():
            raise TraceError(
                f"{shown(path)}: there is no such file or folder; right would be a campus folder "
                "with a site.toml, or a workload file (.swf, .swf.gz)"
            )
        if path.is_dir():
            terms.refuse_for_campus(shown(path))
            if RECORDED in policies:
                raise ConfigurationError(
                    f"--policy {RECORDED}: that is what a trace's own scheduler did, and a campus "
                    "has none; random_match is the nearest"
                )


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
