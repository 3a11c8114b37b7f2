"""Provenance of a result: release, command, time and checksums of the traces."""

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
    """Return the provenance that every JSON document and page of results contains.

    Args:
        traces: files and folders that were read; empty if the traces were generated at random,
            which the seeds of the command reproduce.

    Returns:
        version, command (quoted for a shell), date (now, UTC) and traces: path and sha256 of each.

    Raises:
        OSError: a trace has been removed since it was read.
    """
    return {
        "version": __version__,
        "command": _command(),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "traces": [{"path": shown(path), "sha256": trace_sha256(path)} for path in traces],
    }


def _command() -> str:
    """Return the words of the running command; the program's name alone if there is none."""
    context = click.get_current_context(silent=True)
    words = () if context is None else context.find_root().obj or ()
    return shown(shlex.join(("outrider", *words)))
