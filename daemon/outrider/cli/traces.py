"""Early checks of the traces given to a command, before anything is read."""

from collections.abc import Iterable
from pathlib import Path

from outrider.cli.printing import shown
from outrider.model.errors import ConfigurationError, TraceError
from outrider.replay.grid_run import RECORDED
from outrider.replay.workload_terms import WorkloadTerms


def check_traces(paths: Iterable[Path], policies: Iterable[str], terms: WorkloadTerms) -> None:
    """Reject traces that cannot be run, before a long run. Nothing is read yet.

    Raises:
        TraceError: there is no such file or folder.
        ConfigurationError: an option or a policy does not fit a campus.
    """
    for path in paths:
        if not path.exists():
            raise TraceError(
                f"{shown(path)}: there is no such file or folder; expected a campus folder "
                "with a site.toml, or a workload file (.swf, .swf.gz)"
            )
        if path.is_dir():
            terms.refuse_for_campus(shown(path))
            if RECORDED in policies:
                raise ConfigurationError(
                    f"--policy {RECORDED}: replays what a trace's own scheduler did, and a campus "
                    "has none; use random_match, the nearest"
                )
