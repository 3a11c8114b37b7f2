"""What made a result: release, command, moment and the bytes of the traces."""

import datetime as dt
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from outrider import __version__
from outrider.cli.printing import shown
from outrider.formats.digests import trace_sha256


def provenance(traces: Iterable[Path]) -> dict[str, Any]:
    """What every JSON document and page of results says of how it was made.

    Args:
        traces: files and folders that were read; none where traces were drawn by chance, which the
            seeds of the command repeat.

    Returns:
        version, command (as a shell would take it), date (of now, UTC) and traces: path and sha256
        of each.

    Raises:
        OSError: a trace is gone meanwhile.
    """
    return {
        "version": __version__,
        "command": _command(),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "traces": [{"path": shown(path), "sha256": trace_sha256(path)} for path in traces],
    }


def _command() -> str:
    """The words of the command that runs; the program's name alone where none does."""
    context = click.get_current_context(silent=True)
    words = () if context is None else context.find_root().obj or ()
    return shown(shlex.join(("outrider", *words)))
